//! The latest look, and what happened since the one before.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

#[cfg(any(feature = "top", test))]
use super::look::Lock;
use super::look::{Look, State};
use crate::duration::show;
use crate::list::Left;

/// How many events are kept.
const KEPT: usize = 200;

pub(super) struct Board {
    began: Instant,
    pub(super) look: Option<Look>,
    pub(super) events: VecDeque<Event>,
    /// Who holds what, as far as is known.
    holders: BTreeMap<String, Holder>,
}

struct Holder {
    id: String,
    /// When it is over unless it is renewed; never, without a ttl.
    until: Option<Instant>,
    /// The most that was ever left to it, which is about its ttl.
    longest: Duration,
    /// Its key was on too few masters. A look may come while it is being deleted, so one is not enough to say.
    doubted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Since the beginning.
    pub(super) at: Duration,
    pub(super) what: &'static str,
    pub(super) of: String,
    pub(super) detail: String,
}

impl Board {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), look: None, events: VecDeque::new(), holders: BTreeMap::new() }
    }

    /// Takes a new look, and returns what happened.
    pub(super) fn take(&mut self, look: Look) -> Vec<Event> {
        let at = look.at.saturating_duration_since(self.began);
        let mut events = Vec::new();
        if let Some(before) = &self.look {
            masters(at, before, &look, &mut events);
        }
        self.locks(at, &look, &mut events);
        self.events.extend(events.iter().cloned());
        while self.events.len() > KEPT {
            self.events.pop_front();
        }
        self.look = Some(look);
        events
    }

    pub(super) const fn began(&self) -> Instant {
        self.began
    }

    /// What is left of a lock by now, and of how much.
    #[cfg(feature = "top")]
    pub(super) fn left_of(&self, resource: &str, lock: &Lock, now: Instant) -> Option<(Duration, Duration)> {
        let Left::For(left) = lock.left else { return None };
        let since = now.saturating_duration_since(self.look.as_ref()?.at);
        let longest = self.holders.get(resource).filter(|holder| holder.id == lock.holder);
        Some((left.saturating_sub(since), longest.map_or(left, |holder| holder.longest)))
    }

    fn locks(&mut self, at: Duration, look: &Look, events: &mut Vec<Event>) {
        let mut event =
            |what, of: &str, detail: String| events.push(Event { at, what, of: of.to_owned(), detail });
        self.holders.retain(|resource, old| {
            let what = match look.locks.get(resource) {
                Some(new) if new.is_held() && new.holder == old.id => return true,
                // Too little was seen to say.
                None if !look.is_whole => return true,
                Some(new) if !new.is_held() && !look.is_whole => return true,
                Some(new) if new.holder == old.id && !old.doubted => {
                    old.doubted = true;
                    return true;
                }
                Some(new) if new.holder == old.id => "lost",
                // Gone before its time was over, it was given back.
                _ if old.until.is_some_and(|until| until <= look.at) => "expired",
                _ => "released",
            };
            event(what, resource, old.id.clone());
            false
        });
        // What was not looked at before may be old.
        let is_news = self.look.as_ref().is_some_and(|before| before.is_whole);
        for (resource, new) in look.locks.iter().filter(|(_, lock)| lock.is_held()) {
            let left = if let Left::For(left) = new.left { Some(left) } else { None };
            let holder = self.holders.entry(resource.clone()).or_insert_with(|| {
                if is_news {
                    event("taken", resource, new.holder.clone());
                }
                Holder { id: new.holder.clone(), until: None, longest: Duration::ZERO, doubted: false }
            });
            holder.until = left.map(|left| look.at + left);
            holder.longest = holder.longest.max(left.unwrap_or_default());
            holder.doubted = false;
        }
    }
}

impl Event {
    pub(super) fn text(&self) -> String {
        format!("{:7.1} s  {:<11} {}  {}", self.at.as_secs_f64(), self.what, self.of, self.detail)
            .trim_end()
            .to_owned()
    }

    pub(super) fn json(&self) -> Value {
        json!({ "event": self.what, "of": self.of, "detail": self.detail })
    }
}

fn masters(at: Duration, before: &Look, look: &Look, events: &mut Vec<Event>) {
    for (nth, (old, new)) in before.masters.iter().zip(&look.masters).enumerate() {
        if old.state.word() == new.state.word() {
            continue;
        }
        let (what, detail) = match &new.state {
            State::Down(why) => ("down", why.clone()),
            State::Up => ("up", "it votes".to_owned()),
            State::Quarantined(left) => ("quarantine", format!("no vote for {}", show(*left))),
            State::NotAdmitted => ("up", "it abstains: it started anew".to_owned()),
        };
        events.push(Event { at, what, of: format!("m{} {}", nth + 1, new.address), detail });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::look::Master;

    /// Locks by name: outcome, holder, seconds left.
    fn look(after: u64, locks: &[(&str, &'static str, &str, u64)], is_whole: bool) -> Look {
        let lock = |(_, outcome, holder, left): &(&str, &'static str, &str, u64)| Lock {
            outcome,
            holder: (*holder).to_owned(),
            votes: 5,
            left: Left::For(Duration::from_secs(*left)),
            json: Value::Null,
        };
        let state = if is_whole { State::Up } else { State::Down("gone".to_owned()) };
        Look {
            at: start() + Duration::from_secs(after),
            needed: 1,
            masters: vec![Master { address: "a:1".to_owned(), state, round_trip: Duration::ZERO }],
            locks: locks.iter().map(|of| (of.0.to_owned(), lock(of))).collect(),
            is_whole,
            is_complete: true,
        }
    }

    fn start() -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now)
    }

    fn told(looks: Vec<Look>) -> Vec<String> {
        let mut board = Board::new();
        let events = looks.into_iter().flat_map(|look| board.take(look)).collect::<Vec<_>>();
        events.into_iter().map(|event| format!("{} {} {}", event.what, event.of, event.detail)).collect()
    }

    #[test]
    fn taken_renewed_released_and_expired_are_told_apart() {
        let looks = vec![
            look(0, &[("old", "held", "x", 30)], true),
            look(1, &[("old", "held", "x", 29), ("a", "held", "y", 3)], true),
            // Renewed: what was left a while ago is no measure any more.
            look(3, &[("a", "held", "y", 3)], true),
            look(5, &[("a", "held", "y", 1)], true),
            look(7, &[("a", "held", "z", 3)], true),
        ];
        assert_eq!(told(looks), ["taken a y", "released old x", "expired a y", "taken a z"]);
    }

    #[test]
    fn a_lock_is_lost_only_when_it_is_on_too_few_masters_twice() {
        let held = |after| look(after, &[("a", "held", "x", 30)], true);
        let few = |after| look(after, &[("a", "leftovers", "x", 30)], true);
        assert_eq!(told(vec![held(0), few(1), look(2, &[], true)]), ["released a x"]);
        assert_eq!(told(vec![held(0), few(1), held(2), few(3)]), [""; 0]);
        assert_eq!(told(vec![held(0), few(1), few(2), look(3, &[], true)]), ["lost a x"]);
    }

    #[test]
    fn what_cannot_be_seen_is_not_called_released_nor_taken_afterwards() {
        let held = |after, whole| look(after, &[("a", "held", "x", 30)], whole);
        let events = told(vec![held(0, true), look(1, &[], false), held(2, true)]);
        assert_eq!(events, ["down m1 a:1 gone", "up m1 a:1 it votes"]);
        let events = told(vec![look(0, &[], false), held(1, true)]);
        assert_eq!(events, ["up m1 a:1 it votes"]);
    }
}
