//! What a standing bed leaves on disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::testbed::binary::ServerBinary;
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::folder::Folder;
use crate::testbed::local::LocalMaster;
use crate::testbed::process::Identity;
use crate::testbed::skew::Preload;

/// Counts changes that an older program could not read.
const VERSION: u32 = 1;

/// The masters of a bed, as they are written down.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    masters: Vec<Entry>,
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

    /// Makes the file, empty: from here on the place is taken, so that of two `up` at once one fails.
    pub(super) fn take(&self) -> Result<(), TestbedError> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .doing(|| format!("create {}", folder.display()))?;
        }
        match open_new(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(TestbedError::AlreadyUp { path: self.path.clone() })
            }
            Err(error) => Err(error).doing(|| format!("create {}", self.path.display())),
        }
    }

    /// Writes it anew, whole or not at all.
    pub(super) fn write(&self, masters: &[LocalMaster]) -> Result<(), TestbedError> {
        let entry = |master: &LocalMaster| Entry {
            port: master.port(),
            process: master.identity(),
            folder: master.folder().clone(),
            binary: master.binary().clone(),
            arguments: master.arguments().to_vec(),
            preload: master.preload().cloned(),
        };
        let record = Record { version: VERSION, masters: masters.iter().map(entry).collect() };
        let mut next = self.path.clone().into_os_string();
        next.push(".next");
        let written = || {
            let _ = fs::remove_file(&next);
            open_new(Path::new(&next))?.write_all(&serde_json::to_vec_pretty(&record)?)?;
            fs::rename(&next, &self.path)
        };
        written().doing(|| format!("write {}", self.path.display()))
    }

    /// The masters that it names, or none if there is no such file. A file without content is what an `up` leaves
    /// that was killed half-way, whose masters ended with it.
    pub(super) fn read(&self) -> Result<Option<Vec<LocalMaster>>, TestbedError> {
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
            return Ok(Some(Vec::new()));
        }
        let record: Record = serde_json::from_slice(&text).map_err(|error| self.bad(error.to_string()))?;
        if record.version != VERSION {
            return Err(self.bad(format!("its version is {}, this program reads {VERSION}", record.version)));
        }
        Ok(Some(record.masters.into_iter().map(Entry::adopt).collect()))
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
