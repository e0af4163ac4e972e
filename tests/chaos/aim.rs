//! What the clients are at, by the last lines that they wrote: for faults that must strike at the right moment.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::history::{Event, Nanos, Record};

/// How much of the end of a log is read: more than what a client writes under one lock.
const TAIL: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Asks { resource: String },
    Holds { resource: String, deadline: Nanos },
    Else,
}

impl At {
    pub(crate) fn of(folder: &Path, client: &str) -> io::Result<Self> {
        let mut file = File::open(folder.join(format!("{client}.jsonl")))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        // Of the first line half may be missing.
        let records = tail.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Ok(records.fold(Self::Else, Self::then))
    }

    fn then(self, record: Record) -> Self {
        match (record.event, self) {
            (Event::Start { resource, .. }, _) => Self::Asks { resource },
            (Event::Granted { deadline, .. }, Self::Asks { resource })
            | (
                Event::Renewed { deadline, .. } | Event::Lowered { deadline, .. },
                Self::Holds { resource, .. },
            ) => Self::Holds { resource, deadline },
            (
                Event::Refused { .. }
                | Event::Lost { .. }
                | Event::Exit { .. }
                | Event::ReleaseCalled { .. }
                | Event::Drop { .. },
                _,
            ) => Self::Else,
            (_, unchanged) => unchanged,
        }
    }
}
