//! One attempt, shared by its guard, the keeper, and the answers on their way.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::error::{Lost, Why};
use super::holder::HolderId;
use super::shared::Shared;
use crate::protocol::attempt::{Attempt, Stage};
use crate::protocol::fanout::Dispatch;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::news::News;
use crate::protocol::quorum::MasterSet;
use crate::protocol::time::Moment;
use crate::protocol::votes::Reply;
use crate::transport::{Ask, Asker, Resources};

/// How often a hold that nothing bounds is told of.
const REMINDER: Duration = Duration::from_secs(60 * 60);

/// The deadline of a lease that is over, or never was.
const NOT_VALID: u64 = 0;

pub(crate) struct Stake {
    pub(crate) shared: Arc<Shared>,
    pub(crate) resources: Resources,
    pub(crate) holder: HolderId,
    state: Mutex<State>,
    /// The deadline in nanoseconds. Whoever finds it passed sets it to [`NOT_VALID`], and then nobody can move it
    /// again: a lock once seen as lost stays lost (hazard H26).
    valid_until: AtomicU64,
    pub(crate) changed: Notify,
    pub(crate) number: u64,
    /// The clock after the latest commands went out: what rule 1 forbids to count from.
    #[cfg(feature = "mutants")]
    pub(super) sent: AtomicU64,
}

struct State {
    attempt: Attempt,
    published: u64,
    /// Whether the keeper looks after it; before that, the claim's own future does.
    kept: bool,
    due: Option<Moment>,
    /// How often the hold was told of.
    reminders: u32,
    /// Whether it is a lease, behind which the client's own waiters stand.
    stands: bool,
}

/// What an input to an attempt came to.
#[derive(Clone, Copy)]
pub(super) struct After {
    /// The masters that something was handed over for.
    pub(super) sent: MasterSet,
    /// Whether a lease of this client ended.
    pub(super) is_over: bool,
    pub(super) is_news: bool,
}

impl State {
    /// When to remind of a hold that nothing bounds (rule 11).
    fn next_reminder(&self) -> Option<Moment> {
        Some(self.attempt.endless_since()?.plus(REMINDER * (self.reminders + 1)))
    }
}

impl Stake {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        resources: Resources,
        holder: HolderId,
        attempt: Attempt,
    ) -> Arc<Self> {
        let attempt = if resources.single().is_some() { attempt } else { attempt.of_several() };
        let stands = attempt.stage() == Stage::Held;
        if stands {
            shared.queue.hold(&resources, Duration::ZERO);
            gauge!(increment 1.0, "quorlock_held");
        }
        let state = State { attempt, published: NOT_VALID, kept: false, due: None, reminders: 0, stands };
        let stake = Arc::new(Self {
            shared: shared.clone(),
            resources,
            holder,
            state: Mutex::new(state),
            valid_until: AtomicU64::new(NOT_VALID),
            changed: Notify::new(),
            number: shared.keeper.next_number(),
            #[cfg(feature = "mutants")]
            sent: AtomicU64::new(0),
        });
        // Before its first command: it must hear of every restart of a master that may have voted for it.
        shared.keeper.enter(&stake);
        stake
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Feeds the machine one input, and does at once all it asks for.
    pub(crate) fn step<R>(self: &Arc<Self>, input: impl FnOnce(&mut Attempt, Moment) -> R) -> R {
        let mut state = self.state();
        let now = self.shared.clock.now();
        let result = input(&mut state.attempt, now);
        self.follow(state, now);
        result
    }

    /// From now on the keeper looks after it. Nothing is flushed and nobody told yet.
    pub(super) fn hand_over(self: &Arc<Self>, input: impl FnOnce(&mut Attempt, Moment)) -> After {
        let mut state = self.state();
        let now = self.shared.clock.now();
        input(&mut state.attempt, now);
        let handed_over = !std::mem::replace(&mut state.kept, true);
        let after = self.advance(state, now);
        if handed_over {
            self.shared.keeper.leave(self.number);
        }
        after
    }

    /// The keeper's turn: its entry is used up. The masters that have something to be flushed to them.
    pub(crate) fn on_due(self: &Arc<Self>) -> MasterSet {
        let mut state = self.state();
        let now = self.shared.clock.now();
        state.due = None;
        state.attempt.on_time(now);
        if let Some(since) = state.attempt.endless_since()
            && state.next_reminder().is_some_and(|due| now >= due)
        {
            let held = now.since(since);
            state.reminders = u32::try_from(held.as_secs() / REMINDER.as_secs()).unwrap_or(u32::MAX - 1);
            if self.shared.events.remind(&self.resources, &self.holder, held, now) {
                self.shared.keeper.look();
            }
        }
        let after = self.advance(state, now);
        self.tell(after);
        after.sent
    }

    /// Looks without touching.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Attempt, Moment) -> R) -> R {
        let state = self.state();
        look(&state.attempt, self.shared.clock.now())
    }

    fn follow(self: &Arc<Self>, state: MutexGuard<'_, State>, now: Moment) {
        let after = self.advance(state, now);
        self.finish(after);
    }

    /// Does all that the machine asks for, but for sending off what is handed over, and telling others.
    fn advance(self: &Arc<Self>, mut state: MutexGuard<'_, State>, now: Moment) -> After {
        let sent = self.send(&mut state.attempt, now);
        self.publish(&mut state);
        let news = state.attempt.take_news();
        let stands = state.attempt.stage() == Stage::Held;
        let stood = std::mem::replace(&mut state.stands, stands);
        if stands && !stood {
            self.shared.queue.hold(&self.resources, now.since(state.attempt.began()));
            gauge!(increment 1.0, "quorlock_held");
        }
        if state.kept {
            let waits = || (!state.attempt.is_finished()).then_some(Moment::NEVER);
            let next = state.attempt.next_time().or_else(waits);
            let next = next.into_iter().chain(state.next_reminder()).min();
            if next != state.due {
                self.shared.keeper.reschedule(self, state.due, next);
                state.due = next;
            }
        }
        let is_news = news != News::default();
        if is_news && self.shared.events.report(&self.resources, &self.holder, &state.attempt, news, now) {
            // It may sleep for longer than the window, and has to sum up.
            self.shared.keeper.look();
        }
        After { sent, is_over: stood && !stands, is_news }
    }

    /// Commands go out under the lock, so that those of one attempt reach a master in the order they were decided.
    fn send(self: &Arc<Self>, attempt: &mut Attempt, now: Moment) -> MasterSet {
        let mut sent = MasterSet::EMPTY;
        while let Some(dispatch) = attempt.next_dispatch() {
            self.shared.on_sent();
            match self.shared.transport.send(Ask::new(dispatch, self.clone())) {
                Ok(()) => sent = sent.with(dispatch.to),
                Err(refused) => {
                    let (dispatch, reply) = refused.into_reply();
                    self.shared.on_answered();
                    attempt.on_reply(&dispatch, reply, now);
                }
            }
        }
        sent
    }

    fn publish(&self, state: &mut State) {
        let until = state.attempt.deadline().map_or(NOT_VALID, Moment::as_nanos);
        if until == state.published {
            return;
        }
        let (old, new) = (state.published, until);
        let exchanged = self.valid_until.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
        state.published = new;
        if exchanged.is_err() && new != NOT_VALID && mutant::on(Mutant::SeenLossForgotten) {
            self.valid_until.store(new, Ordering::Release);
        } else if exchanged.is_err() && new != NOT_VALID {
            state.attempt.lapse();
            state.published = NOT_VALID;
        }
    }

    /// Until when the lease is valid; `None` for ever after it was not.
    pub(crate) fn valid_until(&self) -> Option<Moment> {
        let until = self.valid_until.load(Ordering::Acquire);
        if until == NOT_VALID {
            return None;
        }
        if self.shared.clock.now() < Moment::from_nanos(until) {
            return Some(Moment::from_nanos(until));
        }
        match self.valid_until.compare_exchange(until, NOT_VALID, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => None,
            // The deadline was moved in the very same moment: look once more.
            Err(NOT_VALID) => None,
            Err(_) => self.valid_until(),
        }
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.valid_until().map_or(Duration::ZERO, |until| until.since(self.shared.clock.now()))
    }

    /// Why the lease is over; `None` while it is valid.
    pub(crate) fn lost(self: &Arc<Self>) -> Option<Lost> {
        if self.valid_until().is_some() {
            return None;
        }
        let why = match self.step(|attempt, now| {
            attempt.on_time(now);
            (attempt.loss(), attempt.stage())
        }) {
            (Some(loss), _) => loss.into(),
            (None, Stage::Released) => Why::Released,
            (None, _) => Why::Expired,
        };
        Some(Lost { resources: self.resources.to_string(), why })
    }
}

impl Asker for Stake {
    fn resources(&self) -> &Resources {
        &self.resources
    }

    fn holder(&self) -> &Bytes {
        self.holder.bytes()
    }

    fn wants(&self, dispatch: &Dispatch) -> bool {
        // A delete is of use whatever happened, and needs no look.
        !dispatch.act.votes() || self.look(|attempt, now| attempt.wants(dispatch, now))
    }

    fn answered(self: Arc<Self>, dispatch: &Dispatch, reply: Reply) {
        #[cfg(feature = "mutants")]
        let dispatch = &match mutant::on(Mutant::ClockReadLate) {
            true => Dispatch { stamp: Moment::from_nanos(self.sent.load(Ordering::Acquire)), ..*dispatch },
            false => *dispatch,
        };
        self.step(|attempt, now| attempt.on_reply(dispatch, reply, now));
        self.shared.on_answered();
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        if !self.state.get_mut().unwrap_or_else(PoisonError::into_inner).kept {
            self.shared.keeper.leave(self.number);
        }
    }
}

impl fmt::Debug for Stake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stake")
            .field("resources", &format_args!("{}", self.resources))
            .field("holder", &self.holder)
            .finish_non_exhaustive()
    }
}
