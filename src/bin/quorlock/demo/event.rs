//! What a contender tells the stage, one JSON object a line, by the machine's one clock.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds of `CLOCK_BOOTTIME`, which all processes of a machine read alike, and locks are judged by.
pub(crate) type Nanos = u64;

pub(crate) fn now() -> Nanos {
    let time = std::time::Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// Its client is connected.
    Ready,
    /// It has the lock, until then unless renewed.
    Entered { at: Nanos, valid_until: Nanos },
    /// A renewal moved the deadline.
    Renewed { valid_until: Nanos },
    /// As ordered, it thinks on and on. It will not write before it is told to go on.
    Pondering { at: Nanos },
    /// It looked at the lock, which was valid, and wrote.
    Wrote { at: Nanos, value: u64 },
    /// It looked at the lock, which was over, and did not write.
    Refused { at: Nanos },
    /// It is done with the counter, and about to give the lock back.
    Left { at: Nanos },
    /// It did not get the lock.
    Missed { why: String },
    /// What stands in the file is no number: two wrote at once.
    Unreadable { text: String },
    /// It gave its connections back and ends.
    Finished,
}

/// What the stage tells a contender, one word a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Think on, now or the next time, until told to go on.
    Ponder,
    GoOn,
    Stop,
}

impl Order {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ponder => "ponder\n",
            Self::GoOn => "go on\n",
            Self::Stop => "stop\n",
        }
    }

    /// Whatever is not understood means the end, as does the end of the stage.
    pub(crate) fn read(line: &str) -> Self {
        match line.trim() {
            "ponder" => Self::Ponder,
            "go on" => Self::GoOn,
            _ => Self::Stop,
        }
    }
}
