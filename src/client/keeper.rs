//! The keeper: one task a client that looks after all its leases, and after keys that must not stay.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::shared::Shared;
use super::stake::Stake;
use crate::protocol::quorum::MasterSet;
use crate::protocol::time::Moment;

/// The longest sleep. Timers do not run while the machine is suspended, but the clock does: after a resume the
/// keeper notices what was lost within this (hazard H33).
const NAP: Duration = Duration::from_secs(1);

/// What is due when. Leases, and attempts with keys to remove.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    agenda: Mutex<Agenda>,
    /// What is not looked after yet: claims, and locks taken over from another process.
    others: Mutex<BTreeMap<u64, Weak<Stake>>>,
    earlier: Notify,
    numbers: AtomicU64,
}

#[derive(Debug, Default)]
struct Agenda {
    due: BTreeMap<(Moment, u64), Arc<Stake>>,
    /// When the task will look by itself; `None` while it is looking.
    sleeps_until: Option<Moment>,
    /// No guard and no client is left: the task is to end.
    orphaned: bool,
    /// The task has ended, or its runtime has: nothing is looked after any more.
    ended: bool,
}

impl Keeper {
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reschedule(&self, stake: &Arc<Stake>, from: Option<Moment>, to: Option<Moment>) {
        let mut agenda = self.agenda();
        if let Some(from) = from {
            agenda.due.remove(&(from, stake.number));
        }
        let Some(to) = to.filter(|_| !agenda.ended) else { return };
        agenda.due.insert((to, stake.number), stake.clone());
        if agenda.sleeps_until.is_some_and(|until| to < until) {
            agenda.sleeps_until = None;
            drop(agenda);
            self.earlier.notify_one();
        }
    }

    /// Everything the keeper looks after, by age.
    pub(crate) fn everyone(&self) -> Vec<Arc<Stake>> {
        let mut everyone: Vec<_> = self.agenda().due.values().cloned().collect();
        everyone.sort_by_key(|stake| stake.number);
        everyone
    }

    /// The same, and what it does not look after yet.
    pub(crate) fn everyone_and_others(&self) -> Vec<Arc<Stake>> {
        // In this order, so that whoever is handed over meanwhile is there twice rather than not at all.
        let others: Vec<_> = self.others().values().filter_map(Weak::upgrade).collect();
        let mut all = self.everyone();
        all.extend(others);
        all.sort_by_key(|stake| stake.number);
        all.dedup_by_key(|stake| stake.number);
        all
    }

    fn others(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<Stake>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, stake: &Arc<Stake>) {
        self.others().insert(stake.number, Arc::downgrade(stake));
    }

    pub(crate) fn leave(&self, number: u64) {
        self.others().remove(&number);
    }

    /// Has the task look at once.
    pub(crate) fn look(&self) {
        self.earlier.notify_one();
    }

    /// The last handle is gone; the task finishes what is under way and ends.
    pub(crate) fn orphan(&self) {
        self.agenda().orphaned = true;
        self.earlier.notify_one();
    }

    fn take_due(&self, now: Moment, due: &mut Vec<Arc<Stake>>) {
        let mut agenda = self.agenda();
        while let Some(entry) = agenda.due.first_entry()
            && entry.key().0 <= now
        {
            due.push(entry.remove());
        }
    }

    /// What is looked after keeps the client alive; that ends here.
    fn end(&self) {
        let due = {
            let mut agenda = self.agenda();
            agenda.ended = true;
            std::mem::take(&mut agenda.due)
        };
        drop(due);
    }

    /// When to look again, at `latest` if nothing is due earlier; `None` when orphaned.
    fn next_look(&self, now: Moment, latest: Moment) -> Option<Moment> {
        let mut agenda = self.agenda();
        if agenda.orphaned {
            return None;
        }
        let next = agenda.due.first_key_value().map_or(latest, |((moment, _), _)| latest.min(*moment));
        agenda.sleeps_until = Some(next);
        Some(if next == Moment::NEVER { next } else { next.min(now.plus(NAP)) })
    }
}

/// The task. It holds the client's shared part, so it ends only when no handle is left, or with its runtime.
pub(crate) async fn run(shared: Arc<Shared>) {
    let _ended = Ended(shared.clone());
    let mut due = Vec::new();
    loop {
        shared.keeper.take_due(shared.clock.now(), &mut due);
        // Sent off at the end, so that what is due together travels together.
        let sent =
            due.drain(..).fold(MasterSet::EMPTY, |sent, stake| stake.on_due().fold(sent, MasterSet::with));
        if !sent.is_empty() {
            shared.transport.flush(sent);
        }
        let now = shared.clock.now();
        shared.events.on_time(now);
        let latest = shared.events.next_sum().unwrap_or(Moment::NEVER);
        let Some(next) = shared.keeper.next_look(now, latest) else { break };
        let earlier = shared.keeper.earlier.notified();
        if next == Moment::NEVER {
            earlier.await;
        } else {
            // A rounded-down timer would look just before the moment, and then again.
            let sleep = next.since(now).max(Duration::from_micros(100));
            let _ = timeout_at(Instant::now() + sleep, earlier).await;
        }
    }
    shared.refuse_new_work();
    shared.answers(shared.policy.master_timeout() * 2).await;
    shared.events.end();
    shared.transport.close();
}

/// Also when the runtime drops the task.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.keeper.end();
    }
}
