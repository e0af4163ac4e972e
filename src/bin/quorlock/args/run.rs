//! `run`, and what it starts.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::duration;

pub(super) const HELP: &str = r#"Examples:
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

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to lock: several at once, all or none.
    #[arg(required = true, value_name = "RESOURCE")]
    pub(crate) resources: Vec<OsString>,
    /// The command and its arguments, as they are: no shell reads them.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// How long others wait after a crash of this machine. The lock is renewed every third of it [default: 30s, or the fleet's
    /// longest if that is less].
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
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

#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    #[arg(long)]
    pub(crate) parent: i32,
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
