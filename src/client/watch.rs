//! Watching a key that is held: whom to ask to tell, and how long to wait for that.
//!
//! A claim that watches is told, by those who refuse it, until when the key stays, and then of its next change. It is
//! time for another claim once w masters may be free: those that granted, those told of since, and those where the key
//! has expired. Nothing rests on being told: after the longest pause of the back-off it is time in any case. Where masters
//! do not tell, the pauses begin short and grow up to that.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::Instant;

use super::error::AcquireError;
use super::stake::Stake;
use super::wait::Waiting;
use crate::protocol::quorum::{MasterId, MasterSet};
use crate::protocol::verdict::Verdict;
use crate::protocol::votes::Tally;

impl Waiting<'_> {
    /// Waits until w masters may be free, or may have become so without telling. Whether they told.
    pub(super) async fn until_free(
        &self,
        lost: &Stake,
        verdict: Verdict,
        answered: Instant,
        took: Duration,
    ) -> Result<bool, AcquireError> {
        let Some(turn) = &self.turn else { return Ok(false) };
        let dice = self.shared.entropy.dice();
        let expired = answered + Duration::from_micros(1_000 + dice % 10_000);
        // The verdict may be that of others than those who are to tell.
        let all_heard = answered + took + Duration::from_millis(1);
        let mut freed = MasterSet::EMPTY;
        loop {
            // Anew each time: the last answers may have come in since.
            let tally = lost.look(|attempt, _| attempt.tally());
            let now = Instant::now();
            let heard = self.watched.into_iter().all(|master| tally.vote(master).is_some());
            let settled = heard || now >= all_heard;
            let latest =
                if settled { answered + self.longest_pause(verdict, &tally, dice) } else { all_heard };
            let until = match tally.free_in(freed) {
                Some(Duration::ZERO) if !freed.is_empty() => {
                    return self.pause(now + self.jitter()).await.map(|()| true);
                }
                Some(left) if !left.is_zero() => latest.min(expired + left),
                _ => latest,
            };
            // An answer that is still to come may be the one that was missing, and wakes nobody.
            let look = (settled && !heard).then(|| now + (now - answered));
            let look = look.filter(|look| *look < until.min(self.end));
            tokio::select! {
                biased;
                told = poll_fn(|cx| turn.poll_freed(freed, cx)) => freed = told,
                over = self.pause(look.unwrap_or(until)) => {
                    over?;
                    if look.is_some() {
                        continue;
                    }
                    if settled || until < all_heard || self.end <= all_heard {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Spreads those who are told at the same moment, the more the oftener they got into each other's way. The first
    /// time every other claims at once, since timers are no finer than a millisecond; who stands in line, always.
    pub(super) fn jitter(&self) -> Duration {
        let dice = self.shared.entropy.dice();
        if self.splits == 0 && (self.in_line || dice.is_multiple_of(2)) {
            return Duration::ZERO;
        }
        Duration::from_micros((dice / 2) % (1_000 << self.splits.min(8)))
    }

    /// w masters that answered the last claim: once each of these granted or told, w may be free. More would tell the
    /// same, and to hear it costs each that waits more than anything else. Those that are watched already stay, since
    /// they were the quickest to refuse the first claim. All masters, if fewer can tell.
    pub(super) fn to_watch(&self, tally: &Tally) -> MasterSet {
        self.tellers(tally.granted().chain(tally.held()).collect())
    }

    pub(super) fn tellers(&self, among: MasterSet) -> MasterSet {
        let able: MasterSet = among.filter(|master| self.shared.transport.tells(*master)).collect();
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
            verdict != Verdict::TooLate && telling + tally.granted().len() >= self.shared.quorum.needed();
        let step = if told { u32::MAX } else { self.claims - 1 };
        self.shared.policy.backoff(step, dice)
    }
}
