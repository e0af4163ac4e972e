//! A wall clock that can be stepped and slewed, for one server process.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::testbed::error::{Doing, TestbedError};

/// The preload, without any library, so that it works whatever C library the server uses.
const SOURCE: &str = include_str!("../../docker/skew.c");

const FLAGS: &str = "-x c - -shared -fPIC -O2 -nostdlib -fno-builtin -fno-stack-protector -o";

/// How a wall clock deviates from the true one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Skew {
    /// Ahead by these milliseconds.
    Step(i64),
    /// Running fast, by so many parts per million, from now on.
    Slew(i64),
}

impl Skew {
    /// The line that the preload reads.
    pub(super) fn line(self) -> String {
        match self {
            Self::Step(millis) => format!("{} 0 0\n", millis.saturating_mul(1000)),
            Self::Slew(ppm) => {
                let now = clock_gettime(ClockId::Realtime);
                format!("0 {ppm} {}\n", now.tv_sec.saturating_mul(1_000_000) + now.tv_nsec / 1000)
            }
        }
    }
}

/// The preload, compiled: in a master's own folder, so that it goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Preload {
    folder: PathBuf,
}

impl Preload {
    /// Compiles it into `folder`, by the system's C compiler.
    pub(super) fn compile(folder: &Path) -> Result<Self, TestbedError> {
        let preload = Self { folder: folder.to_owned() };
        let cannot =
            |what: &str| TestbedError::Cannot { why: format!("a master's clock needs a C compiler: {what}") };
        let mut cc = Command::new("cc")
            .args(FLAGS.split_ascii_whitespace())
            .arg(preload.library())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| cannot(&format!("cc: {error}")))?;
        // If it ends before it read all, its own words say why.
        let _ = cc.stdin.take().map(|mut stdin| stdin.write_all(SOURCE.as_bytes()));
        let output = cc.wait_with_output().doing(|| "wait for cc".into())?;
        if output.status.success() {
            preload.set(Skew::Step(0))?;
            Ok(preload)
        } else {
            Err(cannot(&String::from_utf8_lossy(&output.stderr)))
        }
    }

    /// For the server's environment.
    pub(super) fn variables(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library()), ("QUORLOCK_CLOCK", self.file())]
    }

    pub(super) fn set(&self, skew: Skew) -> Result<(), TestbedError> {
        let written = || -> io::Result<()> {
            let next = self.folder.join("clock.next");
            fs::write(&next, skew.line())?;
            fs::rename(next, self.file())
        };
        written().doing(|| format!("write {}", self.file().display()))
    }

    fn library(&self) -> PathBuf {
        self.folder.join("skew.so")
    }

    fn file(&self) -> PathBuf {
        self.folder.join("clock")
    }
}
