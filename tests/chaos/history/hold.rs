//! Who held what when, put together from the lines.

use std::collections::BTreeMap;

use super::{Event, History, Nanos};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) client: String,
    pub(crate) claim: u64,
    pub(crate) resource: String,
    pub(crate) asked: Nanos,
    pub(crate) granted: Nanos,
    pub(crate) votes: usize,
    pub(crate) fence: u64,
    /// The last one told.
    pub(crate) deadline: Nanos,
    pub(crate) given_back: Option<Nanos>,
    pub(crate) lost: Option<Loss>,
    pub(crate) at_risk: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) told: Nanos,
    pub(crate) seen_valid: Nanos,
}

impl Hold {
    /// When it was over: by its deadline, or because it was given back, or lost before.
    pub(crate) fn until(&self) -> Nanos {
        let lost = self.lost.filter(|loss| loss.told < self.deadline).map(|loss| loss.seen_valid);
        let ends = [Some(self.deadline), self.given_back, lost];
        ends.into_iter().flatten().min().unwrap_or(self.granted).max(self.granted)
    }

    pub(crate) fn name(&self) -> String {
        format!("{} claim {}", self.client, self.claim)
    }
}

/// In the order in which they were granted; and how many claims were refused.
pub(crate) fn holds(history: &History) -> (Vec<Hold>, usize) {
    let mut asked: BTreeMap<(&str, u64), (Nanos, &str)> = BTreeMap::new();
    let mut holds: Vec<Hold> = Vec::new();
    let mut known: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    let mut refused = 0;
    for record in &history.records {
        let (at, by) = (record.at, record.by.as_str());
        let mut on = |claim: u64, change: &dyn Fn(&mut Hold)| {
            if let Some(hold) = known.get(&(by, claim)).and_then(|index| holds.get_mut(*index)) {
                change(hold);
            }
        };
        match &record.event {
            Event::Start { claim, resource } => {
                asked.insert((by, *claim), (at, resource));
            }
            Event::Refused { .. } => refused += 1,
            Event::Renewed { claim, deadline } | Event::Lowered { claim, deadline } => {
                on(*claim, &|hold| hold.deadline = *deadline);
            }
            Event::AtRisk { claim } => on(*claim, &|hold| hold.at_risk = Some(at)),
            Event::Lost { claim, seen, .. } => {
                on(*claim, &|hold| hold.lost = Some(Loss { told: at, seen_valid: *seen }));
            }
            Event::ReleaseCalled { claim } | Event::Drop { claim } => {
                on(*claim, &|hold| hold.given_back = hold.given_back.or(Some(at)));
            }
            Event::Granted { claim, deadline, votes, fence, .. } => {
                let (asked, resource) = asked.get(&(by, *claim)).copied().unwrap_or((at, "?"));
                known.insert((by, *claim), holds.len());
                holds.push(Hold {
                    client: by.to_owned(),
                    claim: *claim,
                    resource: resource.to_owned(),
                    asked,
                    granted: at,
                    votes: *votes,
                    fence: *fence,
                    deadline: *deadline,
                    given_back: None,
                    lost: None,
                    at_risk: None,
                });
            }
            _ => {}
        }
    }
    (holds, refused)
}
