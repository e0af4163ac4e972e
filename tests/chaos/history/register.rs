//! The register: a counter for each resource, read and then written by whoever holds the lock.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Finding, Kind};
use super::{Event, History, Nanos, Op};

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) findings: Vec<Finding>,
    pub(crate) increments: usize,
    pub(crate) turned_away: usize,
    pub(crate) lost_updates: usize,
}

/// An increment is lost when somebody writes one more than what he had read, and something else stands there by now.
pub(crate) fn audit(history: &History) -> Books {
    let mut books = Books::default();
    let mut written: BTreeMap<&str, u64> = BTreeMap::new();
    let mut greatest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut applied = BTreeSet::new();
    for record in &history.records {
        match &record.event {
            Event::Applied { resource, client, claim, op, found, value, fence } => {
                let seen = greatest.entry(resource).or_default();
                if fence < seen {
                    let text = format!(
                        "the register took {op:?} of {client} claim {claim} on {resource} with token {fence} after {seen}"
                    );
                    books.findings.push(Finding::bug(Kind::Token, record.at, text).with([client.as_str()]));
                }
                *seen = (*seen).max(*fence);
                if *op == Op::Write {
                    applied.insert((client.as_str(), *claim, *value));
                    *written.entry(resource).or_default() += 1;
                    books.increments += 1;
                    if found.checked_add(1) != Some(*value) {
                        books.lost_updates += 1;
                        books.findings.push(lost_update(
                            history,
                            record.at,
                            (resource, client, *claim),
                            (*found, *value),
                        ));
                    }
                }
            }
            Event::TurnedAway { .. } => books.turned_away += 1,
            _ => {}
        }
    }
    for record in &history.records {
        match &record.event {
            Event::Effect { claim, op: Op::Write, value, ack: true, .. }
                if !applied.contains(&(record.by.as_str(), *claim, *value)) =>
            {
                let text = format!(
                    "{} claim {claim} was told that {value} is written; the register knows nothing of it",
                    record.by
                );
                books
                    .findings
                    .push(Finding::bug(Kind::LostUpdate, record.at, text).with([record.by.as_str()]));
            }
            Event::Counter { resource, value } => {
                let increments = written.get(resource.as_str()).copied().unwrap_or_default();
                if *value != increments && books.lost_updates == 0 {
                    let text =
                        format!("the counter of {resource} ends at {value} after {increments} increments");
                    books.findings.push(Finding::bug(Kind::LostUpdate, record.at, text));
                }
            }
            _ => {}
        }
    }
    books
}

/// With fencing tokens there is no excuse. Without, a holder that stood still, or did not look, may write too late.
fn lost_update(history: &History, at: Nanos, who: (&str, &str, u64), what: (u64, u64)) -> Finding {
    let ((resource, client, claim), (found, value)) = (who, what);
    let text = format!("{client} claim {claim} wrote {value} over {found} in {resource}");
    let finding = if history.run.fenced {
        Finding::bug(Kind::LostUpdate, at, text)
    } else {
        Finding::expected(Kind::LostUpdate, at, text, "no fencing")
    };
    finding.with([client])
}
