//! What all scenarios share: the masters, the rows that are asked for, and what is counted over the whole run.

use super::super::arms::{Arm, ENTRIES, Entry};
use super::super::chance::Chance;
use super::super::pace::Pace;
use super::super::report::Skipped;
use super::super::site::Site;

pub(crate) struct Set {
    pub(crate) site: Site,
    pub(crate) pace: Pace,
    pub(crate) chance: Chance,
    /// The rows beside our own; all if none are named.
    pub(crate) against: Vec<String>,
    pub(crate) overlaps: u64,
    pub(crate) skipped: Vec<Skipped>,
}

impl Set {
    /// The rows of these that can be, in the order of the table. What cannot be is named once.
    pub(crate) fn entries(&mut self, names: &[&str]) -> Vec<&'static Entry> {
        let mut found = Vec::new();
        for entry in ENTRIES.iter().filter(|entry| names.contains(&entry.name)) {
            let wanted = entry.name == "quorlock"
                || self.against.is_empty()
                || self.against.iter().any(|name| name == entry.name);
            if !wanted {
                continue;
            }
            let have = self.site.masters.len();
            if entry.wants_replica() && self.site.replicated().is_none() {
                self.skip(entry.name, "it needs a replica of its own: only without --masters");
            } else if entry.masters > have {
                self.skip(entry.name, &format!("it needs {} masters, {have} are given", entry.masters));
            } else {
                found.push(entry);
            }
        }
        found
    }

    pub(crate) async fn connect(&self, entry: &Entry) -> Result<Arm, String> {
        match self.site.replicated() {
            Some(single) if entry.wants_replica() => entry.connect(&single, self.site.policy).await,
            _ => entry.connect(&self.site.masters, self.site.policy).await,
        }
    }

    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        if !self.skipped.iter().any(|known| known.what == what) {
            self.skipped.push(Skipped { what: what.into(), why: why.into() });
        }
    }
}
