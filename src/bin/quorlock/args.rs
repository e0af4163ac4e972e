//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::duration;
use crate::explain::catalog::Lang;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 not held (somebody else's, or nobody's); 2 bad usage or values; 69 no quorum; 75 busy, or the \
wait ended; 76 lost; 78 bad configuration; 126 and 127 the command cannot be executed, or found; 128+N ended by signal \
N. `run` exits with the command's own code, if that ran to its end.

Durations have a unit: 30s, 250ms, 2m.";

const DOCTOR: &str = "\
Exit codes: 0 all well; 1 warnings, or a master is down; 3 errors, or no master may fail any more; 4 no quorum.

Examples:
  quorlock doctor
  quorlock doctor order:123 --p99 8s --ttl 30s
  quorlock doctor order:123 --expect 'web-3:1842/0f2c…'
  quorlock doctor --monitor 5s
  quorlock doctor --json --watch 30s";

/// One holder at a time, over five independent Redis or Valkey masters.
#[derive(Debug, Parser)]
#[command(name = "quorlock", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What all commands understand, before or after their name.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The masters, five as a rule, the same for every client of a fleet.
    ///
    /// Other users of this machine see a command's arguments in `ps`: give URLs with passwords by the environment
    /// or by --config.
    #[arg(
        long,
        global = true,
        value_name = "URL,URL,…",
        value_delimiter = ',',
        env = "QUORLOCK_MASTERS",
        hide_env_values = true
    )]
    pub(crate) masters: Vec<String>,
    /// A TOML file with any of: masters, user, password, master_timeout, max_ttl, min_votes, label (and with TLS: ca,
    /// client_certificate, client_key). Options win over it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How long one master may take to answer [default: 500ms].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) master_timeout: Option<Duration>,
    /// The fleet's longest ttl, the same for every client [default: 60s].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) max_ttl: Option<Duration>,
    /// Needs more votes than the majority, the same for every client.
    #[arg(long, global = true, value_name = "VOTES")]
    pub(crate) min_votes: Option<usize>,
    /// The readable part of holder ids [default: host:pid].
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Prints one JSON object instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Says nothing on standard error but errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Says more on standard error; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[cfg(target_os = "linux")]
const RUN_HELP: &str = r#"Examples:
  Once across all machines, every night, from the crontab of each of them; no mail if another machine was first:
    0 3 * * *  quorlock run nightly-report --skip-if-busy --hold-at-least 1m -- /opt/bin/report
  A deployment that must not wait, and may take an hour at most:
    quorlock run deploy:shop -n --max-hold 1h -- ./deploy.sh
  Events for a program, while the command has all three standard streams:
    quorlock run import --json-fd 3 3>events.jsonl -- ./import < data.csv > result.csv

The lock is renewed as long as the command runs. If no renewal is confirmed, the command's process group gets TERM
--kill-grace before the lock is lost, and KILL when it is, by this machine's clock, even if no packet comes through. A lock
that turns out to be gone already (deleted by hand) means KILL at once. A second process kills the group if this
one is killed, or stopped past that moment. The lock is given back only after the whole group ended.

The command keeps stdin, stdout, stderr and its environment, with QUORLOCK_RESOURCE (several: one a line) and QUORLOCK_HOLDER
added, and QUORLOCK_MASTERS removed (it may hold passwords). INT, TERM, HUP, QUIT, USR1, USR2, WINCH, TSTP and CONT are passed on to its group.
What the command starts in a process group or session of its own (setsid, daemons) is neither waited for nor ended, and a
program that runs as another user (sudo) can only be ended if this one may send it signals.

Exit codes: the command's own; 128+N if signal N ended it, or the waiting; 75 busy, or the wait ended (-E gives another, --skip-if-busy
0); 69 no quorum; 76 the lock was lost while the command ran, or the command was ended so that it was not; 126 the
command cannot be executed, 127 not found (no lock is taken then); 2 bad usage; 78 bad configuration."#;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a command under a lock, and ends it before the lock is lost.
    #[cfg(target_os = "linux")]
    #[command(after_help = RUN_HELP)]
    Run(Run),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    RunCommand(RunCommand),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    RunWarden,
    /// Takes a lock, leaves it to its ttl, and prints its holder id.
    ///
    /// Nothing renews it: `extend` it in time, and `release` it, with the holder id.
    #[command(after_help = "Example: quorlock acquire order:123 --ttl 30s --wait 5s")]
    Acquire(Acquire),
    /// Gives a lock that was acquired more time.
    #[command(after_help = "Example: quorlock extend order:123 --holder 'web-3:1842/0f2c…' --ttl 30s")]
    Extend(Extend),
    /// Gives a lock that was acquired back.
    #[command(after_help = "Example: quorlock release order:123 --holder 'web-3:1842/0f2c…'")]
    Release(Release),
    /// Shows what stands at a resource, master by master, and what that comes to. Writes nothing.
    #[command(after_help = "Example: quorlock inspect order:123")]
    Inspect(Inspect),
    /// Lists the locks that stand on the masters: holder, votes, remaining time. Writes nothing.
    ///
    /// It searches by SCAN, at most 25,000 keys a second on each master, and shows string keys only. Every string key counts as a
    /// lock: on masters that are used for something else, too, give a PATTERN.
    #[command(
        after_help = "Examples:\n  quorlock list 'order:*'\n  quorlock list --json | jq 'select(.expires | not)'"
    )]
    List(List),
    /// Finds what is wrong with the masters and with how locks are used, and says how to mend it. Changes nothing.
    ///
    /// It looks for the five pitfalls of locks on Redis (P1 to P5) and for what leads to them (D01 to D16). What it may not look
    /// at is `unchecked`, with the right that would allow it. With --json one object, whose fields stay.
    #[command(after_help = DOCTOR)]
    Doctor(Doctor),
    /// Tells one of the five pitfalls in a page: symptom, evidence, repair. Or what a check of `doctor` is about.
    #[command(
        after_help = "Examples:\n  quorlock explain\n  quorlock explain 3\n  quorlock explain D07\n  quorlock explain 5 --lang zh"
    )]
    Explain(Explain),
    /// Admits fresh masters to voting at once, instead of after the fleet's longest ttl.
    ///
    /// By calling it you assert that nobody held a lock on them before. It refuses where a master is known.
    #[command(
        after_help = "Example: QUORLOCK_MASTERS=redis://m1,redis://m2,redis://m3,redis://m4,redis://m5 quorlock init"
    )]
    Init,
    /// Has fencing go on where too many masters lost their counters together.
    ///
    /// By calling it you assert that no fencing token above the floor was handed out.
    FenceFloor(FenceFloor),
    /// Masters on this machine, and faults on them.
    #[command(
        subcommand,
        after_help = "Example: eval \"$(quorlock testbed up)\"; quorlock testbed fault m2 freeze; quorlock testbed down"
    )]
    Testbed(Testbed),
    /// The main job in a minute: five masters, contenders for one lock, and faults.
    #[command(after_help = "Example: quorlock demo --seconds 30 --contenders 12")]
    Demo(Demo),
    #[command(hide = true)]
    DemoWorker(DemoWorker),
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to lock: several at once, all or none.
    #[arg(required = true, value_name = "RESOURCE")]
    pub(crate) resources: Vec<OsString>,
    /// The command and its arguments, as they are: no shell reads them.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// How long others wait after a crash of this machine. The lock is renewed every third of it.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// How long to wait for the lock.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub(crate) wait: Duration,
    /// Does not wait: the same as --wait 0s.
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// The longest the command may run: then it is ended, as if the lock could not be renewed.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) max_hold: Option<Duration>,
    /// Keeps the lock at least so long, also when the command ended sooner, so that a machine whose clock is behind does
    /// not run it once more. This command ends only then; a signal ends it at once, and leaves the lock to its ttl.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) hold_at_least: Option<Duration>,
    /// Gives the command a fencing token in QUORLOCK_FENCE: a number that rises with every fenced hold, for whoever must
    /// refuse what comes from a holder that is over.
    #[arg(long)]
    pub(crate) fence: bool,
    /// How long the command has from TERM to KILL when the lock is about to be lost; 0s: KILL only [default: 5s, or less
    /// with a short --ttl or --max-hold].
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) kill_grace: Option<Duration>,
    /// The exit code if the lock is held by another [default: 75].
    #[arg(short = 'E', long, value_name = "CODE")]
    pub(crate) busy_exit_code: Option<u8>,
    /// Says nothing and exits with 0 if the lock is held by another.
    #[arg(long, conflicts_with = "busy_exit_code")]
    pub(crate) skip_if_busy: bool,
    /// Writes events to this descriptor, a JSON object a line. With --json alone they go to standard error.
    #[arg(long, value_name = "N")]
    pub(crate) json_fd: Option<u32>,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    #[arg(long)]
    pub(crate) parent: i32,
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Acquire {
    /// What to lock; several are locked all or none, under one holder id.
    #[arg(required = true, value_name = "RESOURCE")]
    pub(crate) resources: Vec<OsString>,
    /// When the lock ends, unless extended or released before.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
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
    /// When the lock ends, counted from now. It only ever gets more time.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
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
    /// The ttl that the locks are taken with [default: 30s, or the longest ttl if that is less].
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

#[derive(Debug, Subcommand)]
pub(crate) enum Testbed {
    /// Starts five masters, or as many as `--masters N` says, admits them, and prints what to export.
    ///
    /// For a shell: eval "$(quorlock testbed up)"
    Up {
        /// As processes of this machine, which is the only way here; containers: sh docker/run.sh shell --docker.
        #[arg(long)]
        local: bool,
        /// Each with a wall clock of its own, for clock-step and clock-slew; takes a C compiler.
        #[arg(long)]
        clocks: bool,
    },
    /// Ends them.
    Down,
    /// Shows how they are.
    Status {
        /// Those in containers that are up under this project's name.
        #[arg(long, value_name = "PROJECT", env = "QUORLOCK_CONTAINERS")]
        containers: Option<String>,
    },
    /// Puts a fault in place at one of them.
    Fault {
        /// 1 to 5, or m1 to m5.
        #[arg(value_parser = master)]
        master: usize,
        /// kill, restart-empty, restart-with-data, restart-old-snapshot, snapshot, freeze, thaw, flush, pause-writes[=MS],
        /// out-of-memory, clock-step=MS, clock-slew=PPM; with containers also cut, join, promote-replica, and on the way to a
        /// master slow[=MS], lose-replies, lose-requests, blackhole, reset, refuse.
        #[arg(value_parser = |word: &str| word.parse::<quorlock::testbed::Fault>())]
        fault: quorlock::testbed::Fault,
        /// Takes it away again.
        #[arg(long)]
        undo: bool,
        /// At one of those in containers that are up under this project's name.
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
