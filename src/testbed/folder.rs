//! The directory of one master: its data and its log.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Begins the name of every such directory. Nothing else is ever removed.
const NAME: &str = "quorlock-master-";

/// How much of the log an error quotes.
const LAST_LINES: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A new directory in the temporary one, for this user only. The port makes the name unique among the
    /// masters that run, the number after it among those that left theirs behind.
    pub(super) fn create(port: u16) -> io::Result<Self> {
        let mut number = 0;
        loop {
            let path = std::path::absolute(Self::named(port, number))?;
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let folder = Self { path };
                    fs::create_dir(folder.data())?;
                    return Ok(folder);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a master of this port, running or killed, has a directory.
    pub(super) fn is_there_for(port: u16) -> bool {
        Self::named(port, 0).symlink_metadata().is_ok()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the master keeps on disk.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Forgets what the master kept on disk.
    pub(super) fn wipe(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.data()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir(self.data())
    }

    /// The snapshot that was remembered.
    pub(super) fn snapshot(&self) -> PathBuf {
        self.path.join("snapshot.rdb")
    }

    /// Keeps a copy of what the master just saved.
    pub(super) fn remember(&self) -> io::Result<()> {
        fs::copy(self.saved(), self.snapshot()).map(drop)
    }

    /// Puts the copy where the master looks for it when it starts.
    pub(super) fn recall(&self) -> io::Result<()> {
        fs::copy(self.snapshot(), self.saved()).map(drop)
    }

    fn saved(&self) -> PathBuf {
        self.data().join("dump.rdb")
    }

    /// Where the server's own messages go.
    pub(super) fn log(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(self.log_path())
    }

    /// The last lines of the log, each on a line of its own and indented.
    pub(super) fn last_words(&self) -> String {
        let log = fs::read(self.log_path()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        lines
            .iter()
            .skip(lines.len().saturating_sub(LAST_LINES))
            .map(|line| format!("\n    {line}"))
            .collect()
    }

    /// Removes the directory, if it has the name of one of ours.
    pub(super) fn remove(&self) -> io::Result<()> {
        let ours = self.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME));
        if !ours {
            return Err(io::Error::other(format!("{} is not a master's folder", self.path.display())));
        }
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn named(port: u16, number: u32) -> PathBuf {
        std::env::temp_dir().join(format!("{NAME}{port}-{number}"))
    }

    fn log_path(&self) -> PathBuf {
        self.path.join("server.log")
    }
}
