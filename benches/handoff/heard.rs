//! What the masters are told, counted.

use quorlock::testbed::{Testbed, Wire};

use crate::contend::Round;
use crate::{Failure, RESOURCE};

const END: &str = "the end of the round";

/// Listens at the first master: all masters are asked the same.
pub(crate) struct Ear<'a> {
    bed: &'a Testbed,
    wire: Wire,
}

impl<'a> Ear<'a> {
    pub(crate) fn on(bed: &'a Testbed) -> Result<Self, Failure> {
        let mut wire = bed.masters()[0].wire()?;
        wire.command(&["MONITOR"])?;
        Ok(Self { bed, wire })
    }

    /// Commands that name the lock, not those inside scripts, on all masters together and per acquisition.
    pub(crate) fn commands_per(mut self, round: &Round) -> Result<f64, Failure> {
        self.bed.masters()[0].command(&["ECHO", END])?;
        let mut count = 0u64;
        loop {
            let line = self.wire.reply()?.text().ok_or("a line of the monitor is no text")?;
            if line.contains(END) {
                break;
            }
            let outside = !line.split_once("] ").is_some_and(|(origin, _)| origin.ends_with(" lua"));
            count += u64::from(outside && line.contains(&format!("\"{RESOURCE}\"")));
        }
        let masters = self.bed.masters().len() as f64;
        Ok(count as f64 * masters / round.count().max(1) as f64)
    }
}
