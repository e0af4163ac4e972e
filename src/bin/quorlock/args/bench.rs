//! What can be said to `bench`.

use std::path::PathBuf;

use clap::Args;

const HELP: &str = "\
Examples:
  quorlock bench --quick
  quorlock bench --html report.html --json report.json
  quorlock bench --profile loopback,tasks --against single,rslock
  quorlock bench --quick --baseline report.json --fail-above 10%";

/// What a quorum costs beside a single instance: latency, throughput, faults, hand-off, renewal, cost.
///
/// Starts its own masters, unless some are given: on those it uses keys of its own prefix, breaks nothing, and leaves no key.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Bench {
    /// A minute instead of some: the same scenarios, shorter.
    #[arg(long)]
    pub(crate) quick: bool,
    /// These scenarios only: loopback, tasks, distance, faults, timeline, rate, handoff, renewal.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) profile: Vec<String>,
    /// These rows only beside `quorlock`: single, fred, rslock and so on.
    #[arg(long, value_name = "ROW,…", value_delimiter = ',')]
    pub(crate) against: Vec<String>,
    /// With --json: writes all figures there, with the version of their schema, and prints the table. Without it --json prints them.
    #[arg(value_name = "FILE", requires = "json")]
    pub(crate) file: Option<PathBuf>,
    /// Writes a page with charts there, which needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Writes each chart there as a picture of its own.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) charts: Option<PathBuf>,
    /// What --json FILE wrote earlier, to compare with.
    #[arg(long, value_name = "FILE", requires = "fail_above")]
    pub(crate) baseline: Option<PathBuf>,
    /// Ends with 1 if a figure of ours is worse by more than that, and not by chance.
    #[arg(long, value_name = "PERCENT", requires = "baseline", value_parser = percent)]
    pub(crate) fail_above: Option<f64>,
    /// Of all times, for tests.
    #[arg(long, hide = true, default_value_t = 1.0)]
    pub(crate) scale: f64,
}

/// `10%`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|number| *number >= 0.0 && number.is_finite())
        .ok_or_else(|| format!("{text}: write it as 10%"))
}
