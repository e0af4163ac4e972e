//! A process' own part of the history.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use crate::history::{Event, Nanos, Record};

pub(crate) fn now() -> Nanos {
    let time = std::time::Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

/// Appends to a file of the process' own: a pipe could be full while its reader is busy, and would lose what a kill
/// leaves in it.
#[derive(Clone)]
pub(crate) struct Log {
    by: Arc<str>,
    file: Arc<Mutex<File>>,
}

impl Log {
    pub(crate) fn open(folder: &Path, by: &str) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(folder.join(format!("{by}.jsonl")))?;
        Ok(Self { by: by.into(), file: Arc::new(Mutex::new(file)) })
    }

    /// Stamped now, and written before it returns, in one call, so that a kill does not leave half a line.
    pub(crate) fn say(&self, event: Event) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let record = Record { at: now(), by: self.by.to_string(), event };
        let mut line = serde_json::to_string(&record).unwrap_or_default();
        line.push('\n');
        // A disk that is full shows as a history that proves too little.
        let _ = file.write_all(line.as_bytes());
    }
}
