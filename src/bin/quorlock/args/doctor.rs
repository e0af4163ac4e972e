//! `doctor`, and what it is about.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::duration;
use crate::explain::catalog::Lang;

pub(super) const HELP: &str = "\
Exit codes: 0 all well; 1 warnings, or a master is down; 3 errors, or no master may fail any more; 4 no quorum.

Examples:
  quorlock doctor
  quorlock doctor order:123 --p99 8s --ttl 30s
  quorlock doctor order:123 --expect 'web-3:1842/0f2c…'
  quorlock doctor --monitor 5s
  quorlock doctor --json --watch 30s";

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Locks to look at.
    #[arg(value_name = "RESOURCE")]
    pub(crate) resources: Vec<OsString>,
    /// Who ought to hold them: tells "not yours any more" from "gone".
    #[arg(long, value_name = "HOLDER", requires = "resources")]
    pub(crate) expect: Option<String>,
    /// The 99th percentile of the time that the work takes, to be judged against the ttl.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) p99: Option<Duration>,
    /// The ttl that the locks are taken with [default: 30s, or the fleet's longest if that is less].
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Also listens to what all clients do, for that long, by MONITOR: it may halve what the masters can do meanwhile.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) monitor: Option<Duration>,
    /// Looks again each time that long is over, until interrupted.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) watch: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// 1 to 5, or D01 to D16; all are listed without.
    pub(crate) topic: Option<String>,
    /// The language.
    #[arg(long, value_name = "LANG", default_value = "en")]
    pub(crate) lang: Lang,
}
