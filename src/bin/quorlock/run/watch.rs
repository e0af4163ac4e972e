//! From the first moment of the command to the last of its group: signals to it, and its end before the lock's.

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;
use quorlock::protocol::time::Moment;
use quorlock::{Guard, Hold};
use serde_json::json;
use tokio::time::sleep;

use super::job::{Change, Job};
use super::report::{Report, Weight};
use super::signals::{Signals, is_ending};
use super::terms::{LEAD, Terms};
use super::warden::now;
use crate::duration::{millis, show};
use crate::exit::{Exit, Failure};

/// How often a group that goes on without its leader is looked at, and one that was killed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// More than lies between two looks at one clock.
const SHORTLY: Duration = Duration::from_millis(500);

pub(super) struct Watch<'a> {
    hold: Hold,
    since: Moment,
    job: Job,
    signals: &'a mut Signals,
    report: &'a mut Report,
    terms: &'a Terms,
    phase: Phase,
    /// Why it got TERM.
    why: String,
    /// A signal that wants an end was passed on.
    told_to_end: bool,
    at_risk: bool,
    killed_at: Moment,
    /// Some of it cannot be ended, and that was said.
    out_of_reach: bool,
    /// Others of the group outlive the leader, and that was said.
    lingers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// It got TERM, and will get KILL then, whatever a late renewal brings: it was told to end.
    Terminating(Moment),
    Killed,
}

/// How it came out.
pub(super) struct Outcome {
    pub(super) exit: Exit,
    /// Why we ended it, if we did, or the lock was over before it.
    pub(super) lost: Option<String>,
    pub(super) told_to_end: bool,
    /// Some of it went on without the lock.
    pub(super) out_of_reach: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn over(
        guard: &Guard,
        job: Job,
        signals: &'a mut Signals,
        report: &'a mut Report,
        terms: &'a Terms,
    ) -> Self {
        Self {
            hold: guard.hold(),
            since: now(),
            job,
            signals,
            report,
            terms,
            phase: Phase::Running,
            why: String::new(),
            told_to_end: false,
            at_risk: false,
            killed_at: now(),
            out_of_reach: false,
            lingers: false,
        }
    }

    /// Returns when nobody of the group is left.
    pub(super) async fn until_all_ended(mut self) -> Result<Outcome, Failure> {
        self.begin().await.map_err(unwatchable)?;
        loop {
            self.keep_time();
            while let Some(change) = self.job.change().map_err(unwatchable)? {
                self.follow(change)?;
            }
            if let Some(exit) = self.job.ended() {
                let left = self.job.left();
                if left == 0 {
                    return Ok(self.come_out(exit).await);
                }
                self.linger(left);
            }
            let next = self.next_look();
            tokio::select! {
                biased;
                signal = self.signals.next() => self.pass_on(signal)?,
                () = self.job.stirs() => {}
                _ = self.hold.lost(), if self.phase != Phase::Killed => {}
                () = self.hold.at_risk(), if !self.at_risk && self.phase == Phase::Running => self.warn(),
                () = sleep(next) => {}
            }
        }
    }

    async fn begin(&mut self) -> io::Result<()> {
        let deadline = deadline(&self.hold);
        if deadline.since(now()) <= LEAD {
            // Lost already: it is killed as it stands, before its first step.
            return Ok(());
        }
        self.job.begin(deadline).await?;
        let pid = self.job.leader();
        self.report.say(
            Weight::Detail,
            "started",
            format_args!("started as process {pid}"),
            json!({ "pid": pid.as_raw() }),
        );
        Ok(())
    }

    /// TERM at the deadline less the grace, KILL at the deadline, by the clock and nothing else.
    fn keep_time(&mut self) {
        let deadline = deadline(&self.hold);
        let left = deadline.since(now());
        match self.phase {
            Phase::Running if left > self.terms.grace.max(LEAD) => {
                if self.job.may_run_until(deadline) {
                    self.report.event("renewed", json!({ "validity_ms": millis(left) }));
                    self.at_risk = false;
                }
            }
            Phase::Running if left > LEAD => self.terminate(deadline.minus(LEAD), left),
            Phase::Terminating(kill_at) if now() < kill_at && self.hold.is_valid() => {}
            Phase::Running | Phase::Terminating(_) | Phase::Killed => self.kill(),
        }
    }

    fn terminate(&mut self, kill_at: Moment, left: Duration) {
        self.phase = Phase::Terminating(kill_at);
        // The library reckons the longest hold from a little before we did.
        let longest =
            self.terms.max_hold.filter(|longest| kill_at.plus(SHORTLY) >= self.since.plus(*longest));
        self.why = longest.map_or_else(
            || "no renewal was confirmed in time".to_owned(),
            |longest| format!("--max-hold {} is over", show(longest)),
        );
        self.report.say(
            Weight::Notice,
            "terminating",
            format_args!("{}: TERM to the command, KILL in {}", self.why, show(left)),
            json!({ "validity_ms": millis(left) }),
        );
        self.end_by(Signal::SIGTERM);
        // What is stopped can do nothing about it.
        self.end_by(Signal::SIGCONT);
    }

    fn kill(&mut self) {
        if self.phase != Phase::Killed {
            self.phase = Phase::Killed;
            self.killed_at = now();
            self.report.say(Weight::Notice, "killing", "the lock is over: KILL to the command", json!({}));
        }
        self.end_by(Signal::SIGKILL);
        // A group counts as reached if one of it is, be that one dead.
        if !self.out_of_reach && now() > self.killed_at.plus(SHORTLY) {
            let left = self.job.left();
            if left > 0 {
                let why = format!("{left} of its processes lived through SIGKILL, as another user's do");
                self.is_beyond(Signal::SIGKILL, &why);
            }
        }
    }

    fn end_by(&mut self, signal: Signal) {
        if let Err(error) = self.job.signal(signal)
            && !self.out_of_reach
        {
            self.is_beyond(signal, &format!("it cannot be sent {signal}: {error}"));
        }
    }

    fn is_beyond(&mut self, signal: Signal, why: &str) {
        self.out_of_reach = true;
        let text = format!("the command goes on WITHOUT the lock: {why}");
        self.report.say(Weight::Error, "cannot_signal", &text, json!({ "signal": signal.as_str() }));
    }

    fn next_look(&self) -> Duration {
        let left = self.hold.remaining();
        let next = match self.phase {
            Phase::Running => left.saturating_sub(self.terms.grace.max(LEAD)).min(self.terms.tick),
            Phase::Terminating(kill_at) => kill_at.since(now()),
            Phase::Killed => LOOK_EVERY,
        };
        // Timers ring by the millisecond.
        let next = next.max(Duration::from_millis(1));
        if self.job.ended().is_some() { next.min(LOOK_EVERY) } else { next }
    }

    fn warn(&mut self) {
        self.at_risk = true;
        let left = self.hold.remaining();
        self.report.say(
            Weight::Notice,
            "at_risk",
            format_args!(
                "no renewal was confirmed lately: unless one is, the command gets TERM in {}",
                show(left.saturating_sub(self.terms.grace)),
            ),
            json!({ "validity_ms": millis(left) }),
        );
    }

    fn follow(&mut self, change: Change) -> Result<(), Failure> {
        match change {
            Change::Stopped(signal) => {
                let left = self.hold.remaining();
                let report = &mut *self.report;
                let say = || {
                    report.say(
                        Weight::Notice,
                        "stopped",
                        format_args!(
                            "stopped, and so is renewal: continue within {}, or it is killed",
                            show(left)
                        ),
                        json!({ "signal": signal.as_str(), "validity_ms": millis(left) }),
                    );
                };
                self.job.stopped(signal, say).map_err(unwatchable)?;
            }
            Change::Ended(exit) => self.report.event("ended", json!({ "code": exit.code() })),
            Change::Unwatched => {
                let text = "the second process that watches over the lock is gone: if this one is killed or stopped, \
                            the command may outlive the lock";
                self.report.say(Weight::Error, "unwatched", text, json!({}));
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, signal: Signal) -> Result<(), Failure> {
        if signal == Signal::SIGCONT {
            // First the lock: it may be over.
            self.keep_time();
            if self.phase == Phase::Running {
                self.job.go_on().map_err(unwatchable)?;
            }
            return Ok(());
        }
        self.told_to_end |= is_ending(signal);
        self.report.event("signal", json!({ "signal": signal.as_str() }));
        // Who cannot be sent it, another user's, would not have got it without us either.
        let _ = self.job.signal(signal);
        Ok(())
    }

    fn linger(&mut self, left: usize) {
        if !self.lingers {
            self.lingers = true;
            let text =
                format!("the command ended; the lock is held until the {left} it left in its group end, too");
            self.report.say(Weight::Detail, "lingering_group", text, json!({ "processes": left }));
        }
    }

    async fn come_out(self, exit: Exit) -> Outcome {
        let valid = self.hold.is_valid();
        self.job.close();
        let lost = match self.phase {
            Phase::Running if valid => None,
            _ if valid => Some(self.why),
            _ => Some(self.hold.lost().await.to_string()),
        };
        Outcome { exit, lost, told_to_end: self.told_to_end, out_of_reach: self.out_of_reach }
    }
}

/// Until when the lock is ours, reckoned so that it never comes out later than it is.
fn deadline(hold: &Hold) -> Moment {
    let now = now();
    now.plus(hold.remaining())
}

/// Whoever drops a job has the warden kill it.
fn unwatchable(error: io::Error) -> Failure {
    Failure::other(format!("cannot watch over the command, so it is ended: {error}"))
}
