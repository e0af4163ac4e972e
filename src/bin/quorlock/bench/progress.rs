//! How far it is, for who waits.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Global;
use crate::output;

/// A bar on a terminal, lines elsewhere, nothing if asked to be quiet.
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    pub(crate) fn begin(global: &Global, steps: usize) -> Self {
        if global.quiet {
            return Self::Silent;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} {bar:24} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self::Bar(bar)
    }

    pub(crate) fn step(&self, what: &str) {
        match self {
            Self::Bar(bar) => bar.set_message(what.to_owned()),
            Self::Lines => output::note(format_args!("bench: {what}")),
            Self::Silent => {}
        }
    }

    pub(crate) fn done(&self) {
        if let Self::Bar(bar) = self {
            bar.inc(1);
        }
    }

    pub(crate) fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
