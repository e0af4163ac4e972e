//! All masters of one client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::Handle as RuntimeHandle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::admission::Admission;
use super::connect::Dialer;
use super::counters::{Part, Passes};
use super::outbox::Gate;
use super::post::Post;
use super::register::Register;
use super::supervisor::{Common, Master, Purpose, Status};
use crate::protocol::policy::Policy;
use crate::protocol::quorum::{MasterId, MasterSet, Quorum};
use crate::protocol::votes::Fault;
use crate::transport::{Ask, LinkWatcher, Pending, Refused, Transport};

/// Once w masters are there, the others get this much longer, or as long as those took.
const GRACE: Duration = Duration::from_millis(50);

/// Five masters behind five outboxes.
#[derive(Debug)]
pub(crate) struct FredTransport {
    names: Vec<String>,
    masters: Vec<Arc<Master>>,
    common: Arc<Common>,
    tasks: Vec<JoinHandle<()>>,
    passes: Arc<Passes>,
    runtime: RuntimeHandle,
}

/// How the first connections went.
#[derive(Debug)]
pub(crate) enum Settled {
    /// As far as they go; masters that are down may come later.
    Ready,
    /// Two entries of the list are one server.
    Twins(MasterId, MasterId),
}

impl FredTransport {
    /// Starts a supervisor a master. Must be called inside a runtime.
    pub(crate) fn start(dialers: Vec<Dialer>, policy: Policy, purpose: Purpose, dice: fn() -> u64) -> Self {
        let common = Arc::new(Common {
            policy,
            purpose,
            register: Register::new(dialers.len()),
            watcher: OnceLock::new(),
            changed: Notify::new(),
            dice,
            told_untold: AtomicBool::new(false),
        });
        let masters: Vec<Arc<Master>> = dialers
            .into_iter()
            .enumerate()
            .filter_map(|(index, dialer)| {
                let (id, name) = (MasterId::new(index)?, dialer.name());
                Some(Arc::new(Master {
                    id,
                    part: Part::new(id, name.clone()),
                    name,
                    dialer,
                    post: Post::new(),
                    status: Mutex::new(Status::Dialling),
                    tells: AtomicBool::new(false),
                    votes: AtomicBool::new(false),
                    common: common.clone(),
                }))
            })
            .collect();
        // The supervisors outlive every call; the transport owns them and ends them when it is dropped.
        #[allow(clippy::disallowed_methods)]
        let tasks = masters.iter().map(|master| tokio::spawn(master.clone().supervise())).collect();
        let names = masters.iter().map(|master| master.name.clone()).collect();
        let passes = Arc::default();
        Self { names, masters, common, tasks, passes, runtime: RuntimeHandle::current() }
    }

    /// Waits until every master is connected or known to be down, at most until `limit`; not for the last ones for
    /// long, once `quorum` is there.
    pub(crate) async fn settle(&self, quorum: Quorum, limit: Duration) -> Settled {
        let began = Instant::now();
        let mut limit = began + limit;
        let mut enough = false;
        loop {
            let changed = self.common.changed.notified();
            let states: Vec<Status> = self.masters.iter().map(|master| master.status()).collect();
            for (master, state) in self.masters.iter().zip(&states) {
                if let Status::Twin(twin) = state {
                    return Settled::Twins(*twin, master.id);
                }
            }
            let admitted = states.iter().filter(|state| **state == Status::Admitted).count();
            if !states.contains(&Status::Dialling) {
                return Settled::Ready;
            }
            if admitted >= quorum.needed() && !enough {
                enough = true;
                limit = limit.min(Instant::now() + GRACE.max(began.elapsed()));
            }
            if timeout_at(limit, changed).await.is_err() {
                return Settled::Ready;
            }
        }
    }
}

impl Transport for FredTransport {
    fn masters(&self) -> &[String] {
        &self.names
    }

    fn send(&self, ask: Ask) -> Result<(), Refused> {
        match self.masters.get(ask.to().index()) {
            Some(master) => master.post.outbox.put(ask),
            None => Err(Refused::new(ask, Fault::Closed)),
        }
    }

    fn flush(&self, masters: MasterSet) {
        // fred's timers want a runtime around them, and it must be ours. Outside any, the tasks do it.
        let inside = RuntimeHandle::try_current().is_ok().then(|| self.runtime.enter());
        for master in masters.filter_map(|master| self.masters.get(master.index())) {
            if inside.is_some() { master.post.flush() } else { master.post.outbox.wake() }
        }
    }

    fn abstains(&self, master: MasterId) -> Option<Fault> {
        self.masters.get(master.index())?.post.outbox.fault()
    }

    fn tells(&self, master: MasterId) -> bool {
        self.masters.get(master.index()).is_some_and(|master| master.tells.load(Ordering::Relaxed))
    }

    fn can_fence(&self) -> bool {
        self.common.purpose != Purpose::Vote(Admission::Off)
    }

    fn count(&self, quorum: Quorum, doubted: MasterSet) -> Option<Pending<'_>> {
        for master in doubted.filter_map(|master| self.masters.get(master.index())) {
            master.part.doubt();
        }
        let parts = || self.masters.iter().filter_map(|master| master.part.counts());
        if parts().all(|counts| counts) {
            return None;
        }
        let urgent = parts().filter(|counts| *counts).count() < quorum.needed();
        if let Some(pass) = self.passes.begin(urgent) {
            // Its commands must run to their end, whoever waits for them. It ends by itself, soon.
            let parts = self.masters.iter().map(|master| master.part.clone()).collect();
            self.runtime.spawn(pass.run(parts, quorum));
        }
        urgent.then(|| -> Pending<'_> { Box::pin(self.passes.ended()) })
    }

    fn why_uncounted(&self, master: MasterId) -> Option<Fault> {
        self.masters.get(master.index())?.part.why_not().map(Fault::Uncounted)
    }

    fn attach(&self, watcher: Weak<dyn LinkWatcher>) {
        let _ = self.common.watcher.set(watcher);
    }

    fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        for master in &self.masters {
            master.note_vote(false);
            master.post.outbox.set_gate(Gate::Shut(Fault::Closed));
        }
    }
}

impl Drop for FredTransport {
    fn drop(&mut self) {
        self.close();
    }
}
