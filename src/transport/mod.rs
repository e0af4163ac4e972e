//! What carries a command to a master, and its answer back: the one seam between decisions and the network.
//!
//! ```text
//!            client                                   client
//!              │ Transport::send(Ask)                   ▲ Asker::answered(Reply)
//!              ▼                                        │
//!   fred: one outbox, one connection a master   │   memory: a master as a value
//! ```
//!
//! One [`Ask`] is one command for one master. It is sent at most once, and answered exactly once: an ask that is
//! dropped answers for itself that nobody knows what became of it.

mod ask;

mod resources;

#[cfg(feature = "fred")]
pub(crate) mod script;

#[cfg(feature = "memory")]
pub mod memory;

#[cfg(feature = "fred")]
pub(crate) mod fred;

pub use ask::{Ask, Asker, Refused};
pub use resources::Resources;

use std::fmt;
use std::pin::Pin;
use std::sync::Weak;

use crate::protocol::quorum::{MasterId, MasterSet, Quorum};
use crate::protocol::votes::Fault;

/// What takes its time.
pub type Pending<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The masters of one client.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// The masters' names as they may be shown, in the configured order.
    fn masters(&self) -> &[String];

    /// Hands a command over. Never blocks and never answers inside the call.
    ///
    /// Commands for one master are executed in the order handed over, save that an urgent one may overtake others,
    /// and that a broken connection forgets order.
    ///
    /// # Errors
    ///
    /// If the command certainly was not sent and never will be. The ask comes back unanswered.
    fn send(&self, ask: Ask) -> Result<(), Refused>;

    /// Why `master` cannot be asked to vote at the moment; `None` if it can, or if nobody knows.
    fn abstains(&self, _master: MasterId) -> Option<Fault> {
        None
    }

    /// Whether `master` tells of a change of a key on which an [`Act::Watch`](crate::protocol::fanout::Act::Watch) was
    /// refused. Where it does not, who waits has to ask again and again.
    fn tells(&self, _master: MasterId) -> bool {
        false
    }

    /// Whether fencing tokens can be had of these masters.
    fn can_fence(&self) -> bool {
        true
    }

    /// Looks after the masters' fencing counters, if any needs it; to be called before each claim that is fenced. Of
    /// those `doubted` the client heard that they take no part. What to wait for, if too few take part for a claim.
    fn count(&self, _quorum: Quorum, _doubted: MasterSet) -> Option<Pending<'_>> {
        None
    }

    /// Why `master` takes no part in fencing, if that is known.
    fn why_uncounted(&self, _master: MasterId) -> Option<Fault> {
        None
    }

    /// Sends what was handed over to `masters`, as soon as can be: called after the last of some commands, by one who
    /// holds no lock that an answer needs.
    fn flush(&self, masters: MasterSet) {
        let _ = masters;
    }

    /// Names the one who is told of new connections and of changes. Called once.
    fn attach(&self, watcher: Weak<dyn LinkWatcher>);

    /// Ends all connections. What is unanswered is answered as unknown.
    fn close(&self);
}

/// Is told of connections, and of what changes on the masters.
pub trait LinkWatcher: Send + Sync {
    /// `master` has a new connection that takes deletes; `restarted` if it is not the process it was.
    fn on_link(&self, master: MasterId, restarted: bool);

    /// The key `resource` changed on `master`, or any key may have if it is `None`. Nothing rests on being told: it
    /// may come late, twice, for no reason, or not at all.
    fn on_changed(&self, master: MasterId, resource: Option<&[u8]>);
}
