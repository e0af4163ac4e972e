//! What happened, added up: who was inside when, what was written, what was refused.

use super::event::{Event, Nanos};

/// One contender's time with the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stay {
    contender: usize,
    from: Nanos,
    /// The last deadline that it had.
    valid_until: Nanos,
    /// When it left, was killed, or refused to write.
    ended: Option<Nanos>,
}

impl Stay {
    /// A contender holds the lock until its deadline, however long it stays.
    fn until(&self) -> Nanos {
        self.ended.map_or(self.valid_until, |ended| ended.min(self.valid_until))
    }
}

/// The books.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    stays: Vec<Stay>,
    inside: Vec<Option<usize>>,
    ready: usize,
    finished: Vec<usize>,
    /// Each value, and by whom.
    written: Vec<(u64, usize)>,
    /// By whom.
    refused: Vec<usize>,
    missed: u64,
    pondering: Option<usize>,
    problems: Vec<String>,
}

impl Ledger {
    pub(crate) fn of(contenders: usize) -> Self {
        Self { inside: vec![None; contenders], ..Self::default() }
    }

    pub(crate) fn enter(&mut self, contender: usize, event: Event) {
        match event {
            Event::Ready => self.ready += 1,
            Event::Finished => self.finished.push(contender),
            Event::Entered { at, valid_until } => {
                self.inside[contender] = Some(self.stays.len());
                self.stays.push(Stay { contender, from: at, valid_until, ended: None });
            }
            Event::Renewed { valid_until } => {
                if let Some(stay) = self.stay(contender) {
                    stay.valid_until = stay.valid_until.max(valid_until);
                }
            }
            Event::Pondering { .. } => self.pondering = Some(contender),
            Event::Wrote { at, value } => {
                self.written.push((value, contender));
                if self.stay(contender).is_none_or(|stay| at > stay.valid_until) {
                    self.problem(format!("contender {} wrote after its deadline", contender + 1));
                }
            }
            Event::Refused { at } => {
                self.refused.push(contender);
                self.end(contender, at);
            }
            Event::Left { at } => {
                self.end(contender, at);
                self.inside[contender] = None;
            }
            Event::Missed { .. } => self.missed += 1,
            Event::Unreadable { text } => {
                self.problem(format!("contender {} read {text:?} in the file", contender + 1));
            }
        }
    }

    /// A contender was killed at that moment.
    pub(crate) fn killed(&mut self, contender: usize, at: Nanos) {
        self.end(contender, at);
        self.inside[contender] = None;
    }

    pub(crate) fn problem(&mut self, what: String) {
        self.problems.push(what);
    }

    fn stay(&mut self, contender: usize) -> Option<&mut Stay> {
        self.inside[contender].and_then(|index| self.stays.get_mut(index))
    }

    fn end(&mut self, contender: usize, at: Nanos) {
        if let Some(stay) = self.stay(contender) {
            stay.ended = Some(stay.ended.map_or(at, |ended| ended.min(at)));
        }
    }

    /// Who holds the lock at that moment.
    pub(crate) fn holder(&self, at: Nanos) -> Option<usize> {
        let current = self.inside.iter().flatten().filter_map(|index| self.stays.get(*index));
        current.filter(|stay| at < stay.until()).max_by_key(|stay| stay.from).map(|stay| stay.contender)
    }

    /// The contender that follows the order to think on.
    pub(crate) fn pondering(&mut self) -> Option<usize> {
        self.pondering.take()
    }

    /// When the first contender entered after that moment.
    pub(crate) fn entered_after(&self, at: Nanos) -> Option<Nanos> {
        self.stays.iter().map(|stay| stay.from).filter(|from| *from > at).min()
    }

    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    pub(crate) fn finished(&self) -> usize {
        self.finished.len()
    }

    pub(crate) fn is_finished(&self, contender: usize) -> bool {
        self.finished.contains(&contender)
    }

    pub(crate) fn wrote(&self) -> usize {
        self.written.len()
    }

    /// Values that were written more than once: all but one of those increments were lost. The contenders' lines come
    /// by pipes of their own, so that only the whole can be judged.
    pub(crate) fn lost_updates(&self) -> Vec<String> {
        let mut written = self.written.clone();
        written.sort_unstable();
        let twice = written.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        twice
            .map(|pair| {
                let (value, first, second) = (pair[0].0, pair[0].1 + 1, pair[1].1 + 1);
                format!("contenders {first} and {second} both wrote {value}: an increment was lost")
            })
            .collect()
    }

    pub(crate) fn refused(&self) -> usize {
        self.refused.len()
    }

    pub(crate) fn refused_by(&self, contender: usize) -> usize {
        self.refused.iter().filter(|by| **by == contender).count()
    }

    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(crate) fn acquisitions(&self) -> Vec<usize> {
        let count = |contender| self.stays.iter().filter(|stay| stay.contender == contender).count();
        (0..self.inside.len()).map(count).collect()
    }

    /// How many stays began before an earlier one was over.
    pub(crate) fn overlaps(&self) -> usize {
        let mut stays: Vec<(Nanos, Nanos)> =
            self.stays.iter().map(|stay| (stay.from, stay.until())).collect();
        stays.sort_unstable();
        let (mut latest, mut overlaps) = (0, 0);
        for (from, until) in stays {
            overlaps += usize::from(from < latest);
            latest = latest.max(until);
        }
        overlaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(ledger: &mut Ledger, contender: usize, from: Nanos, left: Nanos, valid_until: Nanos) {
        ledger.enter(contender, Event::Entered { at: from, valid_until });
        ledger.enter(contender, Event::Left { at: left });
    }

    #[test]
    fn stays_that_meet_in_time_overlap_unless_the_deadline_was_over() {
        let mut ledger = Ledger::of(3);
        stay(&mut ledger, 0, 10, 20, 100);
        stay(&mut ledger, 1, 20, 90, 50);
        stay(&mut ledger, 2, 50, 60, 150);
        assert_eq!(ledger.overlaps(), 0);
        stay(&mut ledger, 0, 59, 62, 150);
        assert_eq!(ledger.overlaps(), 1);
        assert_eq!(ledger.acquisitions(), [2, 1, 1]);
    }

    #[test]
    fn a_long_stay_overlaps_all_within_it() {
        let mut ledger = Ledger::of(2);
        stay(&mut ledger, 0, 10, 90, 100);
        stay(&mut ledger, 1, 20, 30, 100);
        stay(&mut ledger, 1, 40, 50, 100);
        assert_eq!(ledger.overlaps(), 2);
    }

    #[test]
    fn a_frozen_holder_is_none_after_its_deadline_and_a_killed_one_at_once() {
        let mut ledger = Ledger::of(2);
        ledger.enter(0, Event::Entered { at: 10, valid_until: 50 });
        ledger.enter(0, Event::Renewed { valid_until: 80 });
        assert_eq!((ledger.holder(79), ledger.holder(80)), (Some(0), None));
        ledger.enter(1, Event::Entered { at: 85, valid_until: 150 });
        ledger.enter(0, Event::Refused { at: 120 });
        ledger.killed(1, 130);
        assert_eq!((ledger.holder(131), ledger.overlaps(), ledger.refused()), (None, 0, 1));
        assert_eq!((ledger.entered_after(10), ledger.entered_after(85)), (Some(85), None));
    }

    #[test]
    fn a_lost_update_shows_and_so_does_a_late_write() {
        let mut ledger = Ledger::of(2);
        for contender in 0..2 {
            ledger.enter(contender, Event::Entered { at: 10, valid_until: 50 });
        }
        ledger.enter(0, Event::Wrote { at: 20, value: 1 });
        assert!(ledger.lost_updates().is_empty());
        ledger.enter(1, Event::Wrote { at: 21, value: 1 });
        assert_eq!((ledger.wrote(), ledger.lost_updates().len(), ledger.overlaps()), (2, 1, 1));
        assert!(ledger.problems().is_empty());
        ledger.enter(1, Event::Wrote { at: 51, value: 2 });
        assert!(ledger.problems()[0].contains("after its deadline"));
    }
}
