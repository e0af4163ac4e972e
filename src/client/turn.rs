//! A place in a line, from joining it to the claim.

use std::task::{Context, Poll};
use std::time::Duration;

use super::queue::{Bell, Book, Contender, Queue};
use crate::protocol::quorum::MasterSet;
use crate::protocol::verdict::Verdict;
use crate::protocol::votes::Tally;
use crate::transport::Resources;

/// How long a lock may go round within a client before others are let in; and what a claim of theirs takes beyond a
/// round trip: to be told, and their jitter. So a client alone loses two hundredths of its time by it.
const ROUND: Duration = Duration::from_millis(250);
const ASIDE: Duration = Duration::from_millis(3);

/// A place in a line. Dropped, it is given up, wherever in the line it is.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
    resources: &'a Resources,
    ticket: u64,
}

impl<'a> Turn<'a> {
    /// Joins the end of the line.
    pub(crate) fn join(queue: &'a Queue, resources: &'a Resources) -> Self {
        let mut book = queue.book();
        book.tickets += 1;
        let ticket = book.tickets;
        let line = book.line_made(resources);
        if line.contender.is_none() {
            line.contender = Some(Contender::new(ticket));
        } else {
            line.behind.insert(ticket, None);
        }
        Self { queue, resources, ticket }
    }

    /// Ready when the holder of this place may claim: first in line, and no lock of this client in the way.
    pub(crate) fn poll_come(&self, cx: &Context<'_>) -> Poll<()> {
        let mut book = self.queue.book();
        let is_held = book.is_held(self.resources);
        let Some(line) = book.line(self.resources) else { return Poll::Ready(()) };
        let waker = match &mut line.contender {
            Some(contender) if contender.ticket == self.ticket => {
                if !is_held {
                    return Poll::Ready(());
                }
                &mut contender.waker
            }
            _ => line.behind.entry(self.ticket).or_default(),
        };
        *waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// How long to let others claim first, if it is time for that; then it is also time to stand in line. Asked right
    /// before a claim. Where this client left the lock for a moment, others could claim then, and need no time.
    pub(crate) fn steps_aside(&self) -> Option<Duration> {
        let mut book = self.queue.book();
        let Book { places, lately, crowds, .. } = &mut *book;
        let mut aside = None;
        for key in self.resources.keys() {
            let Some(place) = places.get_mut(key) else { continue };
            if place.kept_since.is_none() && crowds.at(key).is_some() {
                // It stands in line in any case.
                continue;
            }
            let mut time = ASIDE + place.round_trip * 2;
            if place.kept_since.is_none()
                && let Some((since, round_trip)) = lately.kept(key, ASIDE)
            {
                time = Duration::ZERO;
                (place.kept_since, place.round_trip) = (Some(since), round_trip);
            }
            if place.kept_since.take_if(|since| since.elapsed() >= ROUND).is_some() {
                aside = aside.max(Some(time));
            }
        }
        aside
    }

    /// A claim is about to be made: what was heard so far is of no use any more.
    pub(crate) fn forget_freed(&self) {
        if let Some(contender) = self.queue.book().contender(self.resources) {
            contender.freed = MasterSet::EMPTY;
        }
    }

    /// Ready with the masters that may be free, once they are others than `known`.
    pub(crate) fn poll_freed(&self, known: MasterSet, cx: &Context<'_>) -> Poll<MasterSet> {
        let mut book = self.queue.book();
        match book.contender(self.resources) {
            Some(contender) if contender.freed == known => {
                contender.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(contender) => Poll::Ready(contender.freed),
            // Only a contender asks.
            None => Poll::Pending,
        }
    }

    /// A bell that rings from now on counts.
    pub(crate) fn forget_bell(&self) {
        if let Some(contender) = self.queue.book().contender(self.resources) {
            contender.bell = Bell::Silent;
        }
    }

    /// Ready once the bell rang, or a connection ended by which it may have: whether it rang.
    pub(crate) fn poll_bell(&self, cx: &Context<'_>) -> Poll<bool> {
        let mut book = self.queue.book();
        match book.contender(self.resources) {
            Some(contender) if contender.bell == Bell::Silent => {
                contender.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(contender) => Poll::Ready(contender.bell == Bell::Rung),
            None => Poll::Pending,
        }
    }

    /// How the last claim failed, for who is behind.
    pub(crate) fn tell_last(&self, verdict: Verdict, tally: &Tally) {
        let mut book = self.queue.book();
        for key in self.resources.keys() {
            if let Some(place) = book.places.get_mut(key) {
                place.kept_since = None;
            }
        }
        if let Some(line) = book.line(self.resources) {
            line.last = Some((verdict, tally.clone()));
        }
    }

    /// What stands in the way of one who never came to claim.
    pub(crate) fn obstacle(&self) -> Obstacle {
        let mut book = self.queue.book();
        if book.is_held(self.resources) {
            return Obstacle::OwnLock;
        }
        Obstacle::Others(book.line(self.resources).and_then(|line| line.last.clone()))
    }
}

/// Why a turn did not come.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// A lock of this client.
    OwnLock,
    /// Waiters in front, and how their last claim failed.
    Others(Option<(Verdict, Tally)>),
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut book = self.queue.book();
        let mut next = book.line(self.resources).and_then(|line| line.leave(self.ticket));
        // Who moves up behind a lock of this client is woken when that goes.
        if next.is_some()
            && book.is_held(self.resources)
            && let Some(contender) = book.contender(self.resources)
        {
            contender.waker = next.take();
        }
        book.tidy_line(self.resources);
        drop(book);
        if let Some(next) = next {
            next.wake();
        }
    }
}
