//! Masters of one's own, and what can be played on them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Testbed {
    /// Starts five masters, or as many as `--masters N` says, admits them, and prints what to export.
    ///
    /// For a shell: eval "$(quorlock testbed up)"
    #[command(
        after_help = "Examples:\n  eval \"$(quorlock testbed up --masters 3)\"\n  eval \"$(quorlock testbed up --docker)\""
    )]
    Up {
        /// As processes of this machine, which is the default.
        #[arg(long)]
        local: bool,
        /// As five containers, by a Docker engine and Compose: they can also be cut off the network. The public image, if it is here
        /// or can be pulled soon; else one that is made of this machine's server. QUORLOCK_IMAGE names another.
        #[arg(long, conflicts_with = "local")]
        docker: bool,
        /// Each with a wall clock of its own, for clock-step and clock-slew; takes a C compiler.
        #[arg(long)]
        clocks: bool,
    },
    /// Ends them.
    #[command(after_help = "Example: quorlock testbed down")]
    Down,
    /// Shows how they are.
    #[command(after_help = "Example: quorlock testbed status --json")]
    Status {
        /// Those in containers that docker/run.sh, or Compose, brought up under this project's name.
        #[arg(long, value_name = "PROJECT", env = "QUORLOCK_CONTAINERS")]
        containers: Option<String>,
    },
    /// Puts a fault in place at one of them.
    #[command(
        after_help = "Examples:\n  quorlock testbed fault m2 freeze\n  quorlock testbed fault m2 freeze --undo\n  \
                            quorlock testbed fault m4 restart-empty"
    )]
    Fault {
        /// 1 to 5, or m1 to m5.
        #[arg(value_parser = master)]
        master: usize,
        /// kill, restart-empty, restart-with-data, restart-old-snapshot, snapshot, freeze, thaw, flush, pause-writes[=MS],
        /// out-of-memory, clock-step=MS, clock-slew=PPM; with containers also cut, join, and where docker/run.sh brought them up
        /// promote-replica, and on the way to a master slow[=MS], lose-replies, lose-requests, blackhole, reset, refuse.
        #[arg(value_parser = |word: &str| word.parse::<quorlock::testbed::Fault>())]
        fault: quorlock::testbed::Fault,
        /// Takes it away again.
        #[arg(long)]
        undo: bool,
        /// At one of those in containers that docker/run.sh, or Compose, brought up under this project's name.
        #[arg(long, value_name = "PROJECT", env = "QUORLOCK_CONTAINERS")]
        containers: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How long the contenders work; slow machines take longer.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(15..=3600))]
    pub(crate) seconds: u64,
    /// How many processes want the lock.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(3..=64))]
    pub(crate) contenders: u8,
    /// On five containers that are up under this project's name, instead of processes: as `docker/run.sh demo` does.
    #[arg(long, value_name = "PROJECT", env = "QUORLOCK_CONTAINERS")]
    pub(crate) containers: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Drill {
    /// The command whose time is measured, to choose a ttl for it. It runs as it is, without a lock, --measure times.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "p99")]
    pub(crate) command: Vec<OsString>,
    /// The ttl of the rehearsal; short, so that it is soon over.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// How many want each lock.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=32))]
    pub(crate) contenders: u8,
    /// How often each of them works in each run.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// The 99th percentile of the time that your work takes, to choose a ttl for it.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) p99: Option<Duration>,
    /// How often the command is run to be measured.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) measure: u32,
    /// Rehearses on the masters of --masters, QUORLOCK_MASTERS or --config. None of them is frozen there.
    #[arg(long)]
    pub(crate) on_fleet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoWorker {
    /// The counter's file.
    #[arg(long)]
    pub(crate) counter: PathBuf,
    #[arg(long, value_parser = duration::parse)]
    pub(crate) ttl: Duration,
}

fn master(text: &str) -> Result<usize, String> {
    let number = text.strip_prefix('m').unwrap_or(text);
    number.parse().ok().filter(|number| *number > 0).ok_or_else(|| "masters are called m1, m2, …".to_owned())
}
