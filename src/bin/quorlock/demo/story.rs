//! The time line, the progress line, and the summary.

use std::io::{self, IsTerminal, Write};

use serde_json::{Value, json};

use super::event::{Nanos, now};
use super::ledger::Ledger;
use crate::args::Global;

pub(crate) struct Story {
    began: Nanos,
    json: bool,
    quiet: bool,
    /// Whether a line may be written over and over.
    lively: bool,
    told: Vec<Value>,
}

impl Story {
    pub(crate) fn begin(global: &Global) -> Self {
        let lively = io::stderr().is_terminal() && !global.quiet;
        Self { began: now(), json: global.json, quiet: global.quiet, lively, told: Vec::new() }
    }

    pub(crate) fn elapsed(&self, at: Nanos) -> f64 {
        std::time::Duration::from_nanos(at.saturating_sub(self.began)).as_secs_f64()
    }

    /// One line of the time line. With `--json` standard output is for the one object.
    pub(crate) fn tell(&mut self, what: &str) {
        let at = self.elapsed(now());
        self.told.push(json!({ "at_s": (at * 1e3).round() / 1e3, "what": what }));
        if self.quiet {
            return;
        }
        self.clear();
        let line = format!("{at:6.1} s  {what}");
        let _ = if self.json { writeln!(io::stderr(), "{line}") } else { writeln!(io::stdout(), "{line}") };
    }

    /// The line at the bottom, on a terminal.
    pub(crate) fn progress(&self, ledger: &Ledger) {
        if self.lively {
            let at = now();
            let holder =
                ledger.holder(at).map_or("nobody".to_owned(), |holder| format!("contender {}", holder + 1));
            let (elapsed, wrote) = (self.elapsed(at), ledger.wrote());
            let _ = write!(io::stderr(), "\r\x1b[K{elapsed:6.1} s  {wrote} increments, {holder} holds\r");
        }
    }

    pub(crate) fn clear(&self) {
        if self.lively {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    pub(crate) fn told(&self) -> &[Value] {
        &self.told
    }
}
