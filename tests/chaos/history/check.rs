//! The verdict on a history.

use std::collections::BTreeMap;
use std::fmt;

use super::breach::{self, Fault};
use super::hold::{self, Hold};
use super::{Event, History, MILLI, Nanos, register};

/// How long after its deadline a holder may be told that the lock is lost, beside the time in which its process did
/// not run. A timer of tokio's is late by a millisecond or two; the rest is room for a machine with more work than
/// processors, and for what goes unnoticed as a stall.
pub(crate) const TOLD_WITHIN: Nanos = 500 * MILLI;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Overlap,
    LostUpdate,
    Token,
    LateLoss,
    Leftover,
    Unreadable,
    /// The run proves too little.
    Empty,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlap => "overlap",
            Self::LostUpdate => "lost update",
            Self::Token => "token",
            Self::LateLoss => "loss told late",
            Self::Leftover => "key outlived its ttl",
            Self::Unreadable => "unreadable",
            Self::Empty => "proves too little",
        })
    }
}

/// Something that should not be: a bug, unless a fault that breaks an assumption of the promise explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
    pub(crate) clients: Vec<String>,
    pub(crate) text: String,
    pub(crate) explained_by: Option<String>,
}

impl Finding {
    pub(super) fn bug(kind: Kind, at: Nanos, text: String) -> Self {
        Self { kind, from: at, until: at, clients: Vec::new(), text, explained_by: None }
    }

    pub(super) fn expected(kind: Kind, at: Nanos, text: String, by: &str) -> Self {
        Self { explained_by: Some(by.to_owned()), ..Self::bug(kind, at, text) }
    }

    pub(super) fn with<'a>(mut self, clients: impl IntoIterator<Item = &'a str>) -> Self {
        self.clients = clients.into_iter().map(str::to_owned).collect();
        self
    }

    pub(crate) fn is_bug(&self) -> bool {
        self.explained_by.is_none()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.explained_by {
            None => write!(f, "BUG {}: {}", self.kind, self.text),
            Some(by) => write!(f, "EXPECTED {} ({by}): {}", self.kind, self.text),
        }
    }
}

/// What a history says.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) findings: Vec<Finding>,
    pub(crate) holds: Vec<Hold>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) refused: usize,
    pub(crate) contended: usize,
    pub(crate) lost: usize,
    pub(crate) worst_told_late: Nanos,
    pub(crate) increments: usize,
    pub(crate) turned_away: usize,
    pub(crate) lost_updates: usize,
    /// By client. Told, and not judged.
    pub(crate) grants: BTreeMap<String, usize>,
}

impl Judgement {
    pub(crate) fn of(history: &History) -> Self {
        let (holds, refused) = hold::holds(history);
        let faults = breach::faults(history);
        let mut judgement = Self { holds, refused, faults, ..Self::default() };
        for hold in &judgement.holds {
            *judgement.grants.entry(hold.client.clone()).or_default() += 1;
        }
        let unreadable = |why: &String| Finding::bug(Kind::Unreadable, 0, why.clone());
        judgement.findings.extend(history.complaints.iter().map(unreadable));
        judgement.overlaps(history);
        if history.run.fenced {
            judgement.tokens();
        }
        judgement.losses(history);
        judgement.leftovers(history);
        let books = register::audit(history);
        judgement.findings.extend(books.findings);
        judgement.increments = books.increments;
        judgement.turned_away = books.turned_away;
        judgement.lost_updates = books.lost_updates;
        judgement.emptiness(history);
        judgement
    }

    pub(crate) fn bugs(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_bug())
    }

    pub(crate) fn count(&self, kind: Kind, bug: bool) -> usize {
        self.findings.iter().filter(|finding| finding.kind == kind && finding.is_bug() == bug).count()
    }

    /// Holds are in the order of their grants, so the first of each pair is the one that came first.
    fn overlaps(&mut self, history: &History) {
        for (index, second) in self.holds.iter().enumerate() {
            let same = self.holds[..index].iter().filter(|first| first.resource == second.resource);
            let mut contended = false;
            for first in same {
                contended |= first.client != second.client && second.asked < first.until();
                let until = first.until().min(second.until());
                if second.granted >= until {
                    continue;
                }
                let text = format!(
                    "{} was granted {} while {} held it, for {:.1} ms",
                    second.name(),
                    second.resource,
                    first.name(),
                    millis(until - second.granted),
                );
                let explained_by = breach::explanation(history, &self.faults, first, second);
                let clients = vec![first.client.clone(), second.client.clone()];
                let (kind, from) = (Kind::Overlap, second.granted);
                self.findings.push(Finding { kind, from, until, clients, text, explained_by });
            }
            self.contended += usize::from(contended);
        }
    }

    /// Unique; and greater than those of all holds of the resource that were over before.
    fn tokens(&mut self) {
        for (index, later) in self.holds.iter().enumerate() {
            let same = self.holds[..index].iter().filter(|hold| hold.resource == later.resource);
            let (fence, name, resource) = (later.fence, later.name(), &later.resource);
            // The processor may have been away between the win and its line: by then others may have come and gone.
            let over_on_arrival = later.until() <= later.granted;
            let wrong = if over_on_arrival && fence == 0 {
                None
            } else if fence == 0 {
                Some(format!("{name} was granted {resource} without a token"))
            } else {
                same.filter(|earlier| {
                    let ordered = !over_on_arrival
                        && earlier.granted < earlier.until()
                        && earlier.until() <= later.granted;
                    earlier.fence == fence || ordered && earlier.fence > fence
                })
                .map(|earlier| {
                    format!(
                        "{name} has token {fence} for {resource}, after {} had {}",
                        earlier.name(),
                        earlier.fence
                    )
                })
                .next()
            };
            if let Some(text) = wrong {
                self.findings
                    .push(Finding::bug(Kind::Token, later.granted, text).with([later.client.as_str()]));
            }
        }
    }

    /// Who holds past the deadline is told so in time, unless stopped or killed.
    fn losses(&mut self, history: &History) {
        let (ended, stalls) = (history.ended(), stalls(history));
        let mut late = Vec::new();
        for hold in &self.holds {
            let strikes = |word: &str| {
                let word = word.to_owned();
                self.faults.iter().filter(move |fault| fault.name() == word && fault.is_on(&hold.client))
            };
            let killed = strikes("kill-client").map(|kill| kill.from).filter(|at| *at >= hold.granted).min();
            let due = hold.deadline.max(hold.granted);
            let told = hold.lost.map(|loss| loss.told).or(hold.given_back).or(killed).unwrap_or(ended);
            self.lost += usize::from(hold.lost.is_some());
            if told <= due {
                continue;
            }
            let stalled = stalls.iter().filter(|(client, ..)| *client == hold.client);
            let stood = stalled.map(|(_, from, until)| (*from, *until));
            let stood = stood.chain(strikes("freeze-client").map(|freeze| (freeze.from, freeze.until)));
            let delay = (told - due).saturating_sub(covered(stood.collect(), due, told));
            if hold.lost.is_some() {
                self.worst_told_late = self.worst_told_late.max(delay);
            }
            if delay > TOLD_WITHIN {
                let word = if hold.lost.is_some() { "was told" } else { "was not told" };
                let text = format!("{} {word} {:.0} ms after its deadline", hold.name(), millis(delay));
                late.push(Finding::bug(Kind::LateLoss, due, text).with([hold.client.as_str()]));
            }
        }
        self.findings.extend(late);
    }

    /// A key may stay where the clock was set back.
    fn leftovers(&mut self, history: &History) {
        for record in &history.records {
            let Event::Left { master, key } = &record.event else { continue };
            let text = format!("{key} still stood on {master} when every ttl was over");
            let stepped =
                self.faults.iter().find(|fault| fault.name() == "clock-step" && fault.is_on(master));
            self.findings.push(match stepped {
                Some(fault) => Finding::expected(Kind::Leftover, record.at, text, &fault.word),
                None => Finding::bug(Kind::Leftover, record.at, text),
            });
        }
    }

    /// A run in which little happened proves little.
    fn emptiness(&mut self, history: &History) {
        let run = &history.run;
        let overlaps = self.count(Kind::Overlap, false);
        let counts = [
            ("locks granted", self.holds.len(), run.grants),
            ("of them contended", self.contended, run.contended),
            ("overlaps that broken assumptions explain", overlaps, run.overlaps),
        ];
        let mut empty: Vec<String> = counts
            .into_iter()
            .filter(|(_, have, want)| have < want)
            .map(|(what, have, want)| format!("{have} {what}, at least {want} wanted"))
            .collect();
        let missing =
            |word: &&String| self.faults.iter().all(|fault| fault.skipped || fault.name() != word.as_str());
        empty.extend(run.faults.iter().filter(missing).map(|word| format!("the fault {word} never struck")));
        if run.grants > 0 && !self.goes_on(history) {
            empty.push("nothing was granted in the last third of the time".into());
        }
        if !history.records.iter().any(|record| record.event == Event::Stopped) {
            empty.push("the run did not come to its end".into());
        }
        self.findings.extend(empty.into_iter().map(|text| Finding::bug(Kind::Empty, 0, text)));
    }

    /// Whether there still were grants towards the end of the time in which locks were asked for.
    fn goes_on(&self, history: &History) -> bool {
        let asked = history.records.iter().filter(|record| matches!(record.event, Event::Start { .. }));
        let asked: Vec<Nanos> = asked.map(|record| record.at).collect();
        let (Some(first), Some(last)) = (asked.first(), asked.last()) else { return false };
        self.holds.iter().any(|hold| hold.granted >= last - (last - first) / 3)
    }
}

pub(crate) fn millis(nanos: Nanos) -> f64 {
    nanos as f64 / MILLI as f64
}

/// How much of a stretch these intervals cover.
fn covered(mut intervals: Vec<(Nanos, Nanos)>, from: Nanos, until: Nanos) -> Nanos {
    intervals.sort_unstable();
    let (mut reached, mut covered) = (from, 0);
    for (begin, end) in intervals {
        let (begin, end) = (begin.max(reached), end.min(until));
        covered += end.saturating_sub(begin);
        reached = reached.max(end);
    }
    covered
}

/// When clients stood still, by their own words.
pub(crate) fn stalls(history: &History) -> Vec<(String, Nanos, Nanos)> {
    let stall = |record: &super::Record| match record.event {
        Event::Stalled { since } => Some((record.by.clone(), since, record.at)),
        _ => None,
    };
    history.records.iter().filter_map(stall).collect()
}
