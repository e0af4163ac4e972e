//! What processes and containers have in common.

use crate::testbed::bed::Testbed;
use crate::testbed::containers::Containers;
use crate::testbed::error::TestbedError;
use crate::testbed::fault::{Fault, Outcome};

/// Several masters, and faults on them: for what should run over processes and over containers alike.
pub trait Breakable: Send + Sync {
    /// Where clients reach them.
    ///
    /// # Errors
    /// If one of them cannot be reached at all.
    fn urls(&self) -> Result<Vec<String>, TestbedError>;

    /// Puts a fault in place at one master, counted from 1 as their names are. Takes some seconds with containers.
    fn inject(&self, master: usize, fault: Fault) -> Outcome;

    /// Takes a fault away again.
    fn undo(&self, master: usize, fault: Fault) -> Outcome;
}

impl Breakable for Testbed {
    fn urls(&self) -> Result<Vec<String>, TestbedError> {
        Ok(self.urls())
    }

    fn inject(&self, master: usize, fault: Fault) -> Outcome {
        match self.named(master) {
            Ok(master) => master.inject(fault),
            Err(error) => Outcome::skipped(error.to_string()),
        }
    }

    fn undo(&self, master: usize, fault: Fault) -> Outcome {
        match self.named(master) {
            Ok(master) => master.undo(fault),
            Err(error) => Outcome::skipped(error.to_string()),
        }
    }
}

impl Breakable for Containers {
    fn urls(&self) -> Result<Vec<String>, TestbedError> {
        self.urls()
    }

    fn inject(&self, master: usize, fault: Fault) -> Outcome {
        self.inject(master, fault)
    }

    fn undo(&self, master: usize, fault: Fault) -> Outcome {
        self.undo(master, fault)
    }
}
