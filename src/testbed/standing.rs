//! A bed that outlives the command that started it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::testbed::bed::{Testbed, TestbedBuilder};
use crate::testbed::breakable::Breakable;
use crate::testbed::compose::Compose;
use crate::testbed::condition::Condition;
use crate::testbed::containers::MASTERS;
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::fault::{Fault, Outcome};
use crate::testbed::folder::Folder;
use crate::testbed::local::LocalMaster;
use crate::testbed::port::Port;
use crate::testbed::record::{Kept, RecordFile};
use crate::testbed::status::MasterStatus;

/// The place of a bed that stays up between commands: `up` in one, `status` and `fault` in others, `down` in the last.
///
/// A file names the masters: their ports, folders and processes, or the project of their containers. A process is known by its pid and its start time
/// together, so that nothing else is ever killed in a master's stead; a container by the project that Compose labelled it with.
/// The servers run in process groups of their own, not reached by Ctrl-C. Commands for one place are meant to come one after the other.
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
    /// How many masters were ended.
    pub ended: usize,
    /// How many had ended before.
    pub already_gone: usize,
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
        self.take()?;
        self.start(bed).inspect_err(|_| drop(self.file.remove()))
    }

    /// Brings five masters up in containers, by Compose and what is in `docker/`; with `clocks` each has a wall clock of its own,
    /// as [`TestbedBuilder::clocks`] says. Takes some seconds; where the server's image must be pulled or made first, longer.
    /// Returns where they listen: the first free ports from 17101 on.
    ///
    /// Their project, which begins the names of containers, networks and volumes, is named after the place. If this is ended
    /// half-way, [`down`](Self::down) removes what there is.
    ///
    /// # Errors
    /// [`TestbedError::AlreadyUp`] if a bed is up here; [`TestbedError::NoEngine`] without a Docker engine or Compose;
    /// [`TestbedError::LeftBehind`] if there is something of this project already; otherwise with what was made removed again.
    pub fn up_containers(&self, clocks: bool) -> Result<Vec<String>, TestbedError> {
        self.take()?;
        let ready = || {
            let (program, compose) = (Compose::program()?, Compose::of(self.path()));
            // Before anything is made, so that `down` finds it.
            self.file.write_containers(&compose)?;
            Ok((program, compose))
        };
        let (program, compose) = ready().inspect_err(|_| drop(self.file.remove()))?;
        if compose.is_there()? {
            return Err(TestbedError::LeftBehind { project: compose.containers().project().to_owned() });
        }
        compose.up(program, clocks).inspect_err(|_| drop(self.down()))
    }

    /// Where its masters listen.
    ///
    /// # Errors
    /// [`TestbedError::NotUp`], or a record that cannot be relied on; without an engine, if they are containers.
    pub fn urls(&self) -> Result<Vec<String>, TestbedError> {
        Ok(self.status()?.into_iter().map(|master| master.url).collect())
    }

    /// Ends what is left of the bed and removes its folders and its file; of containers also networks and volumes. Nothing
    /// to do is no error.
    ///
    /// # Errors
    /// If a process cannot be ended or a folder not be removed; the file stays then, for another try. Or
    /// [`TestbedError::BadRecord`].
    pub fn down(&self) -> Result<Down, TestbedError> {
        let mut down = Down { was_up: true, ended: 0, already_gone: 0 };
        match self.file.read()? {
            None => return Ok(Down { was_up: false, ..down }),
            Some(Kept::Processes(masters)) => {
                for master in &masters {
                    match master.condition() {
                        Condition::Down => down.already_gone += 1,
                        _ => down.ended += 1,
                    }
                    master.kill()?;
                    master
                        .folder()
                        .remove()
                        .doing(|| format!("remove {}", master.folder().path().display()))?;
                }
            }
            Some(Kept::Containers(compose)) => {
                let ended = compose.remove()?;
                (down.ended, down.already_gone) = (ended.now, ended.before);
            }
        }
        self.file.remove()?;
        Ok(down)
    }

    /// How each master is, in order.
    ///
    /// # Errors
    /// As [`urls`](Self::urls). A master that is down, frozen, cut off or silent is a status, not an error.
    pub fn status(&self) -> Result<Vec<MasterStatus>, TestbedError> {
        match self.kept()? {
            Kept::Processes(masters) => {
                let status = |(index, master): (usize, &LocalMaster)| {
                    MasterStatus::of(index, master.url(), master.condition(), master.pid(), || master.wire())
                };
                Ok(masters.iter().enumerate().map(status).collect())
            }
            Kept::Containers(compose) => compose.containers().masters(),
        }
    }

    /// Puts a fault in place at one master, counted from 1 as their names are.
    ///
    /// # Errors
    /// As [`urls`](Self::urls), or [`TestbedError::NoSuchMaster`].
    pub fn fault(&self, master: usize, fault: Fault) -> Result<Outcome, TestbedError> {
        self.change(master, |masters| masters.inject(master, fault))
    }

    /// Takes a fault away again.
    ///
    /// # Errors
    /// As [`fault`](Self::fault).
    pub fn undo(&self, master: usize, fault: Fault) -> Result<Outcome, TestbedError> {
        self.change(master, |masters| masters.undo(master, fault))
    }

    /// Takes the place, or says what is there.
    fn take(&self) -> Result<(), TestbedError> {
        if self.file.take()? {
            return Ok(());
        }
        let what = match self.file.read()? {
            Some(Kept::Processes(masters)) if !masters.is_empty() => {
                let urls: Vec<String> = masters.iter().map(LocalMaster::url).collect();
                format!("processes of this machine, {}", urls.join(","))
            }
            Some(Kept::Containers(compose)) => format!("{}", compose.containers()),
            _ => "one that is being started, or was ended half-way".into(),
        };
        Err(TestbedError::AlreadyUp { what, path: self.path().to_owned() })
    }

    fn start(&self, bed: TestbedBuilder) -> Result<Vec<String>, TestbedError> {
        let mut masters = bed.start_on(|| Port::standing(Folder::is_there_for))?.into_masters();
        self.file.write_processes(&masters)?;
        masters.iter_mut().try_for_each(LocalMaster::let_go)?;
        Ok(masters.iter().map(LocalMaster::url).collect())
    }

    fn change(
        &self,
        asked: usize,
        act: impl FnOnce(&dyn Breakable) -> Outcome,
    ) -> Result<Outcome, TestbedError> {
        let is_there = |have| match asked {
            asked if (1..=have).contains(&asked) => Ok(()),
            asked => Err(TestbedError::NoSuchMaster { asked, have }),
        };
        match self.kept()? {
            Kept::Processes(masters) => {
                is_there(masters.len())?;
                let bed = Testbed::from(masters);
                let outcome = act(&bed);
                // It may have another process now, or none.
                self.file.write_processes(bed.masters())?;
                Ok(outcome)
            }
            Kept::Containers(compose) => {
                is_there(MASTERS)?;
                Ok(act(compose.containers()))
            }
        }
    }

    fn kept(&self) -> Result<Kept, TestbedError> {
        self.file.read()?.ok_or_else(|| TestbedError::NotUp { path: self.path().to_owned() })
    }
}
