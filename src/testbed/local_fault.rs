//! Faults of a local process.

use std::io;

use crate::testbed::condition::{Condition, Data};
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::fault::{Fault, Injected, Outcome};
use crate::testbed::local::LocalMaster;
use crate::testbed::skew::Skew;
use crate::testbed::wire::Reply;

/// The memory that leaves none for a new key.
const NO_MEMORY: &str = "1";

const NO_PROXY: &str = "it takes a proxy in front of the master (quorlock::testbed::Proxy)";

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
            (Fault::Snapshot, _) => Outcome::of(self.snapshot()),
            (Fault::ClockStep(millis), _) => Outcome::of(self.set_clock(Skew::Step(millis))),
            (Fault::ClockSlew(ppm), _) => Outcome::of(self.set_clock(Skew::Slew(ppm))),
            (Fault::Flush, _) => self.ask(&["FLUSHALL"]),
            (Fault::PauseWrites(time), _) => {
                self.ask(&["CLIENT", "PAUSE", &time.as_millis().to_string(), "WRITE"])
            }
            (Fault::OutOfMemory, _) => self.ask(&["CONFIG", "SET", "maxmemory", NO_MEMORY]),
            (fault, _) if fault.is_on_the_way() => Outcome::skipped(NO_PROXY),
            _ => Outcome::skipped("it has no replica"),
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
            (Fault::ClockStep(_) | Fault::ClockSlew(_), _) => Outcome::of(self.set_clock(Skew::Step(0))),
            _ => Outcome::skipped("nothing to undo"),
        }
    }

    /// Puts a fault in place until the returned value is dropped.
    pub fn injected(&self, fault: Fault) -> Injected<'_> {
        Injected { master: self, fault, outcome: self.inject(fault) }
    }

    /// Remembers its data as they are now, for a [`restart`](Self::restart) with [`Data::Old`].
    ///
    /// # Errors
    /// If it is not up, or cannot write them to disk.
    pub fn snapshot(&self) -> Result<(), TestbedError> {
        if self.condition() != Condition::Up {
            let condition = self.condition().as_str();
            return Err(TestbedError::WrongCondition { port: self.port(), condition });
        }
        let saved = self.command(&["SAVE"]).and_then(|reply| match reply {
            reply if reply.is_ok() => self.folder().remember(),
            other => Err(io::Error::other(other.text().unwrap_or_default())),
        });
        saved.doing(|| format!("take a snapshot of the master on port {}", self.port()))
    }

    /// Steps or slews its wall clock.
    fn set_clock(&self, skew: Skew) -> Result<(), TestbedError> {
        match self.preload() {
            Some(preload) => preload.set(skew),
            None => Err(TestbedError::Cannot { why: "it was started without a clock of its own".into() }),
        }
    }

    fn ask(&self, command: &[&str]) -> Outcome {
        match self.condition() {
            // A frozen master would do it once it is thawed, long after somebody stopped waiting.
            condition @ (Condition::Frozen | Condition::Cut | Condition::Down) => {
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
