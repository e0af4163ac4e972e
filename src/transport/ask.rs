//! One command on its way, and the promise of one answer.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::resources::Resources;
use crate::protocol::fanout::{Dispatch, Link};
use crate::protocol::quorum::MasterId;
use crate::protocol::votes::{Fault, Reply, Vote};

/// The one who asks: knows the keys and the holder, and takes the answer.
pub trait Asker: Send + Sync {
    /// What is asked for: one key, or several for which one answer is given.
    fn resources(&self) -> &Resources;

    /// The value that signs them.
    fn holder(&self) -> &Bytes;

    /// Whether a command that was not sent yet is still of use.
    fn wants(&self, dispatch: &Dispatch) -> bool;

    /// Takes the answer, on whatever task it arrives.
    fn answered(self: Arc<Self>, dispatch: &Dispatch, reply: Reply);
}

/// One command for one master.
pub struct Ask {
    dispatch: Dispatch,
    by: Option<Arc<dyn Asker>>,
}

impl Ask {
    /// The command `dispatch`, asked by `by`.
    pub fn new(dispatch: Dispatch, by: Arc<dyn Asker>) -> Self {
        Self { dispatch, by: Some(by) }
    }

    /// What is asked.
    #[must_use]
    pub const fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Whom.
    #[must_use]
    pub const fn to(&self) -> MasterId {
        self.dispatch.to
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &[Bytes] {
        self.by.as_ref().map_or(&[], |by| by.resources().keys())
    }

    /// The only key, cheap to clone; `None` if there are several, of which all or none are to be changed.
    #[must_use]
    pub fn single(&self) -> Option<Bytes> {
        self.by.as_ref()?.resources().single().cloned()
    }

    /// Whether it is for several keys, all or none.
    #[cfg(feature = "fred")]
    pub(crate) fn is_for_several(&self) -> bool {
        self.by.as_ref().is_some_and(|by| by.resources().single().is_none())
    }

    /// How many bytes the keys and what signs them take on the wire, more or less.
    #[cfg(feature = "fred")]
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |by: &Arc<dyn Asker>| {
            by.resources().keys().iter().map(Bytes::len).sum::<usize>() + by.holder().len()
        };
        self.by.as_ref().map_or(0, bytes)
    }

    /// The value that signs them; cheap to clone.
    #[must_use]
    pub fn holder(&self) -> Bytes {
        self.by.as_ref().map(|by| by.holder().clone()).unwrap_or_default()
    }

    /// Whether the command is still of use; ask just before it is sent.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.by.as_ref().is_some_and(|by| by.wants(&self.dispatch))
    }

    /// The answer, and the connection it came by.
    pub fn answer(self, vote: Vote, link: Link) {
        self.answer_numbered(vote, None, link);
    }

    /// The same with the number that the key took, for a claim that is fenced.
    pub fn answer_numbered(mut self, vote: Vote, number: Option<u64>, link: Link) {
        self.reply(Reply { vote, link: Some(link), number });
    }

    /// The command was taken back before it was sent.
    pub fn withdraw(mut self, why: Fault) {
        self.reply(Reply::unsent(why));
    }

    fn reply(&mut self, reply: Reply) {
        if let Some(by) = self.by.take() {
            by.answered(&self.dispatch, reply);
        }
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        if self.by.is_some() {
            let fault = Fault::Broken("the client's tasks ended before the answer".into());
            self.reply(Reply { vote: Vote::Unknown(fault), link: None, number: None });
        }
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ask").field(&self.dispatch).finish()
    }
}

/// An ask that was not taken, and why. It is not answered: the caller has it back.
#[derive(Debug)]
pub struct Refused {
    dispatch: Dispatch,
    fault: Fault,
}

impl Refused {
    /// Gives `ask` back.
    #[must_use]
    pub fn new(mut ask: Ask, fault: Fault) -> Self {
        ask.by = None;
        Self { dispatch: ask.dispatch, fault }
    }

    /// What was not sent, and the reply that says so.
    #[must_use]
    pub fn into_reply(self) -> (Dispatch, Reply) {
        (self.dispatch, Reply::unsent(self.fault))
    }
}
