//! Locks for scripts, and looks at them.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::duration;

#[derive(Debug, Args)]
pub(crate) struct Acquire {
    /// What to lock; several are locked all or none, under one holder id.
    #[arg(required = true, value_name = "RESOURCE")]
    pub(crate) resources: Vec<OsString>,
    /// When the lock ends, unless extended or released before [default: 30s, or the fleet's longest if that is less].
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// How long to wait for it; 0s tries once.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub(crate) wait: Duration,
    /// Prints a fencing token behind the holder id: a number that rises with every fenced hold of the resource, for
    /// whoever must refuse what comes from a holder that is over.
    #[arg(long)]
    pub(crate) fence: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Extend {
    /// What is locked; all of it, if several were acquired together.
    #[arg(required = true, value_name = "RESOURCE")]
    pub(crate) resources: Vec<OsString>,
    /// The holder id that `acquire` printed.
    #[arg(long, value_name = "ID")]
    pub(crate) holder: String,
    /// When the lock ends, counted from now; it only ever gets more time [default: 30s, or the fleet's longest if that is less].
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Release {
    /// What is locked; all of it, if several were acquired together.
    #[arg(required = true, value_name = "RESOURCE")]
    pub(crate) resources: Vec<OsString>,
    /// The holder id that `acquire` printed.
    #[arg(long, value_name = "ID")]
    pub(crate) holder: String,
}

#[derive(Debug, Args)]
pub(crate) struct FenceFloor {
    /// All tokens from now on are greater [default: the greatest in sight, or a day ahead of this machine's clock].
    pub(crate) floor: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// What to look at.
    pub(crate) resource: OsString,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Which resources, as SCAN has it: * any text, ? any letter, [ab] either.
    #[arg(default_value = "*")]
    pub(crate) pattern: OsString,
    /// At most so many resources.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Which resources, as SCAN has it: * any text, ? any letter, [ab] either.
    #[arg(default_value = "*")]
    pub(crate) pattern: OsString,
    /// How long to pause between two looks.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub(crate) every: Duration,
    /// Ends after so many looks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// At most so many resources.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
    /// Prints lines, as it does where standard output is no terminal.
    #[arg(long)]
    pub(crate) plain: bool,
}
