//! One master with its process, its data and its clock: what restarts, and what it remembers then.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use quorlock::protocol::fencing::Counters;
use quorlock::protocol::time::Moment;
use quorlock::transport::memory::Master;

use crate::time::Rate;

/// What a restart finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Everything,
    Nothing,
    OldSnapshot,
}

/// What a snapshot has: the keys, and those of admission beside them.
#[derive(Clone, Debug, Default)]
struct Data {
    keys: Master,
    /// Which process was admitted, and which began a quarantine: until when, as the master's clock shows it.
    run: Option<u32>,
    quarantined: Option<(u32, Moment)>,
}

/// What JOIN says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Admitted,
    Wait(Duration),
}

/// Without the number of a lock that is fenced.
fn holder_of(value: &Bytes) -> Bytes {
    value.slice(..value.iter().position(|byte| *byte == b'|').unwrap_or(value.len()))
}

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) process: u32,
    pub(crate) up: bool,
    /// Stopped; what arrives waits.
    pub(crate) frozen: bool,
    pub(crate) waiting: Vec<u64>,
    /// Whether it has its fencing counters.
    pub(crate) counts: bool,
    /// Of which key it tells whom, once: the client, and its connection.
    pub(crate) watched: BTreeSet<(Bytes, usize, u32)>,
    clock: Rate,
    data: Data,
    snapshot: Data,
}

impl Site {
    /// A master that `quorlock init` admitted.
    pub(crate) fn new(clock: Rate) -> Self {
        let data = Data { run: Some(1), ..Data::default() };
        Self {
            process: 1,
            up: true,
            frozen: false,
            waiting: Vec::new(),
            counts: true,
            watched: BTreeSet::new(),
            clock,
            snapshot: data.clone(),
            data,
        }
    }

    pub(crate) fn now(&self, real: u64) -> Moment {
        self.clock.at(real)
    }

    pub(crate) fn keys(&mut self) -> &mut Master {
        &mut self.data.keys
    }

    /// What stands on `resource`, and until when in real time.
    pub(crate) fn look(&mut self, resource: &[u8], real: u64) -> Option<(Bytes, u64)> {
        use quorlock::protocol::votes::Remaining;
        let now = self.now(real);
        let value = self.data.keys.value(resource, now)?;
        let Some(Remaining::For(left)) = self.data.keys.remaining(resource, now) else { return None };
        Some((holder_of(&value), self.clock.real_of(now.plus(left))))
    }

    pub(crate) fn save(&mut self) {
        self.snapshot = self.data.clone();
    }

    /// The wall clock is set forward.
    pub(crate) fn step(&mut self, by: u64) {
        self.clock.offset += by;
    }

    pub(crate) fn crash(&mut self, kept: Kept) {
        self.up = false;
        self.frozen = false;
        self.watched.clear();
        self.process += 1;
        match kept {
            Kept::Everything => {}
            Kept::Nothing => self.data = Data::default(),
            Kept::OldSnapshot => self.data = self.snapshot.clone(),
        }
        // Another process: what counters it has may be old.
        self.counts = false;
        self.data.keys.lose_counters();
    }

    /// It has the counters of others, and takes part in fencing again.
    pub(crate) fn recover(&mut self, counters: &Counters) {
        self.counts = true;
        self.data.keys.recover(counters);
    }

    /// Somebody deletes all locks by hand: these.
    pub(crate) fn delete_all(&mut self, real: u64) -> Vec<Bytes> {
        let now = self.now(real);
        let keys = self.data.keys.keys(now);
        keys.iter().for_each(|key| self.data.keys.delete(key));
        keys
    }

    /// Who is to be told of a change of the key.
    pub(crate) fn forget_watchers(&mut self, key: &Bytes) -> Vec<(usize, u32)> {
        let told = self.watched.iter().filter(|(watched, ..)| watched == key);
        let told = told.map(|(_, client, link)| (*client, *link)).collect();
        self.watched.retain(|(watched, ..)| watched != key);
        told
    }

    /// How many of these keys are the holder's.
    pub(crate) fn count(&mut self, keys: &[Bytes], holder: &Bytes, real: u64) -> usize {
        let now = self.now(real);
        let values = keys.iter().filter_map(|key| self.data.keys.value(key, now));
        values.filter(|value| holder_of(value) == *holder).count()
    }

    /// What `join.lua` does.
    pub(crate) fn join(&mut self, quarantine: Duration, real: u64) -> Joined {
        let now = self.now(real);
        if self.data.run == Some(self.process) {
            return Joined::Admitted;
        }
        match self.data.quarantined {
            Some((process, until)) if process == self.process && now < until => {
                Joined::Wait(Duration::from_millis(until.since(now).as_millis().max(1) as u64))
            }
            Some((process, _)) if process == self.process => {
                self.data.run = Some(self.process);
                Joined::Admitted
            }
            _ => {
                self.data.quarantined = Some((self.process, now.plus(quarantine)));
                Joined::Wait(quarantine)
            }
        }
    }
}
