//! Where a client stands in the line of clients that wait for a resource.
//!
//! Were all who wait told of a release, all would claim at once: they would get into each other's way, and chance would
//! decide. So they stand in line, on one of the masters, and only the first of them watches the key. Who has got the lock
//! leaves the line, and the master rings the bell of the next.
//!
//! A line is a courtesy and no part of the lock. It keeps nobody from claiming, and who stands in it claims after a pause
//! if it does not move, whether he is called or not. So a first that died holds the others up once: whoever gets the lock
//! then takes his place from him. Those behind say now and then that they are there, and are not called if they did not
//! for [`AWAY`]. Where no master keeps a line, everybody is the first.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::task::AtomicWaker;
use tokio::time::{Instant, timeout_at};

use super::shared::Shared;
use crate::protocol::fanout::{Act, Dispatch};
use crate::protocol::fencing;
use crate::protocol::quorum::{MasterId, MasterSet};
use crate::protocol::request::Ttl;
use crate::protocol::votes::Reply;
use crate::transport::{Ask, Asker, Resources};

/// What the names of lines begin with.
const LINES: &[u8] = b"quorlock:line:";

/// Who does not ask for so long is taken to be gone; as line.lua has it.
const AWAY: Duration = Duration::from_secs(20);
/// The longest pause before who stands in line asks again.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(AWAY.as_millis() as u64 * 2 / 5);

/// A place in line. Dropped, it is given up.
#[derive(Debug)]
pub(super) struct Standing(Arc<Spot>);

struct Spot {
    shared: Arc<Shared>,
    bell: Resources,
    line: Bytes,
    ttl: Ttl,
    state: Mutex<State>,
    answered: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    /// The masters on which it may stand.
    at: MasterSet,
    /// How often it queued up. Answers to earlier questions do not count.
    round: u32,
    /// The answer to the last question, and what number was in it.
    answer: Option<Option<u64>>,
    gone: bool,
}

impl Standing {
    /// Nowhere yet, for the key `resource`.
    pub(super) fn nowhere(shared: &Arc<Shared>, resource: &Bytes, ttl: Ttl) -> Self {
        Self(Arc::new(Spot {
            shared: shared.clone(),
            bell: Resources::one(&[&*shared.bells, resource].concat()),
            line: [LINES, resource].concat().into(),
            ttl,
            state: Mutex::default(),
            answered: AtomicWaker::new(),
        }))
    }

    /// Queues up, unless it stands in line. How many stand before it; `None` where no master told by `limit`.
    pub(super) async fn queue_up(&self, limit: Instant) -> Option<u64> {
        let master = self.0.where_to()?;
        {
            let mut state = self.0.state();
            state.at = state.at.with(master);
            state.round += 1;
            state.answer = None;
        }
        self.0.ask(Act::QueueUp, MasterSet::EMPTY.with(master));
        let told = poll_fn(|cx| {
            self.0.answered.register(cx.waker());
            self.0.state().answer.map_or(Poll::Pending, Poll::Ready)
        });
        timeout_at(limit, told).await.ok().flatten()
    }

    /// It has the lock. Whether it stood in line. Where it `overtakes`, who was called and did not come loses his place.
    pub(super) fn served(self, overtakes: bool) -> bool {
        self.0.go(if overtakes { Act::Overtake } else { Act::Leave })
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.0.go(Act::Leave);
    }
}

impl Spot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The master that keeps the line: the same for all clients that have the same list and reach it, another for another
    /// resource. One that tells, so that the bell can be heard.
    fn where_to(&self) -> Option<MasterId> {
        let masters = self.shared.quorum.masters();
        let first = usize::from(fencing::shard(&self.line)) % masters;
        let mut all = (first..masters).chain(0..first).filter_map(MasterId::new);
        let transport = &self.shared.transport;
        all.find(|master| transport.tells(*master) && transport.abstains(*master).is_none())
    }

    fn go(self: &Arc<Self>, act: Act) -> bool {
        let (at, gone) = {
            let mut state = self.state();
            (state.at, std::mem::replace(&mut state.gone, true))
        };
        if !gone {
            self.ask(act, at);
        }
        !at.is_empty()
    }

    fn ask(self: &Arc<Self>, act: Act, masters: MasterSet) {
        let (round, stamp) = (self.state().round, self.shared.clock.now());
        let mut sent = MasterSet::EMPTY;
        for to in masters {
            let dispatch = Dispatch { to, act, round, stamp, ttl: self.ttl, urgent: false, fence: None };
            self.shared.on_sent();
            match self.shared.transport.send(Ask::new(dispatch, self.clone())) {
                Ok(()) => sent = sent.with(to),
                Err(refused) => {
                    let (dispatch, reply) = refused.into_reply();
                    self.clone().answered(&dispatch, reply);
                }
            }
        }
        if !sent.is_empty() {
            self.shared.transport.flush(sent);
        }
    }
}

impl Asker for Spot {
    fn resources(&self) -> &Resources {
        &self.bell
    }

    fn holder(&self) -> &Bytes {
        &self.line
    }

    fn wants(&self, dispatch: &Dispatch) -> bool {
        dispatch.act != Act::QueueUp || !self.state().gone
    }

    fn answered(self: Arc<Self>, dispatch: &Dispatch, reply: Reply) {
        {
            let mut state = self.state();
            if dispatch.act == Act::QueueUp && dispatch.round == state.round {
                state.answer = Some(reply.number);
            }
        }
        self.answered.wake();
        self.shared.on_answered();
    }
}

impl fmt::Debug for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spot").field("bell", &format_args!("{}", self.bell)).finish_non_exhaustive()
    }
}
