//! What can go wrong on purpose.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::testbed::condition::Data;
use crate::testbed::error::TestbedError;
use crate::testbed::local::LocalMaster;

/// How long writes pause unless said otherwise.
const PAUSE: Duration = Duration::from_secs(10);

/// How long `slow` delays each direction unless said otherwise.
const SLOW: Duration = Duration::from_millis(100);

/// One fault of one master. Its words ([`FromStr`], [`Display`](fmt::Display)) are the same for local processes,
/// containers and the proxy; what one of them cannot do is [skipped](Outcome::Skipped) there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// `kill`: kill −9. Undone by starting it again, with what it had on disk.
    Kill,
    /// `restart-empty`, `restart-with-data`, `restart-old-snapshot`: kill −9 and start again. Nothing to undo.
    Restart(Data),
    /// `snapshot`: remembers the data as they are, for `restart-old-snapshot`. No harm, and nothing to undo.
    Snapshot,
    /// `freeze`: SIGSTOP. Undone by `thaw`.
    Freeze,
    /// `thaw`: SIGCONT. Nothing to undo.
    Thaw,
    /// `cut`: a network partition. Nothing passes, nobody is told, and what was sent arrives after `join`.
    Cut,
    /// `join`: the partition heals. Nothing to undo.
    Join,
    /// `slow` (100 ms) or `slow=MS`: each direction is delayed by that.
    Slow(Duration),
    /// `lose-replies`: commands are applied, and nobody is told.
    LoseReplies,
    /// `lose-requests`: commands never arrive, and nobody is told.
    LoseRequests,
    /// `blackhole`: both are lost.
    Blackhole,
    /// `reset`: all connections are reset, once. Nothing to undo.
    Reset,
    /// `refuse`: new connections are refused; those that are open stay.
    Refuse,
    /// `clock-step=MS`: the wall clock is that far ahead of the true one, or behind it if negative.
    ClockStep(i64),
    /// `clock-slew=PPM`: the wall clock runs fast by that many parts per million from now on, or slow if negative.
    ClockSlew(i64),
    /// `flush`: FLUSHALL. Cannot be undone.
    Flush,
    /// `pause-writes` (10 s) or `pause-writes=MS`: CLIENT PAUSE … WRITE. Undone by CLIENT UNPAUSE.
    PauseWrites(Duration),
    /// `out-of-memory`: every command that could need memory is refused. Undone by the limit it had.
    OutOfMemory,
    /// `promote-replica`: the master is killed and its replica takes its place. Nothing to undo.
    PromoteReplica,
}

impl Fault {
    /// Every word, for help texts.
    pub const WORDS: [&'static str; 21] = [
        "kill",
        "restart-empty",
        "restart-with-data",
        "restart-old-snapshot",
        "snapshot",
        "freeze",
        "thaw",
        "cut",
        "join",
        "slow=MS",
        "lose-replies",
        "lose-requests",
        "blackhole",
        "reset",
        "refuse",
        "clock-step=MS",
        "clock-slew=PPM",
        "flush",
        "pause-writes=MS",
        "out-of-memory",
        "promote-replica",
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Restart(Data::Empty) => "restart-empty",
            Self::Restart(Data::Kept) => "restart-with-data",
            Self::Restart(Data::Old) => "restart-old-snapshot",
            Self::Snapshot => "snapshot",
            Self::Freeze => "freeze",
            Self::Thaw => "thaw",
            Self::Cut => "cut",
            Self::Join => "join",
            Self::Slow(time) => return write!(f, "slow={}", time.as_millis()),
            Self::LoseReplies => "lose-replies",
            Self::LoseRequests => "lose-requests",
            Self::Blackhole => "blackhole",
            Self::Reset => "reset",
            Self::Refuse => "refuse",
            Self::ClockStep(millis) => return write!(f, "clock-step={millis}"),
            Self::ClockSlew(ppm) => return write!(f, "clock-slew={ppm}"),
            Self::Flush => "flush",
            Self::PauseWrites(time) => return write!(f, "pause-writes={}", time.as_millis()),
            Self::OutOfMemory => "out-of-memory",
            Self::PromoteReplica => "promote-replica",
        })
    }
}

/// A word that names no [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault {word:?}: one of {}", Fault::WORDS.join(", "))]
pub struct UnknownFault {
    word: String,
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(word: &str) -> Result<Self, UnknownFault> {
        let unknown = || UnknownFault { word: word.to_owned() };
        let (name, number) = match word.split_once('=') {
            Some((name, number)) => (name, Some(number.parse::<i64>().map_err(|_| unknown())?)),
            None => (word, None),
        };
        let millis = |usual: Duration| match number.map(u64::try_from) {
            None => Ok(usual),
            Some(Ok(millis)) => Ok(Duration::from_millis(millis)),
            Some(Err(_)) => Err(unknown()),
        };
        Ok(match (name, number) {
            ("pause-writes", _) => Self::PauseWrites(millis(PAUSE)?),
            ("slow", _) => Self::Slow(millis(SLOW)?),
            // A century: far within what a clock can hold.
            ("clock-step", Some(ahead)) if ahead.abs() < 3_155_760_000_000 => Self::ClockStep(ahead),
            ("clock-slew", Some(ppm)) if ppm.abs() < 1_000_000 => Self::ClockSlew(ppm),
            (_, Some(_)) => return Err(unknown()),
            ("kill", None) => Self::Kill,
            ("restart-empty", None) => Self::Restart(Data::Empty),
            ("restart-with-data", None) => Self::Restart(Data::Kept),
            ("restart-old-snapshot", None) => Self::Restart(Data::Old),
            ("snapshot", None) => Self::Snapshot,
            ("freeze", None) => Self::Freeze,
            ("thaw", None) => Self::Thaw,
            ("cut", None) => Self::Cut,
            ("join", None) => Self::Join,
            ("lose-replies", None) => Self::LoseReplies,
            ("lose-requests", None) => Self::LoseRequests,
            ("blackhole", None) => Self::Blackhole,
            ("reset", None) => Self::Reset,
            ("refuse", None) => Self::Refuse,
            ("flush", None) => Self::Flush,
            ("out-of-memory", None) => Self::OutOfMemory,
            ("promote-replica", None) => Self::PromoteReplica,
            _ => return Err(unknown()),
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

    pub(super) fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped { why: why.into() }
    }

    pub(super) fn of(done: Result<(), TestbedError>) -> Self {
        match done {
            Ok(()) => Self::Installed,
            Err(error @ (TestbedError::WrongCondition { .. } | TestbedError::Cannot { .. })) => {
                Self::skipped(error.to_string())
            }
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
    pub(super) master: &'a LocalMaster,
    pub(super) fault: Fault,
    pub(super) outcome: Outcome,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_a_fault_that_is_printed_by_it() {
        for word in Fault::WORDS {
            let word = word.replace("MS", "250").replace("PPM", "-500");
            assert_eq!(word.parse::<Fault>().unwrap().to_string(), word);
        }
        assert_eq!("pause-writes".parse(), Ok(Fault::PauseWrites(PAUSE)));
        assert_eq!("slow".parse(), Ok(Fault::Slow(SLOW)));
        assert_eq!("clock-step=-5000".parse(), Ok(Fault::ClockStep(-5000)));
        for word in ["melt", "kill=9", "slow=-1", "slow=x", "clock-step", "clock-slew=1000000", "slow="] {
            let error = word.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("restart-empty"), "{error}");
        }
    }
}
