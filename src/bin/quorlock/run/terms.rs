//! The times that a run keeps, checked against each other before any traffic.

use std::time::Duration;

use quorlock::Policy;
use quorlock::protocol::request::Ttl;

use crate::args::Run;
use crate::duration::show;
use crate::exit::{Exit, Failure};
use crate::fleet;

/// How long the command has to end by itself, unless asked for otherwise or the ttl is short.
const GRACE: Duration = Duration::from_secs(5);
/// The kill goes out so long before the deadline: a timer rings late, and a signal takes its time.
pub(super) const LEAD: Duration = Duration::from_millis(20);

pub(super) struct Terms {
    pub(super) ttl: Duration,
    pub(super) wait: Duration,
    pub(super) max_hold: Option<Duration>,
    pub(super) hold_at_least: Duration,
    /// From TERM to KILL.
    pub(super) grace: Duration,
    /// How often the lock is looked at, at least.
    pub(super) tick: Duration,
}

impl Terms {
    pub(super) fn of(args: &Run, policy: &Policy) -> Result<Self, Failure> {
        let asked = fleet::ttl(args.ttl, policy);
        let ttl = Ttl::new(asked, policy)?;
        let longest = args.max_hold.unwrap_or(Duration::MAX);
        let grace = args.kill_grace.unwrap_or_else(|| GRACE.min(asked / 4).min(longest / 4));
        // A renewal is sent after one period, and its answer may take as long as one master may.
        let period = ttl.renewal_period();
        let most = ttl.validity().saturating_sub(period + policy.master_timeout().min(period));
        if grace > most {
            return Err(bad(format!(
                "--kill-grace {} is too long for --ttl {}: the command would be ended before the lock can be renewed. \
                 Choose a --kill-grace of at most {}, or a longer --ttl",
                show(grace),
                show(asked),
                show(most),
            )));
        }
        if grace >= longest {
            return Err(bad(format!(
                "--kill-grace {} leaves nothing of --max-hold {}: choose a shorter --kill-grace, or a longer --max-hold",
                show(grace),
                show(longest),
            )));
        }
        let hold_at_least = args.hold_at_least.unwrap_or_default();
        if hold_at_least > longest {
            return Err(bad(format!(
                "--hold-at-least {} is longer than --max-hold {}: choose a shorter --hold-at-least, or a longer --max-hold",
                show(hold_at_least),
                show(longest),
            )));
        }
        let tick = (asked / 10).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let wait = if args.no_wait { Duration::ZERO } else { args.wait };
        Ok(Self { ttl: asked, wait, max_hold: args.max_hold, hold_at_least, grace, tick })
    }
}

fn bad(text: String) -> Failure {
    Failure::new(Exit::Usage, "bad_request", text)
}
