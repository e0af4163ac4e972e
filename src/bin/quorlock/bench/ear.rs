//! What clients send, counted.

use quorlock::testbed::{LocalMaster, Wire};

const END: &str = "the end of the round";

/// Listens at one master. Whoever it listens to is slower meanwhile.
pub(crate) struct Ear {
    told: Wire,
    asks: Wire,
}

impl Ear {
    pub(crate) fn on(master: &LocalMaster) -> Result<Self, String> {
        let failed = |error| format!("listening at a master: {error}");
        let (mut told, asks) = (master.wire().map_err(failed)?, master.wire().map_err(failed)?);
        told.command(&["MONITOR"]).map_err(failed)?;
        Ok(Self { told, asks })
    }

    /// How many commands came since, not counting those that scripts called.
    pub(crate) fn heard(mut self) -> Result<usize, String> {
        let failed = |error| format!("listening at a master: {error}");
        self.asks.command(&["ECHO", END]).map_err(failed)?;
        let mut count = 0;
        loop {
            let line = self.told.reply().map_err(failed)?;
            let line = line.text().ok_or("listening at a master: a line that is no text")?;
            if line.contains(END) {
                return Ok(count);
            }
            let by_script = line.split_once("] ").is_some_and(|(origin, _)| origin.ends_with(" lua"));
            count += usize::from(!by_script);
        }
    }
}
