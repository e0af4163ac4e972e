//! Who of this client waits for what: a fair line per resource, with one contender at its head.
//!
//! Only the contender of a line claims on the masters; the others wait their turn, by age, and cost nothing. While a
//! lock of this client stands in the way the contender waits too: it is told when the release is on its way, and its
//! claim then follows the release on every connection.
//!
//! A list of several resources has a line of its own and is in no other. Whoever waits for one of its resources alone
//! is not held up by it, so a task that holds a part of the list and wants more cannot be kept from it by a waiter who
//! in turn waits for that task: nobody waits behind one who cannot go on, and no order of lists can deadlock. The price
//! is that the contenders of two lines with a resource in common meet on the masters, where chance decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::protocol::quorum::{MasterId, MasterSet};
use crate::protocol::verdict::Verdict;
use crate::protocol::votes::Tally;
use crate::transport::Resources;

/// All lines of one client.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    places: HashMap<Bytes, Place>,
    lists: HashMap<Resources, Line>,
    tickets: u64,
}

/// What there is about one resource.
#[derive(Debug, Default)]
struct Place {
    /// Locks of this client on it whose release is not on its way yet.
    held: u32,
    /// For it alone.
    line: Line,
    /// The lists it is part of for which somebody waits.
    lists: Vec<Resources>,
}

#[derive(Debug, Default)]
struct Line {
    contender: Option<Contender>,
    /// By ticket, so by age. There is a contender while anybody waits.
    behind: BTreeMap<u64, Option<Waker>>,
    /// How the last claim of this line failed, for those who never came to claim.
    last: Option<(Verdict, Tally)>,
}

#[derive(Debug)]
struct Contender {
    ticket: u64,
    /// Masters that have become free, or may have, since the contender last claimed.
    freed: MasterSet,
    waker: Option<Waker>,
}

/// A place in a line. Dropped, it is given up, wherever in the line it is.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
    resources: &'a Resources,
    ticket: u64,
}

impl Queue {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the end of the line.
    pub(crate) fn enter<'a>(&'a self, resources: &'a Resources) -> Turn<'a> {
        let mut book = self.book();
        book.tickets += 1;
        let ticket = book.tickets;
        let line = book.line_made(resources);
        if line.contender.is_none() {
            line.contender = Some(Contender { ticket, freed: MasterSet::EMPTY, waker: None });
        } else {
            line.behind.insert(ticket, None);
        }
        Turn { queue: self, resources, ticket }
    }

    /// A lock of this client stands on `resources`.
    pub(crate) fn hold(&self, resources: &Resources) {
        let mut book = self.book();
        for key in resources.keys() {
            book.places.entry(key.clone()).or_default().held += 1;
        }
    }

    /// That lock is over, and its release, if there is one, was sent to `everyone`.
    pub(crate) fn let_go(&self, resources: &Resources, everyone: MasterSet) {
        let mut woken = Vec::new();
        let mut book = self.book();
        for key in resources.keys() {
            let Some(place) = book.places.get_mut(key) else { continue };
            place.held = place.held.saturating_sub(1);
            if place.held == 0 {
                book.told(key, everyone, &mut woken);
                book.tidy(key);
            }
        }
        drop(book);
        wake(woken);
    }

    /// Something changed on `master`: the key of `resource`, or without one nobody knows what.
    pub(crate) fn on_changed(&self, master: MasterId, resource: Option<&[u8]>) {
        let mut woken = Vec::new();
        let masters = MasterSet::EMPTY.with(master);
        let mut book = self.book();
        match resource {
            Some(key) => book.told(key, masters, &mut woken),
            None => {
                let Book { places, lists, .. } = &mut *book;
                let lines = places.values_mut().map(|place| &mut place.line).chain(lists.values_mut());
                woken.extend(lines.filter_map(|line| line.told(masters)));
            }
        }
        drop(book);
        wake(woken);
    }
}

impl Book {
    fn line(&mut self, resources: &Resources) -> Option<&mut Line> {
        match resources.single() {
            Some(key) => self.places.get_mut(key).map(|place| &mut place.line),
            None => self.lists.get_mut(resources),
        }
    }

    fn line_made(&mut self, resources: &Resources) -> &mut Line {
        let Some(key) = resources.single() else {
            if !self.lists.contains_key(resources) {
                for key in resources.keys() {
                    self.places.entry(key.clone()).or_default().lists.push(resources.clone());
                }
            }
            return self.lists.entry(resources.clone()).or_default();
        };
        &mut self.places.entry(key.clone()).or_default().line
    }

    fn is_held(&self, resources: &Resources) -> bool {
        resources.keys().iter().any(|key| self.places.get(key).is_some_and(|place| place.held > 0))
    }

    /// Tells all contenders for `key`, alone or in a list, that `masters` may be free of it.
    fn told(&mut self, key: &[u8], masters: MasterSet, woken: &mut Vec<(u64, Waker)>) {
        let Self { places, lists, .. } = self;
        let Some(place) = places.get_mut(key) else { return };
        woken.extend(place.line.told(masters));
        for list in &place.lists {
            woken.extend(lists.get_mut(list).and_then(|line| line.told(masters)));
        }
    }

    /// Removes what says nothing any more.
    fn tidy(&mut self, key: &[u8]) {
        if self.places.get(key).is_some_and(Place::is_empty) {
            self.places.remove(key);
        }
    }

    fn tidy_line(&mut self, resources: &Resources) {
        if resources.single().is_none() && self.lists.get(resources).is_some_and(Line::is_empty) {
            self.lists.remove(resources);
            for key in resources.keys() {
                if let Some(place) = self.places.get_mut(key) {
                    place.lists.retain(|list| list != resources);
                }
            }
        }
        resources.keys().iter().for_each(|key| self.tidy(key));
    }
}

impl Place {
    fn is_empty(&self) -> bool {
        self.held == 0 && self.lists.is_empty() && self.line.is_empty()
    }
}

impl Line {
    fn is_empty(&self) -> bool {
        self.contender.is_none() && self.behind.is_empty()
    }

    fn told(&mut self, masters: MasterSet) -> Option<(u64, Waker)> {
        let contender = self.contender.as_mut()?;
        contender.freed = masters.fold(contender.freed, MasterSet::with);
        Some((contender.ticket, contender.waker.take()?))
    }

    /// Takes `ticket` out; the waker of who moves up, if somebody does.
    fn leave(&mut self, ticket: u64) -> Option<Waker> {
        if self.contender.as_ref().is_none_or(|contender| contender.ticket != ticket) {
            self.behind.remove(&ticket);
            return None;
        }
        let next = self.behind.pop_first();
        self.contender = next.as_ref().map(|(ticket, _)| Contender {
            ticket: *ticket,
            freed: MasterSet::EMPTY,
            waker: None,
        });
        next.and_then(|(_, waker)| waker)
    }
}

impl Turn<'_> {
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

    /// A claim is about to be made: what was heard so far is of no use any more.
    pub(crate) fn forget_freed(&self) {
        if let Some(contender) =
            self.queue.book().line(self.resources).and_then(|line| line.contender.as_mut())
        {
            contender.freed = MasterSet::EMPTY;
        }
    }

    /// Ready with the masters that may be free, once they are others than `known`.
    pub(crate) fn poll_freed(&self, known: MasterSet, cx: &Context<'_>) -> Poll<MasterSet> {
        let mut book = self.queue.book();
        match book.line(self.resources).and_then(|line| line.contender.as_mut()) {
            Some(contender) if contender.freed == known => {
                contender.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(contender) => Poll::Ready(contender.freed),
            // Only a contender asks.
            None => Poll::Pending,
        }
    }

    /// How the last claim failed, for who is behind.
    pub(crate) fn tell_last(&self, verdict: Verdict, tally: &Tally) {
        if let Some(line) = self.queue.book().line(self.resources) {
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
            && let Some(contender) = book.line(self.resources).and_then(|line| line.contender.as_mut())
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

/// By age, so that a run in virtual time is the same each time.
fn wake(mut woken: Vec<(u64, Waker)>) {
    woken.sort_unstable_by_key(|(ticket, _)| *ticket);
    woken.into_iter().for_each(|(_, waker)| waker.wake());
}
