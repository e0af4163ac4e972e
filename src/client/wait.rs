//! Waiting for a lock: the turn in the client's own line, then the masters.
//!
//! Whoever was refused knows from the refusal until when the key stays, and is told by the master when it changes. It
//! claims again once w masters may be free: those that granted, those told of since, and those where the key has
//! expired. Nothing rests on being told: after the longest pause of the back-off it claims in any case. Where masters
//! do not tell, the pauses begin short and grow up to that.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::error::AcquireError;
use super::shared::Shared;
use super::stake::Stake;
use super::turn::{Obstacle, Turn};
use crate::protocol::quorum::{MasterId, MasterSet};
use crate::protocol::verdict::Verdict;
use crate::protocol::votes::{Incumbent, Remaining, Tally, Vote};
use crate::transport::Resources;

/// Nobody waits longer; a timer could not say so.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// One acquisition that may have to wait. Dropped, it gives up its place in the line.
pub(crate) struct Waiting<'a> {
    shared: &'a Arc<Shared>,
    resources: &'a Resources,
    /// `None` with a wait of zero, which joins no line: it makes its one claim whoever waits.
    turn: Option<Turn<'a>>,
    began: Instant,
    end: Instant,
    claims: u32,
    /// Who is asked to tell.
    watched: MasterSet,
    /// Claims in a row that got some of the masters and not enough: others claim at the same time.
    splits: u32,
}

impl<'a> Waiting<'a> {
    pub(crate) fn begin(shared: &'a Arc<Shared>, resources: &'a Resources, wait: Duration) -> Self {
        let began = Instant::now();
        let turn = (!wait.is_zero()).then(|| Turn::join(&shared.queue, resources));
        let end = began + wait.min(LONGEST_WAIT);
        let watched = MasterSet::EMPTY;
        Self { shared, resources, turn, began, end, claims: 0, watched, splits: 0 }
    }

    /// The masters to ask, with the next claim, for whom it waits and to be told: none with the first, which is plain.
    pub(crate) const fn watched(&self) -> MasterSet {
        self.watched
    }

    /// Waits until it is for this one to claim.
    pub(crate) async fn turn(&mut self) -> Result<(), AcquireError> {
        let Some(turn) = &self.turn else { return Ok(()) };
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
            self.pause(Instant::now() + aside).await?;
        }
        turn.forget_freed();
        Ok(())
    }

    /// Waits, after a claim that was `lost`, until it is time for the next; an error if there is none.
    pub(crate) async fn sit_out(&mut self, lost: &Stake) -> Result<(), AcquireError> {
        self.wait_after(lost).await?;
        // The last answers may have come in since.
        let tally = lost.look(|attempt, _| attempt.tally());
        self.warn_if_endless(&tally);
        self.watched = self.to_watch(&tally);
        Ok(())
    }

    async fn wait_after(&mut self, lost: &Stake) -> Result<(), AcquireError> {
        let (verdict, tally, took) =
            lost.look(|attempt, now| (attempt.verdict(), attempt.tally(), now.since(attempt.began())));
        let verdict = verdict.unwrap_or(Verdict::NoQuorum);
        let answered = Instant::now();
        self.claims += 1;
        let Some(turn) = self.turn.as_ref().filter(|_| answered < self.end) else {
            return Err(self.give_up(verdict, tally));
        };
        turn.tell_last(verdict, &tally);
        let split = verdict == Verdict::Contended && !tally.granted().is_empty();
        self.splits = if split { self.splits + 1 } else { 0 };
        if self.claims == 1 && verdict == Verdict::Contended {
            // All that is known is that it is busy: ask by whom, and to be told.
            return self.pause(if split { answered + self.jitter() } else { answered }).await;
        }
        let dice = self.shared.entropy.dice();
        let expired = answered + Duration::from_micros(1_000 + dice % 10_000);
        // The verdict may be that of others than those who are to tell.
        let all_heard = answered + took + Duration::from_millis(1);
        let mut freed = MasterSet::EMPTY;
        loop {
            // Anew each time: the last answers may have come in since.
            let tally = lost.look(|attempt, _| attempt.tally());
            let is_heard = |master| tally.vote(master).is_some();
            let settled = Instant::now() >= all_heard || self.watched.into_iter().all(is_heard);
            let latest =
                if settled { answered + self.longest_pause(verdict, &tally, dice) } else { all_heard };
            let until = match tally.free_in(freed) {
                Some(Duration::ZERO) if !freed.is_empty() => {
                    return self.pause(Instant::now() + self.jitter()).await;
                }
                Some(left) if !left.is_zero() => latest.min(expired + left),
                _ => latest,
            };
            tokio::select! {
                biased;
                told = poll_fn(|cx| turn.poll_freed(freed, cx)) => freed = told,
                over = self.pause(until) => {
                    over?;
                    if settled || until < all_heard || self.end <= all_heard {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Sleeps, at most until the wait ends: the last claim is made then.
    async fn pause(&self, until: Instant) -> Result<(), AcquireError> {
        let closing = self.shared.closing.notified();
        if self.shared.is_closed() {
            return Err(AcquireError::Closed);
        }
        let until = until.min(self.end);
        if until <= Instant::now() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = closing => Err(AcquireError::Closed),
            () = sleep_until(until) => Ok(()),
        }
    }

    /// Spreads those who are told at the same moment, the more the oftener they got into each other's way: the first
    /// time every other claims at once, and timers are no finer than a millisecond.
    fn jitter(&self) -> Duration {
        let dice = self.shared.entropy.dice();
        if self.splits == 0 && dice.is_multiple_of(2) {
            return Duration::ZERO;
        }
        Duration::from_micros((dice / 2) % (1_000 << self.splits.min(8)))
    }

    /// w masters that answered the last claim: once each of these granted or told, w may be free. More would tell the
    /// same, and to hear it costs each that waits more than anything else. Those that are watched already stay, since
    /// they were the quickest to refuse the first claim. All masters, if fewer can tell.
    fn to_watch(&self, tally: &Tally) -> MasterSet {
        let tells = |master: &MasterId| self.shared.transport.tells(*master);
        let able: MasterSet = tally.granted().chain(tally.held()).filter(tells).collect();
        let needed = self.shared.quorum.needed();
        let stay: MasterSet = able.filter(|master| self.watched.contains(*master)).collect();
        let chosen =
            able.fold(stay, |chosen, more| if chosen.len() < needed { chosen.with(more) } else { chosen });
        if chosen.len() < needed { self.shared.quorum.everyone() } else { chosen }
    }

    /// The longest pause before the next claim. Where enough masters will tell, it is there for what is not told.
    fn longest_pause(&self, verdict: Verdict, tally: &Tally, dice: u64) -> Duration {
        let tells =
            |master: &MasterId| self.watched.contains(*master) && self.shared.transport.tells(*master);
        let telling = tally.held().filter(tells).count();
        let told =
            verdict == Verdict::Contended && telling + tally.granted().len() >= self.shared.quorum.needed();
        let step = if told { u32::MAX } else { self.claims - 1 };
        self.shared.policy.backoff(step, dice)
    }

    /// A key without a ttl is nobody's lock, and never expires by itself.
    fn warn_if_endless(&self, tally: &Tally) {
        let endless = |vote: Option<&Vote>| {
            matches!(vote, Some(Vote::Held(Incumbent { remaining: Remaining::Forever, .. })))
        };
        let on = tally.iter().filter(|(_, vote)| endless(*vote)).count();
        if self.claims == 2 && on >= self.shared.quorum.blocking() {
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
