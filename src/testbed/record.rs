//! What a standing bed leaves on disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::testbed::binary::ServerBinary;
use crate::testbed::compose::Compose;
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::folder::Folder;
use crate::testbed::local::LocalMaster;
use crate::testbed::process::Identity;
use crate::testbed::skew::Preload;

/// Counts changes that an older program could not read; this one reads the older ones.
const VERSION: u32 = 2;

/// What a record names.
#[derive(Debug)]
pub(super) enum Kept {
    Processes(Vec<LocalMaster>),
    Containers(Compose),
}

/// The masters of a bed, as they are written down.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    #[serde(default)]
    masters: Vec<Entry>,
    /// The project's name, if they are containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    port: u16,
    /// None while it is down.
    process: Option<Identity>,
    folder: Folder,
    binary: ServerBinary,
    arguments: Vec<String>,
    #[serde(default)]
    preload: Option<Preload>,
}

/// The file of a record.
#[derive(Debug, Clone)]
pub(super) struct RecordFile {
    path: PathBuf,
}

impl RecordFile {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// One per user: in the user's own runtime directory, else in the temporary one.
    pub(super) fn usual() -> Self {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
        let folder = runtime.unwrap_or_else(std::env::temp_dir);
        Self { path: folder.join(format!("quorlock-testbed-{}.json", getuid().as_raw())) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file, empty: from here on the place is taken, so that of two `up` at once one fails. False if it was there.
    pub(super) fn take(&self) -> Result<bool, TestbedError> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .doing(|| format!("create {}", folder.display()))?;
        }
        match open_new(&self.path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error).doing(|| format!("create {}", self.path.display())),
        }
    }

    pub(super) fn write_processes(&self, masters: &[LocalMaster]) -> Result<(), TestbedError> {
        let entry = |master: &LocalMaster| Entry {
            port: master.port(),
            process: master.identity(),
            folder: master.folder().clone(),
            binary: master.binary().clone(),
            arguments: master.arguments().to_vec(),
            preload: master.preload().cloned(),
        };
        self.write(&Record { version: VERSION, masters: masters.iter().map(entry).collect(), project: None })
    }

    pub(super) fn write_containers(&self, compose: &Compose) -> Result<(), TestbedError> {
        let project = Some(compose.containers().project().to_owned());
        self.write(&Record { version: VERSION, masters: Vec::new(), project })
    }

    /// Writes it anew, whole or not at all.
    fn write(&self, record: &Record) -> Result<(), TestbedError> {
        let mut next = self.path.clone().into_os_string();
        next.push(".next");
        let written = || {
            let _ = fs::remove_file(&next);
            open_new(Path::new(&next))?.write_all(&serde_json::to_vec_pretty(record)?)?;
            fs::rename(&next, &self.path)
        };
        written().doing(|| format!("write {}", self.path.display()))
    }

    /// The masters that it names, or none if there is no such file. A file without content is what an `up` leaves
    /// that was killed half-way, whose masters ended with it.
    pub(super) fn read(&self) -> Result<Option<Kept>, TestbedError> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // What it says is killed and removed; the temporary directory is everybody's.
            Ok(meta) if !meta.is_file() || meta.uid() != getuid().as_raw() => {
                return Err(self.bad("it is not a file of this user"));
            }
            _ => {}
        }
        let text = fs::read(&self.path).doing(|| format!("read {}", self.path.display()))?;
        if text.is_empty() {
            return Ok(Some(Kept::Processes(Vec::new())));
        }
        let record: Record = serde_json::from_slice(&text).map_err(|error| self.bad(error.to_string()))?;
        if record.version > VERSION {
            return Err(self.bad(format!("its version is {}, this program reads {VERSION}", record.version)));
        }
        Ok(Some(match record.project {
            Some(project) => Kept::Containers(Compose::named(project, &self.path)),
            None => Kept::Processes(record.masters.into_iter().map(Entry::adopt).collect()),
        }))
    }

    pub(super) fn remove(&self) -> Result<(), TestbedError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).doing(|| format!("remove {}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    fn bad(&self, why: impl Into<String>) -> TestbedError {
        TestbedError::BadRecord { path: self.path.clone(), why: why.into() }
    }
}

impl Entry {
    fn adopt(self) -> LocalMaster {
        LocalMaster::adopted(self.binary, self.arguments, self.port, self.folder, self.preload, self.process)
    }
}

fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
