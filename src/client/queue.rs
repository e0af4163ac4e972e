//! Who of this client waits for what: a fair line per resource, with one contender at its head.
//!
//! Only the contender of a line claims on the masters; the others wait their turn, by age, and cost nothing. While a
//! lock of this client stands in the way the contender waits too: it is told when the release is on its way, and its
//! claim then follows the release on every connection.
//!
//! Clients stand in a [line](super::standing) as well, in which the contender has the client's place. But within one
//! client the lock could go round for as long as anybody in it waits, and other clients would never see it
//! free. From time to time the contender therefore lets a moment pass after a release, in which others can claim.
//!
//! A list of several resources has a line of its own and is in no other. Whoever waits for one of its resources alone
//! is not held up by it, so a task that holds a part of the list and wants more cannot be kept from it by a waiter who
//! in turn waits for that task: nobody waits behind one who cannot go on, and no order of lists can deadlock. The price
//! is that the contenders of two lines with a resource in common meet on the masters, where chance decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::lately::{Crowds, Lately};
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
pub(super) struct Book {
    pub(super) places: HashMap<Bytes, Place>,
    lists: HashMap<Resources, Line>,
    pub(super) lately: Lately,
    pub(super) crowds: Crowds,
    pub(super) tickets: u64,
}

/// What there is about one resource.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Locks of this client on it whose release is not on its way yet.
    held: u32,
    /// Since when no other client can have had it, as far as this one knows.
    pub(super) kept_since: Option<Instant>,
    /// How long the claim for the last lock on it took, about a round trip.
    pub(super) round_trip: Duration,
    /// For it alone.
    line: Line,
    /// The lists it is part of for which somebody waits.
    lists: Vec<Resources>,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) contender: Option<Contender>,
    /// By ticket, so by age. There is a contender while anybody waits.
    pub(super) behind: BTreeMap<u64, Option<Waker>>,
    /// How the last claim of this line failed, for those who never came to claim.
    pub(super) last: Option<(Verdict, Tally)>,
}

#[derive(Debug)]
pub(super) struct Contender {
    pub(super) ticket: u64,
    /// Masters that have become free, or may have, since the contender last claimed.
    pub(super) freed: MasterSet,
    pub(super) bell: Bell,
    pub(super) waker: Option<Waker>,
}

/// Whether the master that keeps the line has called this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bell {
    Silent,
    Rung,
    /// A connection ended by which it may have been.
    Missed,
}

impl Contender {
    pub(super) const fn new(ticket: u64) -> Self {
        Self { ticket, freed: MasterSet::EMPTY, bell: Bell::Silent, waker: None }
    }
}

impl Queue {
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lock of this client stands on `resources`, after a claim that took so long.
    pub(crate) fn hold(&self, resources: &Resources, took: Duration) {
        let mut book = self.book();
        for key in resources.keys() {
            let place = book.places.entry(key.clone()).or_default();
            place.held += 1;
            place.kept_since.get_or_insert_with(Instant::now);
            place.round_trip = took;
        }
    }

    /// That lock is over, and its release, if there is one, handed over to `everyone`. Whether a contender heard it.
    pub(crate) fn let_go(&self, resources: &Resources, everyone: MasterSet) -> bool {
        let mut woken = Vec::new();
        let mut guard = self.book();
        let book = &mut *guard;
        for key in resources.keys() {
            let Some(place) = book.places.get_mut(key) else { continue };
            place.held = place.held.saturating_sub(1);
            if place.held == 0 {
                if let Some(since) = place.kept_since
                    && place.line.is_empty()
                {
                    book.lately.left(key, since, place.round_trip);
                }
                book.told(key, everyone, &mut woken);
                book.tidy(key);
            }
        }
        drop(guard);
        let is_heard = !woken.is_empty();
        wake(woken);
        is_heard
    }

    /// The bell for `resource` rang: this client is the first that waits for it, on some master.
    pub(crate) fn on_bell(&self, resource: &[u8]) {
        let mut book = self.book();
        let contender = book.places.get_mut(resource).and_then(|place| place.line.contender.as_mut());
        let waker = contender.and_then(|contender| {
            contender.bell = Bell::Rung;
            contender.waker.take()
        });
        drop(book);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// This client had to stand in line for `resource`, and then made the claim that took so long.
    pub(crate) fn stood(&self, resource: &Bytes, took: Duration) {
        self.book().crowds.note(resource, took);
    }

    /// Whether others may well stand in line for `resource`, while this client does not keep it: how long a claim of
    /// it took then.
    pub(crate) fn crowd(&self, resource: &[u8]) -> Option<Duration> {
        let book = self.book();
        let is_kept = book.places.get(resource).is_some_and(|place| place.kept_since.is_some());
        book.crowds.at(resource).filter(|_| !is_kept)
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
                woken.extend(lines.filter_map(|line| {
                    if let Some(contender) = &mut line.contender
                        && contender.bell == Bell::Silent
                    {
                        contender.bell = Bell::Missed;
                    }
                    line.told(masters)
                }));
            }
        }
        drop(book);
        wake(woken);
    }
}

impl Book {
    pub(super) fn line(&mut self, resources: &Resources) -> Option<&mut Line> {
        match resources.single() {
            Some(key) => self.places.get_mut(key).map(|place| &mut place.line),
            None => self.lists.get_mut(resources),
        }
    }

    pub(super) fn contender(&mut self, resources: &Resources) -> Option<&mut Contender> {
        self.line(resources)?.contender.as_mut()
    }

    pub(super) fn line_made(&mut self, resources: &Resources) -> &mut Line {
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

    pub(super) fn is_held(&self, resources: &Resources) -> bool {
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

    pub(super) fn tidy_line(&mut self, resources: &Resources) {
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
    pub(super) fn leave(&mut self, ticket: u64) -> Option<Waker> {
        if self.contender.as_ref().is_none_or(|contender| contender.ticket != ticket) {
            self.behind.remove(&ticket);
            return None;
        }
        let next = self.behind.pop_first();
        self.contender = next.as_ref().map(|(ticket, _)| Contender::new(*ticket));
        next.and_then(|(_, waker)| waker)
    }
}

/// By age, so that a run in virtual time is the same each time.
fn wake(mut woken: Vec<(u64, Waker)>) {
    woken.sort_unstable_by_key(|(ticket, _)| *ticket);
    woken.into_iter().for_each(|(_, waker)| waker.wake());
}
