//! Waiting for a lock: the turn in the client's own line, then in the line of clients, then for the masters.
//!
//! A claim is plain, and so is the one of who was called to a lock that is free. Refused, it knows no more than that, and
//! stands in line; then it claims so that the masters [tell](super::watch) who has the key, and when it changes.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::error::AcquireError;
use super::shared::Shared;
use super::stake::Stake;
use super::standing::{LONGEST_PAUSE, Standing};
use super::turn::{Obstacle, Turn};
use crate::protocol::quorum::MasterSet;
use crate::protocol::request::Ttl;
use crate::protocol::verdict::Verdict;
use crate::protocol::votes::{Incumbent, Remaining, Tally, Vote};
use crate::transport::Resources;

/// Nobody waits longer; a timer could not say so.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How the next claim is made, or the last was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Without knowing who has the key.
    Plain,
    /// So that the masters tell who has it, and when that changes.
    Watching,
    /// For a key that is told to be free, by the first in line: it gets it as a rule, and has nothing to watch.
    Called,
}

/// One acquisition that may have to wait. Dropped, it gives up its place in the line.
pub(crate) struct Waiting<'a> {
    pub(super) shared: &'a Arc<Shared>,
    resources: &'a Resources,
    /// `None` with a wait of zero, which joins no line: it makes its one claim whoever waits.
    pub(super) turn: Option<Turn<'a>>,
    began: Instant,
    pub(super) end: Instant,
    pub(super) claims: u32,
    /// Among the clients that wait, once there was a refusal. Several resources have no such line.
    standing: Option<Standing>,
    ttl: Ttl,
    /// Who is asked to tell, by claims that watch.
    pub(super) watched: MasterSet,
    claim: Claim,
    /// Whether it stands in line, as far as it knows: where no master keeps one, all who are told claim.
    pub(super) in_line: bool,
    /// Whether others stood before it when it last asked, and seemed not to come.
    behind: bool,
    /// Whether a lock that was told to be free was not: others may have it from hand to hand.
    outrun: bool,
    /// Whether it was said that the key never expires.
    warned: bool,
    /// Claims in a row that got some of the masters and not enough: others claim at the same time.
    pub(super) splits: u32,
}

impl<'a> Waiting<'a> {
    pub(crate) fn begin(shared: &'a Arc<Shared>, resources: &'a Resources, wait: Duration, ttl: Ttl) -> Self {
        let began = Instant::now();
        let turn = (!wait.is_zero()).then(|| Turn::join(&shared.queue, resources));
        let end = began + wait.min(LONGEST_WAIT);
        let watched = MasterSet::EMPTY;
        Self {
            shared,
            resources,
            turn,
            began,
            end,
            claims: 0,
            standing: None,
            ttl,
            watched,
            claim: Claim::Plain,
            in_line: false,
            behind: false,
            outrun: false,
            warned: false,
            splits: 0,
        }
    }

    /// The masters to ask, with the next claim, for whom it waits and to be told: none with the first, which is plain.
    pub(crate) const fn watched(&self) -> MasterSet {
        if matches!(self.claim, Claim::Watching) { self.watched } else { MasterSet::EMPTY }
    }

    /// It has the lock: the next client in line is called.
    pub(crate) fn served(&mut self, won: &Stake) {
        if self.standing.take().is_some_and(|standing| standing.served(self.behind))
            && let Some(key) = self.resources.single()
        {
            self.shared.queue.stood(key, won.look(|attempt, now| now.since(attempt.began())));
        }
    }

    /// Waits until it is for this one to claim.
    pub(crate) async fn turn(&mut self) -> Result<(), AcquireError> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let mut kept_long = false;
        loop {
            let closing = self.shared.closing.notified();
            if self.shared.is_closed() {
                return Err(AcquireError::Closed);
            }
            tokio::select! {
                biased;
                () = closing => return Err(AcquireError::Closed),
                () = poll_fn(|cx| turn.poll_come(cx)) => {}
                () = sleep_until(self.end) => return Err(self.not_come(turn)),
            }
            let Some(aside) = turn.steps_aside() else { break };
            kept_long = true;
            self.pause(Instant::now() + aside).await?;
        }
        if self.claims == 0
            && let Some(key) = self.resources.single()
            && let Some(took) = self.shared.queue.crowd(key).or(kept_long.then_some(Duration::ZERO))
            && self.stand(took).await?
        {
            // Those who wait would find it taken by one who came later.
            self.claim = Claim::Watching;
            self.watched = self.tellers(self.shared.quorum.everyone());
        }
        if let Some(turn) = &self.turn {
            turn.forget_freed();
        }
        Ok(())
    }

    /// Waits, after a claim that was `lost`, until it is time for the next; an error if there is none.
    pub(crate) async fn sit_out(&mut self, lost: &Stake) -> Result<(), AcquireError> {
        self.claim = self.wait_after(lost).await?;
        // The last answers may have come in since.
        let tally = lost.look(|attempt, _| attempt.tally());
        self.warn_if_endless(&tally);
        self.watched = self.to_watch(&tally);
        Ok(())
    }

    async fn wait_after(&mut self, lost: &Stake) -> Result<Claim, AcquireError> {
        let (verdict, tally, took) =
            lost.look(|attempt, now| (attempt.verdict(), attempt.tally(), now.since(attempt.began())));
        let verdict = verdict.unwrap_or(Verdict::NoQuorum);
        let answered = Instant::now();
        self.claims += 1;
        match &self.turn {
            Some(turn) if answered < self.end => turn.tell_last(verdict, &tally),
            _ => return Err(self.give_up(verdict, tally)),
        }
        // Also where claims that go halves leave no quorum to any, since a master is down.
        let others = verdict == Verdict::Contended || (verdict == Verdict::NoQuorum && tally.is_in_reach());
        let split = others && !tally.granted().is_empty();
        self.splits = if split { self.splits + 1 } else { 0 };
        if others && self.claim != Claim::Watching {
            self.outrun |= self.claim == Claim::Called;
            if self.watched.is_empty() {
                self.watched = self.to_watch(&tally);
            }
            // All that is known is that it is busy: stand in line, then ask by whom, and to be told.
            let is_first = self.stand(took).await?;
            if split {
                self.pause(Instant::now() + self.jitter()).await?;
            }
            return Ok(if is_first { Claim::Watching } else { Claim::Plain });
        }
        let is_free = self.until_free(lost, verdict, answered, took).await?;
        Ok(if is_free && self.in_line && !self.outrun { Claim::Called } else { Claim::Watching })
    }

    /// Waits until this client is the first in line, or for so long that who stands before it seems not to come. Whether
    /// it is. To ask takes about as long as a claim `took`.
    async fn stand(&mut self, took: Duration) -> Result<bool, AcquireError> {
        let (Some(turn), Some(key)) = (&self.turn, self.resources.single()) else { return Ok(true) };
        let nowhere = || Standing::nowhere(self.shared, key, self.ttl);
        let standing = self.standing.get_or_insert_with(nowhere);
        let patience = took * 2 + Duration::from_millis(20);
        let mut stood_before = u64::MAX;
        self.behind = false;
        loop {
            turn.forget_bell();
            let before = standing.queue_up(self.end.min(Instant::now() + patience)).await;
            self.in_line = before.is_some();
            let before = before.unwrap_or(0);
            if before == 0 {
                return Ok(true);
            }
            self.behind = before >= stood_before;
            if self.behind || Instant::now() >= self.end {
                return Ok(false);
            }
            stood_before = before;
            // The farther back, the less it matters that this one looks after the line.
            let pause = self.shared.policy.backoff(u32::MAX, self.shared.entropy.dice());
            let pause = pause.saturating_mul(u32::try_from(before.min(16)).unwrap_or(1));
            let latest = self.end.min(Instant::now() + pause.min(LONGEST_PAUSE));
            tokio::select! {
                biased;
                called = poll_fn(|cx| turn.poll_bell(cx)) => {
                    if called {
                        return Ok(true);
                    }
                    stood_before = u64::MAX;
                }
                over = pause_until(self.shared, latest) => over?,
            }
        }
    }

    /// Sleeps, at most until the wait ends: the last claim is made then.
    pub(super) async fn pause(&self, until: Instant) -> Result<(), AcquireError> {
        pause_until(self.shared, until.min(self.end)).await
    }

    /// A key without a ttl is nobody's lock, and never expires by itself.
    fn warn_if_endless(&mut self, tally: &Tally) {
        let endless = |vote: Option<&Vote>| {
            matches!(vote, Some(Vote::Held(Incumbent { remaining: Remaining::Forever, .. })))
        };
        let on = tally.iter().filter(|(_, vote)| endless(*vote)).count();
        if !self.warned && on >= self.shared.quorum.blocking() {
            self.warned = true;
            let resource = self.resources.field();
            tracing::warn!(
                resource,
                masters = on,
                "waits for a key without a ttl: only a DEL by hand ends it"
            );
        }
    }

    /// The wait ended in the line: what stands in the way is what the one in front met.
    fn not_come(&self, turn: &Turn<'_>) -> AcquireError {
        match turn.obstacle() {
            Obstacle::Others(Some((verdict, tally))) => self.give_up(verdict, tally),
            _ => self.give_up(Verdict::Contended, Tally::new(self.shared.quorum, [])),
        }
    }

    fn give_up(&self, verdict: Verdict, tally: Tally) -> AcquireError {
        let mut refusal = self.shared.refusal(self.resources, tally);
        refusal.claims = self.claims;
        refusal.waited = self.began.elapsed();
        match verdict {
            Verdict::Contended => AcquireError::Contended(refusal),
            Verdict::NoQuorum => AcquireError::NoQuorum(refusal),
            Verdict::TooLate | Verdict::Won => AcquireError::TooLate(refusal),
        }
    }
}

/// Sleeps, unless the client is closed.
async fn pause_until(shared: &Shared, until: Instant) -> Result<(), AcquireError> {
    let closing = shared.closing.notified();
    if shared.is_closed() {
        return Err(AcquireError::Closed);
    }
    if until <= Instant::now() {
        return Ok(());
    }
    tokio::select! {
        biased;
        () = closing => Err(AcquireError::Closed),
        () = sleep_until(until) => Ok(()),
    }
}
