//! One connection: the task that owns the fred client sends what the outbox holds, in order, and hands answers back.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::fred::bytes_utils::Str;
use ::fred::clients::Client;
use ::fred::error::Error;
use ::fred::types::Value;
use tokio::time::Instant;

use super::call::{Call, Load, Scripts};
use super::classify;
use super::connect::ConnectionTask;
use super::outbox::Outbox;
use crate::protocol::fanout::Link;
use crate::protocol::votes::{Fault, Vote};
use crate::transport::{Ask, script};

/// How many calls may be under way on a far master, so that none waits a round trip for nothing.
const MOST_IN_FLIGHT: usize = 32;
/// One more call may be under way for each of these in the round trip. Under load that makes one on loopback: what
/// arrives meanwhile travels together. A lone ask need not wait for the one before it, such as a claim for the release
/// of the lock by this very client.
const PER_CALL: Duration = Duration::from_micros(500);
/// Timeouts in a row, each of a call sent after the one before had timed out, that end a connection.
const STRIKES: u32 = 3;

/// Why a connection has to end.
#[derive(Debug)]
pub(super) enum End {
    Closed(String),
    Unresponsive,
    NoMaster(String),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed(why) => write!(f, "{why}"),
            Self::Unresponsive => write!(f, "{STRIKES} answers in a row did not come in time"),
            Self::NoMaster(words) => write!(f, "{words}"),
        }
    }
}

/// The connection while it lasts.
pub(super) struct Wire {
    client: Client,
    /// Goes before `calls` when dropped: nothing they hold may be sent any more.
    task: ConnectionTask,
    link: Link,
    scripts: Scripts,
    /// Whether the master tells of changes, if asked.
    tells: bool,
    run_id: Str,
    calls: VecDeque<Call>,
    spare: Vec<Call>,
    unwanted: Vec<Ask>,
    /// Asks whose script the master had forgotten, or that were refused for one of their keys; they go first, once
    /// nothing is under way.
    again: Vec<Ask>,
    /// Whether they go one by one, since one of them spoils a call that others share.
    singly: bool,
    /// Whether the last call carried more than one ask.
    crowded: bool,
    /// The task that polls.
    waker: Option<Waker>,
    /// Why the connection has to end, for that task.
    end: Option<End>,
    round_trip: Duration,
    strikes: u32,
    last_strike: Instant,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("link", &self.link).finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(
        client: Client,
        task: ConnectionTask,
        link: Link,
        scripts: Scripts,
        tells: bool,
        run_id: Str,
        round_trip: Duration,
    ) -> Self {
        Self {
            client,
            task,
            link,
            scripts,
            tells,
            run_id,
            calls: VecDeque::new(),
            spare: Vec::new(),
            unwanted: Vec::new(),
            again: Vec::new(),
            singly: false,
            crowded: false,
            waker: None,
            end: None,
            round_trip,
            strikes: 0,
            last_strike: Instant::now(),
        }
    }

    /// Sends and answers; ready when the connection has to end. For the one task that owns it.
    pub(super) fn poll_drive(&mut self, outbox: &Outbox, cx: &mut Context<'_>) -> Poll<End> {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        if let Some(end) = self.end.take() {
            return Poll::Ready(end);
        }
        loop {
            if let Poll::Ready(end) = self.poll_answers(0, cx) {
                return Poll::Ready(end);
            }
            if !self.may_send() || (self.again.is_empty() && outbox.poll_filled(cx).is_pending()) {
                return self.task.poll_ended(cx).map(End::Closed);
            }
            self.send_next(outbox);
        }
    }

    /// Whether what is put in should go out at once. Under load it waits for the task's turn instead, since more is
    /// about to come that can travel with it.
    pub(super) fn is_calm(&self) -> bool {
        !self.crowded && self.waker.is_some()
    }

    /// Sends what waits, if anything may be sent; for anybody, in the name of the task.
    pub(super) fn send_at_once(&mut self, outbox: &Outbox) {
        let Some(waker) = self.waker.clone() else { return };
        let mut cx = Context::from_waker(&waker);
        while self.end.is_none() && self.again.is_empty() && self.may_send() && outbox.is_filled() {
            let nth = self.calls.len();
            self.send_next(outbox);
            if let Poll::Ready(end) = self.poll_answers(nth, &mut cx) {
                self.end = Some(end);
            }
        }
        // On another thread the answer may be there already, and leave something for the task to do.
        if self.end.is_some() || !self.again.is_empty() {
            waker.wake();
        }
    }

    fn may_send(&self) -> bool {
        if !self.again.is_empty() {
            return self.calls.is_empty();
        }
        let far = self.round_trip.as_nanos() / PER_CALL.as_nanos();
        let least = if self.crowded { 1 } else { 2 };
        self.calls.len() < usize::try_from(far).unwrap_or(MOST_IN_FLIGHT).clamp(least, MOST_IN_FLIGHT)
    }

    /// Polls the calls from the `nth` on.
    fn poll_answers(&mut self, mut nth: usize, cx: &mut Context<'_>) -> Poll<End> {
        while let Some(call) = self.calls.get_mut(nth) {
            let Poll::Ready(reply) = call.poll(cx) else {
                nth += 1;
                continue;
            };
            if let Some(call) = self.calls.remove(nth)
                && let Some(end) = self.finish(call, reply)
            {
                return Poll::Ready(end);
            }
        }
        Poll::Pending
    }

    fn send_next(&mut self, outbox: &Outbox) {
        let mut call = self.spare.pop().unwrap_or_else(Call::new);
        let by_text = !self.again.is_empty();
        if by_text {
            let most = if self.singly { 1 } else { together(&self.again) };
            for ask in self.again.drain(..most) {
                if ask.is_wanted() { call.asks.push(ask) } else { self.unwanted.push(ask) }
            }
        } else {
            outbox.take(&mut call.asks, &mut self.unwanted);
        }
        for ask in self.unwanted.drain(..) {
            ask.withdraw(Fault::Withdrawn);
        }
        if call.asks.is_empty() {
            self.spare.push(call);
            return;
        }
        self.crowded = call.asks.len() > 1;
        let scripts = if by_text { &Scripts::Text } else { &self.scripts };
        call.prepare(&self.client, scripts, &self.run_id, self.tells);
        self.calls.push_back(call);
    }

    fn finish(&mut self, mut call: Call, reply: Result<Value, Error>) -> Option<End> {
        let forbidden = call.asks.len() > 1 && classify::is_forbidden_key(&reply);
        if forbidden || call.needs_script(&reply) {
            self.singly = forbidden || (self.singly && !self.again.is_empty());
            self.again.append(&mut call.asks);
            self.spare.push(call);
            return None;
        }
        let end = self.note(&call, &reply);
        let no_master = call.answer(reply, self.link);
        self.spare.push(call);
        end.or(no_master.map(End::NoMaster))
    }

    /// What the reply tells of the connection.
    fn note(&mut self, call: &Call, reply: &Result<Value, Error>) -> Option<End> {
        if classify::is_timeout(reply) {
            if call.sent >= self.last_strike {
                self.strikes += 1;
                self.last_strike = Instant::now();
            }
            return (self.strikes >= STRIKES).then_some(End::Unresponsive);
        }
        self.strikes = 0;
        if reply.is_ok() {
            let round_trip = call.sent.elapsed();
            // The least of late; it creeps up, so that a route that became longer is noticed.
            self.round_trip =
                round_trip.min(self.round_trip + self.round_trip / 64 + Duration::from_micros(1));
        }
        match reply {
            Err(error) if script::closes_link(error.details()) => {
                Some(End::NoMaster(error.details().trim_end().to_owned()))
            }
            _ => None,
        }
    }

    /// Answers everything that is under way: nobody knows what became of it.
    fn give_up(&mut self) {
        let fault = Fault::Broken("closed before the answer".into());
        let under_way = self.calls.drain(..).flat_map(|call| call.asks);
        for ask in under_way {
            ask.answer(Vote::Unknown(fault.clone()), self.link);
        }
        for ask in self.again.drain(..) {
            ask.withdraw(fault.clone());
        }
    }
}

/// How many of the first `asks` go in one call.
fn together(asks: &[Ask]) -> usize {
    let mut load = Load::default();
    asks.iter().take_while(|ask| load.takes(ask)).count()
}

/// The client is aborted, so that nothing it still holds is ever sent.
impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
        self.give_up();
    }
}
