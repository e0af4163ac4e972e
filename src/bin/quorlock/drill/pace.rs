//! How long the user's own work takes, and the ttl that goes with it.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use quorlock::Policy;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::Instant;

use crate::args::Drill;
use crate::duration::{millis, show, word};
use crate::exit::{Exit, Failure};

/// A ttl that many times the P99 of the work leaves room for a bad day.
const ROOM: u32 = 3;
/// A renewal, due each third of the ttl, has two tries if a master is silent.
const TRIES: u32 = 6;

/// The P99 of the work, told or measured.
pub(super) struct Pace {
    p99: Option<Duration>,
    runs: Option<u32>,
}

impl Pace {
    pub(super) async fn of(args: &Drill, tell: &impl Fn(String)) -> Result<Self, Failure> {
        if args.p99.is_some_and(|p99| p99.is_zero()) {
            let text = "--p99 is zero: give the time that the work takes";
            return Err(Failure::new(Exit::Usage, "bad_request", text));
        }
        let Some((program, arguments)) = args.command.split_first() else {
            return Ok(Self { p99: args.p99, runs: None });
        };
        tell(format!("runs the command {} times, without a lock, to see how long it takes", args.measure));
        let mut longest = Duration::ZERO;
        for _ in 0..args.measure {
            longest = longest.max(measure(program, arguments).await?);
        }
        Ok(Self { p99: Some(longest), runs: Some(args.measure) })
    }

    /// The ttl to choose; the fleet's longest, if the work takes longer than that allows.
    fn ttl(&self, policy: &Policy) -> Option<Duration> {
        let wanted = (self.p99? * ROOM).max(policy.master_timeout() * TRIES);
        // Nobody writes 6.3 s.
        let whole = Duration::from_secs(wanted.as_secs() + u64::from(wanted.subsec_nanos() > 0));
        Some(whole.min(policy.max_ttl()))
    }

    pub(super) fn lines(&self, policy: &Policy) -> Vec<String> {
        let (Some(p99), Some(ttl)) = (self.p99, self.ttl(policy)) else {
            return vec![
                "the ttl: three times the P99 of your work. Give --p99 8s, or -- COMMAND to measure it"
                    .to_owned(),
            ];
        };
        let work = match self.runs {
            Some(runs) => format!("the longest of {runs} runs of the command, {}", show(p99)),
            None => format!("the P99 of the work, {}", show(p99)),
        };
        if p99 * ROOM > policy.max_ttl() {
            return vec![format!(
                "--ttl {}, the longest of the fleet, renewed every {}: less than {ROOM} times {work}, so it takes the renewal \
                 for the work to be done under the lock",
                word(ttl),
                show(ttl / 3),
            )];
        }
        let why = if p99 * ROOM < policy.master_timeout() * TRIES {
            format!(
                "{TRIES} master timeouts, so that a renewal survives a silent master; more than {ROOM} times {work}"
            )
        } else {
            format!("{ROOM} times {work}")
        };
        vec![format!("--ttl {}, renewed every {}: {why}", word(ttl), show(ttl / 3))]
    }

    pub(super) fn json(&self, policy: &Policy) -> Value {
        let ttl = self.ttl(policy);
        json!({
            "p99_ms": self.p99.map(millis),
            "runs": self.runs,
            "ttl_ms": ttl.map(millis),
            "renew_every_ms": ttl.map(|ttl| millis(ttl / 3)),
        })
    }
}

async fn measure(program: &OsString, arguments: &[OsString]) -> Result<Duration, Failure> {
    let shown = program.to_string_lossy().into_owned();
    let began = Instant::now();
    // Standard output is for the table.
    let status = Command::new(program)
        .args(arguments)
        .env_remove("QUORLOCK_MASTERS")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .map_err(|error| Failure::new(Exit::Usage, "bad_request", format!("cannot run {shown}: {error}")))?;
    if !status.success() {
        return Err(Failure::other(format!(
            "{shown}: {status}: how long work takes shows only if it is done"
        )));
    }
    Ok(began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ttl_is_three_times_the_work_within_what_fleet_and_masters_allow() {
        let policy = Policy::new();
        let ttl = |millis| Pace { p99: Some(Duration::from_millis(millis)), runs: None }.ttl(&policy);
        assert_eq!(ttl(2_000), Some(Duration::from_secs(6)));
        assert_eq!(ttl(2_001), Some(Duration::from_secs(7)));
        assert_eq!(ttl(10), Some(Duration::from_secs(3)));
        assert_eq!(ttl(600_000), Some(policy.max_ttl()));
        let untold = Pace { p99: None, runs: None };
        assert!(untold.ttl(&policy).is_none() && untold.lines(&policy)[0].contains("--p99"));
    }
}
