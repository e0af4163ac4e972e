//! What can be said on the command line.

mod bench;
mod doctor;
#[cfg(test)]
mod examples;
mod locks;
mod pages;
#[cfg(target_os = "linux")]
mod run;
mod testbed;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::duration;
pub(crate) use bench::Bench;
pub(crate) use doctor::{Doctor, Explain};
pub(crate) use locks::{Acquire, Extend, FenceFloor, Inspect, List, Release, Top};
pub(crate) use pages::{Completions, Man};
#[cfg(target_os = "linux")]
pub(crate) use run::{Run, RunCommand};
pub(crate) use testbed::{Demo, DemoWorker, Drill, Testbed};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 not held (somebody else's, or nobody's); 2 bad usage or values; 69 no quorum; 75 busy, or the \
wait ended; 76 lost; 78 bad configuration; 126 and 127 the command cannot be executed, or found; 128+N ended by signal \
N. `run` exits with the command's own code, if that ran to its end.

Durations have a unit: 30s, 250ms, 2m.

Examples:
  eval \"$(quorlock testbed up)\"
  quorlock run nightly-report -- /opt/bin/report
  quorlock doctor";

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
    /// A TOML file with any of: masters, user, password, master_timeout, connect_timeout, max_ttl, min_votes, label (and with TLS: ca,
    /// client_certificate, client_key). Options win over it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How long one master may take to answer [default: 500ms].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) master_timeout: Option<Duration>,
    /// How long a connection may take [default: 1s; for init 10s].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) connect_timeout: Option<Duration>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a command under a lock, and ends it before the lock is lost.
    #[cfg(target_os = "linux")]
    #[command(after_help = run::HELP)]
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
    ///
    /// It is free as soon as enough masters have said so. The others are told, too; in the votes of --json those are `unknown` that
    /// had not answered by then.
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
        after_help = "Examples:\n  quorlock list 'order:*'\n  quorlock list --json | jq '.locks[] | select(.expires | not)'"
    )]
    List(List),
    /// Shows masters, held locks and what happens to them, as it goes on. Writes nothing.
    ///
    /// In a terminal: q quits, arrows move and sort, / filters, ? tells the rest. Elsewhere lines, or with --json an object for
    /// each look. It looks as `inspect` and `list` do, as gently: what begins and ends between two looks is not seen.
    #[command(
        after_help = "Examples:\n  quorlock top 'order:*'\n  quorlock top --plain --every 5s --count 12\n  \
                            quorlock top --json | jq -c '.events[]'"
    )]
    Top(Top),
    /// Finds what is wrong with the masters and with how locks are used, and says how to mend it. Changes nothing.
    ///
    /// It looks for the five pitfalls of locks on Redis (P1 to P5) and for what leads to them (D01 to D16). What it may not look
    /// at is `unchecked`, with the right that would allow it. With --json one object, whose fields stay.
    #[command(after_help = doctor::HELP)]
    Doctor(Doctor),
    /// Tells one of the five pitfalls in a page: symptom, evidence, repair. Or what a check of `doctor` is about.
    #[command(
        after_help = "Examples:\n  quorlock explain\n  quorlock explain 3\n  quorlock explain D07\n  quorlock explain 5 --lang zh"
    )]
    Explain(Explain),
    /// Admits fresh masters to voting at once, instead of after the fleet's longest ttl.
    ///
    /// By calling it you assert that nobody held a lock on them before. It refuses where a master is known (exit code 1), or cannot be
    /// reached (69), and changes none then.
    #[command(
        after_help = "Example: QUORLOCK_MASTERS=redis://m1,redis://m2,redis://m3,redis://m4,redis://m5 quorlock init"
    )]
    Init,
    /// Has fencing go on where too many masters lost their counters together.
    ///
    /// By calling it you assert that no fencing token above the floor was handed out.
    #[command(after_help = "Example: quorlock fence-floor 1764547200000000")]
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
    /// Rehearses before going live: what happens to work that takes 80, 100 and 150 % of the ttl.
    ///
    /// Several contenders work under locks that are renewed and under such that are not, on five masters of its own: all of them
    /// well, then with one frozen. It counts who entered while another was still at work, in a register without and in one with a
    /// fence, and says what ttl to choose. Exit code 1 if there was a double entry where there must be none.
    #[command(after_help = "Examples:\n  quorlock drill --p99 8s\n  quorlock drill -- ./report.sh\n  \
                      quorlock drill --on-fleet --masters redis://m1,redis://m2,redis://m3,redis://m4,redis://m5 --ttl 5s")]
    Drill(Drill),
    /// Prints a script that has a shell complete commands and options.
    #[command(
        after_help = "Examples:\n  source <(quorlock completions bash)\n  quorlock completions zsh > ~/.zfunc/_quorlock\n  \
                      quorlock completions fish > ~/.config/fish/completions/quorlock.fish"
    )]
    Completions(Completions),
    /// Prints a page of the manual, or writes all of them.
    #[command(
        after_help = "Examples:\n  quorlock man run | man -l -\n  quorlock man --dir ~/.local/share/man/man1"
    )]
    Man(Man),
    #[command(hide = true)]
    DemoWorker(DemoWorker),
    Bench(Bench),
    #[command(hide = true)]
    BenchWorker,
}
