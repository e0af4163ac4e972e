//! What all locks of one client have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::clock::Clock;
use super::entropy::Entropy;
use super::error::Refusal;
use super::events::Events;
use super::holder::{HolderId, Label};
use super::keeper::Keeper;
use super::queue::Queue;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::policy::Policy;
use crate::protocol::quorum::{MasterId, Quorum};
use crate::protocol::votes::{Fault, Tally, Vote};
use crate::transport::{LinkWatcher, Resources, Transport};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) masters: Arc<[String]>,
    pub(crate) quorum: Quorum,
    pub(crate) policy: Policy,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) label: Label,
    pub(crate) keeper: Keeper,
    pub(crate) queue: Queue,
    /// What the names of this client's bells begin with.
    pub(crate) bells: Bytes,
    pub(crate) events: Events,
    closed: AtomicBool,
    pub(crate) closing: Notify,
    /// Commands handed over and not answered yet, and claims without a verdict.
    under_way: AtomicUsize,
    all_answered: Notify,
}

impl Shared {
    pub(crate) fn new(
        transport: Box<dyn Transport>,
        quorum: Quorum,
        policy: Policy,
        clock: Clock,
        entropy: Entropy,
        label: Label,
    ) -> Self {
        Self {
            masters: transport.masters().into(),
            bells: format!("quorlock:bell:{}:", entropy.uuid().simple()).into(),
            transport,
            quorum,
            policy,
            clock,
            entropy,
            label,
            keeper: Keeper::default(),
            queue: Queue::default(),
            events: Events::default(),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            under_way: AtomicUsize::new(0),
            all_answered: Notify::new(),
        }
    }

    pub(crate) fn new_holder(&self, label: Option<&Label>) -> HolderId {
        HolderId::new(label.unwrap_or(&self.label), self.entropy.uuid())
    }

    /// The votes, with a reason for masters that were not asked any more once the claim was hopeless.
    pub(crate) fn refusal(&self, resources: &Resources, tally: Tally) -> Refusal {
        let votes = tally.iter().map(|(master, vote)| match vote {
            Some(Vote::Failed(Fault::Withdrawn)) => {
                self.transport.abstains(master).map(Vote::Failed).or_else(|| vote.cloned())
            }
            Some(Vote::Failed(fault)) if is_of_fencing(fault) => {
                self.transport.why_uncounted(master).map(Vote::Failed).or_else(|| vote.cloned())
            }
            _ => vote.cloned(),
        });
        Refusal {
            resources: resources.to_string(),
            several: resources.single().is_none(),
            masters: self.masters.clone(),
            tally: Tally::new(tally.quorum(), votes),
            claims: 0,
            waited: Duration::ZERO,
        }
    }

    pub(crate) fn name(&self, master: MasterId) -> String {
        self.masters.get(master.index()).cloned().unwrap_or_default()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn refuse_new_work(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.closing.notify_waiters();
    }

    /// A claim begins: whoever closes the client waits for it, until this is dropped. To be had before a look at
    /// whether the client is closed.
    pub(crate) fn claiming(&self) -> Claiming<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        Claiming(self)
    }

    pub(crate) fn on_sent(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn on_answered(&self) {
        if self.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_answered.notify_waiters();
        }
    }

    /// Waits until every command is answered, at most for `limit`.
    pub(crate) async fn answers(&self, limit: Duration) {
        let limit = Instant::now() + limit;
        loop {
            let answered = self.all_answered.notified();
            if self.under_way.load(Ordering::SeqCst) == 0 || timeout_at(limit, answered).await.is_err() {
                return;
            }
        }
    }
}

/// Whether more may be known of it: why a master takes no part, or which right is missing.
fn is_of_fencing(fault: &Fault) -> bool {
    match fault {
        Fault::Uncounted(_) => true,
        Fault::Refused(words) => words.starts_with("NOPERM"),
        _ => false,
    }
}

pub(crate) struct Claiming<'a>(&'a Shared);

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        self.0.on_answered();
    }
}

impl LinkWatcher for Shared {
    fn on_link(&self, master: MasterId, restarted: bool) {
        let kept_only = mutant::on(Mutant::ClaimsNotTold);
        let told = if kept_only { self.keeper.everyone() } else { self.keeper.everyone_and_others() };
        for stake in told {
            stake.step(|attempt, now| attempt.on_link(master, restarted, now));
        }
        // What the connection before would have told is lost.
        self.queue.on_changed(master, None);
    }

    fn on_changed(&self, master: MasterId, resource: Option<&[u8]>) {
        match resource.and_then(|key| key.strip_prefix(&*self.bells)) {
            Some(resource) => self.queue.on_bell(resource),
            None => self.queue.on_changed(master, resource),
        }
    }
}
