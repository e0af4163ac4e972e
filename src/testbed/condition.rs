//! How a master is, and how it comes back.

use serde::Serialize;

/// With what a killed master comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// With what it had on disk, which is something only if it was started with `--appendonly yes` or `--save`.
    Kept,
    /// With nothing.
    Empty,
    /// With what it had when it was last told to remember (`snapshot`), however long ago.
    Old,
}

/// What can be told of a master from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// Its process runs.
    Up,
    /// Its process is stopped: connections open, nothing is answered.
    Frozen,
    /// A container without a network: it runs, and nobody reaches it.
    Cut,
    /// It has no process.
    Down,
}

impl Condition {
    /// `up`, `frozen`, `cut` or `down`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Frozen => "frozen",
            Self::Cut => "cut",
            Self::Down => "down",
        }
    }
}
