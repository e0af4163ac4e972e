//! What can go wrong on purpose.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use crate::testbed::condition::{Condition, Data};
use crate::testbed::error::TestbedError;
use crate::testbed::local::LocalMaster;
use crate::testbed::wire::Reply;

/// How long writes pause unless said otherwise.
const PAUSE: Duration = Duration::from_secs(10);

/// The memory that leaves none for a new key.
const NO_MEMORY: &str = "1";

/// One fault of one master. Its words ([`FromStr`], [`Display`](fmt::Display)) are the same for local processes,
/// containers and the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// `kill`: kill −9. Undone by starting it again, with what it had on disk.
    Kill,
    /// `restart-empty`, `restart-with-data`: kill −9 and start again. Nothing to undo.
    Restart(Data),
    /// `freeze`: SIGSTOP. Undone by `thaw`.
    Freeze,
    /// `thaw`: SIGCONT. Nothing to undo.
    Thaw,
    /// `flush`: FLUSHALL. Cannot be undone.
    Flush,
    /// `pause-writes` (10 s) or `pause-writes=MS`: CLIENT PAUSE … WRITE. Undone by CLIENT UNPAUSE.
    PauseWrites(Duration),
    /// `out-of-memory`: every command that could need memory is refused. Undone by the limit it had.
    OutOfMemory,
}

impl Fault {
    /// Every word, for help texts.
    pub const WORDS: [&'static str; 8] = [
        "kill",
        "restart-empty",
        "restart-with-data",
        "freeze",
        "thaw",
        "flush",
        "pause-writes",
        "out-of-memory",
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Restart(Data::Empty) => "restart-empty",
            Self::Restart(Data::Kept) => "restart-with-data",
            Self::Freeze => "freeze",
            Self::Thaw => "thaw",
            Self::Flush => "flush",
            Self::PauseWrites(time) => return write!(f, "pause-writes={}", time.as_millis()),
            Self::OutOfMemory => "out-of-memory",
        })
    }
}

/// A word that names no [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault {word:?}: one of {}, or pause-writes=MILLISECONDS", Fault::WORDS.join(", "))]
pub struct UnknownFault {
    word: String,
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(word: &str) -> Result<Self, UnknownFault> {
        let unknown = || UnknownFault { word: word.to_owned() };
        Ok(match word {
            "kill" => Self::Kill,
            "restart-empty" => Self::Restart(Data::Empty),
            "restart-with-data" => Self::Restart(Data::Kept),
            "freeze" => Self::Freeze,
            "thaw" => Self::Thaw,
            "flush" => Self::Flush,
            "pause-writes" => Self::PauseWrites(PAUSE),
            "out-of-memory" => Self::OutOfMemory,
            _ => {
                let millis = word.strip_prefix("pause-writes=").and_then(|number| number.parse().ok());
                Self::PauseWrites(Duration::from_millis(millis.ok_or_else(unknown)?))
            }
        })
    }
}

/// What became of a fault, or of undoing one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// In place.
    Installed,
    /// Certainly nothing was done.
    Skipped {
        /// Why not.
        why: String,
    },
    /// It may be in place.
    Indeterminate {
        /// What was seen.
        why: String,
    },
}

impl Outcome {
    /// Whether it is certainly in place.
    pub fn is_installed(&self) -> bool {
        *self == Self::Installed
    }

    /// `installed`, `skipped` or `indeterminate`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Skipped { .. } => "skipped",
            Self::Indeterminate { .. } => "indeterminate",
        }
    }

    fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped { why: why.into() }
    }

    fn of(done: Result<(), TestbedError>) -> Self {
        match done {
            Ok(()) => Self::Installed,
            Err(error @ TestbedError::WrongCondition { .. }) => Self::skipped(error.to_string()),
            Err(error) => Self::Indeterminate { why: error.to_string() },
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installed => f.write_str(self.word()),
            Self::Skipped { why } | Self::Indeterminate { why } => write!(f, "{}: {why}", self.word()),
        }
    }
}

/// A fault in place for as long as this lives.
#[derive(Debug)]
#[must_use = "the fault is undone when this is dropped"]
pub struct Injected<'a> {
    master: &'a LocalMaster,
    fault: Fault,
    outcome: Outcome,
}

impl Injected<'_> {
    /// What became of it.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl Drop for Injected<'_> {
    fn drop(&mut self) {
        if !matches!(self.outcome, Outcome::Skipped { .. }) {
            let _ = self.master.undo(self.fault);
        }
    }
}

impl LocalMaster {
    /// Puts a fault in place.
    pub fn inject(&self, fault: Fault) -> Outcome {
        match (fault, self.condition()) {
            (Fault::Kill, Condition::Down) => Outcome::skipped("already down"),
            (Fault::Kill, _) => Outcome::of(self.kill()),
            (Fault::Restart(data), _) => Outcome::of(self.restart(data)),
            (Fault::Freeze, Condition::Frozen) => Outcome::skipped("already frozen"),
            (Fault::Freeze, _) => Outcome::of(self.freeze()),
            (Fault::Thaw, Condition::Up) => Outcome::skipped("not frozen"),
            (Fault::Thaw, _) => Outcome::of(self.thaw()),
            (Fault::Flush, _) => self.ask(&["FLUSHALL"]),
            (Fault::PauseWrites(time), _) => {
                self.ask(&["CLIENT", "PAUSE", &time.as_millis().to_string(), "WRITE"])
            }
            (Fault::OutOfMemory, _) => self.ask(&["CONFIG", "SET", "maxmemory", NO_MEMORY]),
        }
    }

    /// Takes a fault away again. [`Outcome::Installed`] says that the master is as it was.
    pub fn undo(&self, fault: Fault) -> Outcome {
        match (fault, self.condition()) {
            (Fault::Kill, Condition::Down) => Outcome::of(self.restart(Data::Kept)),
            (Fault::Kill, _) => Outcome::skipped("not down"),
            (Fault::Freeze, _) => self.inject(Fault::Thaw),
            (Fault::PauseWrites(_), _) => self.ask(&["CLIENT", "UNPAUSE"]),
            (Fault::OutOfMemory, _) => {
                self.ask(&["CONFIG", "SET", "maxmemory", self.argument("maxmemory").unwrap_or("0")])
            }
            (Fault::Flush, _) => Outcome::skipped("what was flushed is gone"),
            (Fault::Restart(_) | Fault::Thaw, _) => Outcome::skipped("nothing to undo"),
        }
    }

    /// Puts a fault in place until the returned value is dropped.
    pub fn injected(&self, fault: Fault) -> Injected<'_> {
        Injected { master: self, fault, outcome: self.inject(fault) }
    }

    fn ask(&self, command: &[&str]) -> Outcome {
        match self.condition() {
            // A frozen master would do it once it is thawed, long after somebody stopped waiting.
            condition @ (Condition::Frozen | Condition::Down) => {
                Outcome::skipped(format!("it is {}", condition.as_str()))
            }
            Condition::Up => match self.command(command) {
                Ok(reply) if reply.is_ok() => Outcome::Installed,
                Ok(Reply::Error(refusal)) => Outcome::skipped(refusal),
                Ok(other) => Outcome::Indeterminate { why: format!("it answered {other:?}") },
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    Outcome::skipped(error.to_string())
                }
                Err(error) => Outcome::Indeterminate { why: error.to_string() },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_a_fault_that_is_printed_by_it() {
        for word in Fault::WORDS {
            let printed = word.parse::<Fault>().unwrap().to_string();
            assert!(printed == word || printed == format!("{word}=10000"), "{word} became {printed}");
        }
        assert_eq!("pause-writes=250".parse(), Ok(Fault::PauseWrites(Duration::from_millis(250))));
        let error = "melt".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("melt") && error.contains("restart-empty"), "{error}");
    }
}
