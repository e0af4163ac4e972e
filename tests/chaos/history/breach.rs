//! Faults as intervals, and which of them break what the promise rests on.

use std::collections::BTreeSet;

use super::hold::Hold;
use super::{Event, History, Nanos};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) id: u64,
    pub(crate) word: String,
    pub(crate) on: Vec<String>,
    pub(crate) from: Nanos,
    /// The end of the history, if nothing tells.
    pub(crate) until: Nanos,
    /// Perhaps it struck some of them.
    pub(crate) skipped: bool,
}

impl Fault {
    pub(crate) fn name(&self) -> &str {
        self.word.split_once('=').map_or(self.word.as_str(), |(name, _)| name)
    }

    pub(crate) fn is_on(&self, whom: &str) -> bool {
        self.on.iter().any(|on| on == whom)
    }

    /// Whether it can make masters forget a live key of `resource`, which lies outside the promise.
    fn breaks(&self, resource: &str) -> bool {
        match self.word.split_once('=') {
            Some(("del", key)) => key == resource,
            // Back does no harm: keys stay longer.
            Some(("clock-step", ahead)) => !ahead.starts_with('-'),
            _ => matches!(self.name(), "flush" | "evict"),
        }
    }
}

/// All, in order.
pub(crate) fn faults(history: &History) -> Vec<Fault> {
    let ended = history.ended();
    let mut faults: Vec<Fault> = Vec::new();
    for record in &history.records {
        match &record.event {
            Event::Fault { id, word, on } => {
                let (id, word, on) = (*id, word.clone(), on.clone());
                faults.push(Fault { id, word, on, from: record.at, until: ended, skipped: false });
            }
            Event::Healed { id } | Event::Skipped { id, .. } => {
                for fault in faults.iter_mut().filter(|fault| fault.id == *id) {
                    fault.until = record.at;
                    fault.skipped = record.event != Event::Healed { id: *id };
                }
            }
            _ => {}
        }
    }
    faults
}

/// The faults that explain how `second` could be granted while `first` held, if they do.
///
/// While the first one held, w masters had confirmed its key within the last ttl; of these, as many as any two quorums
/// share gave the second one their vote. So each of them forgot the key within the ttl before that vote, and faults that
/// struck at that time must have struck as many masters at least. A fault is told right before it is put in place.
pub(crate) fn explanation(
    history: &History,
    faults: &[Fault],
    first: &Hold,
    second: &Hold,
) -> Option<String> {
    // As many as a list may name; a file may say anything.
    let masters = history.run.masters.min(64);
    let shared = 2 * (masters / 2 + 1) - masters;
    let since = first.asked.max(second.granted.saturating_sub(history.run.ttl));
    let struck_then = |fault: &&Fault| fault.from <= second.granted && since <= fault.until;
    let culprits: Vec<&Fault> =
        faults.iter().filter(|fault| fault.breaks(&first.resource)).filter(struck_then).collect();
    let struck: BTreeSet<&str> = culprits.iter().flat_map(|fault| &fault.on).map(String::as_str).collect();
    let words: BTreeSet<&str> = culprits.iter().map(|fault| fault.word.as_str()).collect();
    (struck.len() >= shared).then(|| words.into_iter().collect::<Vec<_>>().join(", "))
}
