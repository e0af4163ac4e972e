//! A bed that outlives the command that started it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::testbed::bed::TestbedBuilder;
use crate::testbed::condition::Condition;
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::fault::{Fault, Outcome};
use crate::testbed::folder::Folder;
use crate::testbed::local::LocalMaster;
use crate::testbed::port::Port;
use crate::testbed::record::RecordFile;

/// The place of a bed that stays up between commands: `up` in one, `status` and `fault` in others, `down` in the last.
///
/// A file names the masters, their ports, folders and processes. A process is known by its pid and its start time
/// together, so that nothing else is ever killed in a master's stead. The servers run in process groups of their
/// own, not reached by Ctrl-C. Commands for one place are meant to come one after the other.
#[derive(Debug, Clone)]
pub struct StandingBed {
    file: RecordFile,
}

/// What [`StandingBed::down`] found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Down {
    /// Whether there was a bed to take down.
    pub was_up: bool,
    /// How many processes were ended.
    pub ended: usize,
    /// How many masters had ended before.
    pub already_gone: usize,
}

/// One master of a standing bed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MasterStatus {
    /// `m1` and so on.
    pub name: String,
    /// `redis://127.0.0.1:PORT`.
    pub url: String,
    /// Up, frozen or down.
    pub condition: Condition,
    /// Its process, unless down.
    pub pid: Option<u32>,
    /// What it says of itself, if it is up.
    pub report: Option<Report>,
    /// Why it says nothing although it is up.
    pub trouble: Option<String>,
}

/// What a master says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// `master`, unless somebody made it a replica.
    pub role: String,
    /// Another one after each restart.
    pub run_id: String,
    /// Seconds since it started.
    pub uptime: u64,
    /// Bytes in use.
    pub memory: u64,
    /// The limit in bytes, 0 for none.
    pub memory_limit: u64,
    /// How many keys it has.
    pub keys: u64,
}

impl StandingBed {
    /// The usual place: one per user, in `$XDG_RUNTIME_DIR` or else the temporary directory.
    pub fn usual() -> Self {
        Self { file: RecordFile::usual() }
    }

    /// This place.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { file: RecordFile::at(path.into()) }
    }

    /// The file that names the masters while the bed is up.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Starts a bed and lets it go. Returns where its masters listen: the first free ports from 17101 on.
    ///
    /// Until all is written down the masters are tied to this process, so that they end with it.
    ///
    /// # Errors
    /// [`TestbedError::AlreadyUp`] if one is up here; else as [`Testbed::start`](super::Testbed::start), with
    /// nothing left behind.
    pub fn up(&self, bed: TestbedBuilder) -> Result<Vec<String>, TestbedError> {
        self.file.take()?;
        self.start(bed).inspect_err(|_| drop(self.file.remove()))
    }

    /// Where its masters listen.
    ///
    /// # Errors
    /// [`TestbedError::NotUp`], or a record that cannot be relied on.
    pub fn urls(&self) -> Result<Vec<String>, TestbedError> {
        Ok(self.masters()?.iter().map(LocalMaster::url).collect())
    }

    /// Ends what is left of the bed and removes its folders and its file. Nothing to do is no error.
    ///
    /// # Errors
    /// If a process cannot be ended or a folder not be removed; the file stays then, for another try. Or
    /// [`TestbedError::BadRecord`].
    pub fn down(&self) -> Result<Down, TestbedError> {
        let Some(masters) = self.file.read()? else {
            return Ok(Down { was_up: false, ended: 0, already_gone: 0 });
        };
        let mut down = Down { was_up: true, ended: 0, already_gone: 0 };
        for master in &masters {
            match master.condition() {
                Condition::Down => down.already_gone += 1,
                Condition::Up | Condition::Frozen => down.ended += 1,
            }
            master.kill()?;
            master.folder().remove().doing(|| format!("remove {}", master.folder().path().display()))?;
        }
        self.file.remove()?;
        Ok(down)
    }

    /// How each master is, in order.
    ///
    /// # Errors
    /// As [`urls`](Self::urls). A master that is down, frozen or silent is a status, not an error.
    pub fn status(&self) -> Result<Vec<MasterStatus>, TestbedError> {
        Ok(self.masters()?.iter().enumerate().map(|(index, master)| status(index, master)).collect())
    }

    /// Puts a fault in place at one master, counted from 1 as their names are.
    ///
    /// # Errors
    /// As [`urls`](Self::urls), or [`TestbedError::NoSuchMaster`].
    pub fn fault(&self, master: usize, fault: Fault) -> Result<Outcome, TestbedError> {
        self.change(master, |master| master.inject(fault))
    }

    /// Takes a fault away again.
    ///
    /// # Errors
    /// As [`fault`](Self::fault).
    pub fn undo(&self, master: usize, fault: Fault) -> Result<Outcome, TestbedError> {
        self.change(master, |master| master.undo(fault))
    }

    fn start(&self, bed: TestbedBuilder) -> Result<Vec<String>, TestbedError> {
        let mut masters = bed.start_on(|| Port::standing(Folder::is_there_for))?.into_masters();
        self.file.write(&masters)?;
        masters.iter_mut().try_for_each(LocalMaster::let_go)?;
        Ok(masters.iter().map(LocalMaster::url).collect())
    }

    fn change(
        &self,
        asked: usize,
        act: impl FnOnce(&LocalMaster) -> Outcome,
    ) -> Result<Outcome, TestbedError> {
        let masters = self.masters()?;
        let have = masters.len();
        let master = asked.checked_sub(1).and_then(|index| masters.get(index));
        let outcome = act(master.ok_or(TestbedError::NoSuchMaster { asked, have })?);
        // It may have another process now, or none.
        self.file.write(&masters)?;
        Ok(outcome)
    }

    fn masters(&self) -> Result<Vec<LocalMaster>, TestbedError> {
        self.file.read()?.ok_or_else(|| TestbedError::NotUp { path: self.path().to_owned() })
    }
}

fn status(index: usize, master: &LocalMaster) -> MasterStatus {
    let condition = master.condition();
    let report = (condition == Condition::Up).then(|| report(master));
    let (report, trouble) = match report {
        Some(Ok(report)) => (Some(report), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    MasterStatus {
        name: format!("m{}", index + 1),
        url: master.url(),
        condition,
        pid: master.pid(),
        report,
        trouble,
    }
}

fn report(master: &LocalMaster) -> std::io::Result<Report> {
    let mut info = master.info()?;
    let keys = master.command(&["DBSIZE"])?.integer().unwrap_or_default().unsigned_abs();
    let number = |name: &str| info.get(name).and_then(|value| value.parse().ok()).unwrap_or_default();
    Ok(Report {
        uptime: number("uptime_in_seconds"),
        memory: number("used_memory"),
        memory_limit: number("maxmemory"),
        keys,
        role: info.remove("role").unwrap_or_default(),
        run_id: info.remove("run_id").unwrap_or_default(),
    })
}
