//! D07 to D09 and the pitfalls that show at the keys: P1, P3, and with --expect P2.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use quorlock::protocol::votes::Remaining;
use quorlock::{
    Finding as Found, Inspection, KeyState, Listing, MasterFacts, Policy, Survey, SurveyedMaster,
};

use super::finding::{Finding, Verdict};
use super::masters::name;
use super::paste::{cli, release, word};
use crate::args::Doctor;
use crate::duration::show;
use crate::form::Form;
use crate::inspect::{sentence, whole};

/// How many keys are named; the rest is counted.
const NAMED: usize = 5;

/// A resource, with what stands there.
pub(crate) struct Look {
    pub(crate) resource: Vec<u8>,
    pub(crate) shown: String,
    pub(crate) inspection: Inspection,
    pub(crate) found: Found,
}

/// The resources that were named.
pub(crate) fn looks(args: &Doctor, survey: &Survey, policy: &Policy) -> Vec<Look> {
    let look = |(nth, resource): (usize, &std::ffi::OsString)| {
        let inspection = survey.inspection(nth);
        let found = inspection.finding(policy);
        let resource = resource.as_bytes().to_vec();
        Look { shown: whole(&resource), resource, inspection, found }
    };
    args.resources.iter().enumerate().map(look).collect()
}

pub(crate) const NO_RESOURCE: &str = "quorlock doctor RESOURCE…   # name the locks to look at";

pub(crate) fn without_ttl(survey: &Survey, listing: &Listing) -> Finding {
    let mut finding = Finding::of("D07", "every string key on the masters has a ttl");
    let forever: Vec<_> = listing
        .resources
        .iter()
        .filter_map(|(resource, inspection)| Some((resource, forever(inspection)?)))
        .collect();
    for (resource, (first, on, by)) in forever.iter().take(NAMED) {
        let what = format!("no ttl on {on}, its value is {:?}", whole(by));
        finding.note(Verdict::Warning, &whole(resource), what);
        finding.fix(release(survey.masters.get(*first), resource, by) + "   # if its holder is gone");
    }
    if forever.len() > NAMED {
        finding.note(Verdict::Warning, "keys", format!("{} more without a ttl", forever.len() - NAMED));
        finding.fix("quorlock list --json | jq -r 'select(.expires | not).resource'");
    }
    for (master, why) in &listing.unseen {
        let Some((nth, surveyed)) = survey.masters.iter().enumerate().find(|(_, one)| one.master == *master)
        else {
            continue;
        };
        let Ok(facts @ MasterFacts { unfit: None, .. }) = &surveyed.facts else { continue };
        let field = format!("db{}", surveyed.contact.database);
        let count = facts.info(&field).and_then(without).unwrap_or(0);
        // Of which quorlock's own hashes are two at most.
        let (verdict, what) = if count > 2 {
            (Verdict::Warning, "too many")
        } else {
            (Verdict::Unchecked, "as many as quorlock's own")
        };
        finding.note(
            verdict,
            &name(nth, surveyed),
            format!("{count} keys without a ttl, {what}; cannot name them: {why}"),
        );
        if why.starts_with("NOPERM") {
            finding.fix(cli(surveyed, "ACL SETUSER your-user +scan +getrange   # only for this check"));
        } else {
            finding.fix("quorlock list 'lock:*'   # with a pattern that only locks match");
        }
    }
    finding
}

fn forever_by(key: &KeyState) -> Option<&[u8]> {
    match key {
        KeyState::Held { holder, remaining: Remaining::Forever, .. } => Some(holder),
        _ => None,
    }
}

/// Of `keys=5,expires=3,avg_ttl=0`.
fn without(keyspace: &str) -> Option<u64> {
    let field = |name: &str| {
        keyspace.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
    };
    Some(field("keys")?.saturating_sub(field("expires")?))
}

pub(crate) fn types(survey: &Survey, looks: &[Look]) -> Finding {
    if looks.is_empty() {
        return Finding::unchecked("D08", "no resource was named", NO_RESOURCE);
    }
    let mut finding = Finding::of("D08", "no key of another type is in the way");
    for look in looks {
        for (sighting, master) in look.inspection.sightings.iter().zip(&survey.masters) {
            if let Ok(KeyState::OtherType { .. }) = sighting.key {
                let what = format!(
                    "on {} a key that is no string: a hash would be Redisson's; no lock can be had",
                    master.master
                );
                finding.note(Verdict::Error, &look.shown, what);
                finding.fix(cli(master, &format!("TYPE {}", word(&look.resource))));
            }
        }
    }
    finding
}

pub(crate) fn votes(looks: &[Look]) -> Finding {
    if looks.is_empty() {
        return Finding::unchecked("D09", "no resource was named", NO_RESOURCE);
    }
    let mut finding = Finding::of("D09", "no split votes and no leftovers");
    for look in looks {
        let verdict = match &look.found {
            Found::Held { .. } | Found::Free | Found::Leftovers { free: true, expire_in: Some(_), .. } => {
                Verdict::Ok
            }
            Found::Leftovers { .. } | Found::Split { expire_in: Some(_), .. } | Found::NoQuorum => {
                Verdict::Warning
            }
            Found::Split { expire_in: None, .. } | Found::OtherType { .. } => Verdict::Error,
        };
        finding.note(verdict, &look.shown, sentence(&look.inspection, &look.found));
        if verdict > Verdict::Ok {
            finding.fix(format!("quorlock inspect {}", word(&look.resource)));
        }
    }
    finding
}

/// Values that anybody could have written, among the named resources or all that were listed.
pub(crate) fn owners(looks: &[Look], listing: &Listing) -> Finding {
    let listed = listing.resources.iter().map(|(resource, inspection)| (resource, inspection));
    let named = looks.iter().map(|look| (&look.resource, &look.inspection));
    let named_only = !looks.is_empty();
    let mut values: Vec<(&Vec<u8>, &[u8])> = Vec::new();
    for (resource, inspection) in named.chain(listed.filter(|_| !named_only)) {
        let holders = inspection.sightings.iter().filter_map(|sighting| match &sighting.key {
            Ok(KeyState::Held { holder, .. }) => Some(holder.as_slice()),
            _ => None,
        });
        for holder in holders {
            if !values.contains(&(resource, holder)) {
                values.push((resource, holder));
            }
        }
    }
    if values.is_empty() {
        let how = "quorlock doctor --monitor 5s RESOURCE…   # while the lock is held";
        return Finding::unchecked("P1", "no lock is held whose value could be judged", how);
    }
    let mut finding = Finding::of("P1", "every value that stands at a lock is a random one");
    // Named locks are locks; others may be anything.
    let grave = if named_only { Verdict::Error } else { Verdict::Warning };
    let constant: Vec<_> = values.iter().filter(|(_, holder)| Form::of(holder) == Form::Constant).collect();
    for (resource, holder) in constant.iter().take(NAMED) {
        let what =
            format!("its value is {:?}, which every holder may take for his own and delete", whole(holder));
        finding.note(grave, &whole(resource), what);
        finding.fix("quorlock explain 1");
    }
    if constant.len() > NAMED {
        finding.note(grave, "keys", format!("{} more like that", constant.len() - NAMED));
    }
    let shared = |(resource, holder): &&(&Vec<u8>, &[u8])| {
        Form::of(holder) == Form::Random
            && values.iter().any(|(other, same)| same == holder && other != resource)
    };
    for (resource, holder) in values.iter().filter(shared).take(NAMED) {
        let what = format!(
            "its value {:?} stands at another lock, too: one per acquisition is wanted",
            whole(holder)
        );
        finding.note(Verdict::Warning, &whole(resource), what);
        finding.fix("quorlock explain 1");
    }
    finding
}

pub(crate) fn expiries(survey: &Survey, looks: &[Look]) -> Finding {
    if looks.is_empty() {
        return Finding::unchecked("P3", "no resource was named; D07 counts keys without a ttl", NO_RESOURCE);
    }
    let mut finding = Finding::of("P3", "each lock that is held has a ttl");
    for look in looks {
        let Some((first, on, by)) = forever(&look.inspection) else { continue };
        let what = format!("no ttl on {on}, held by {:?}: it never expires by itself", whole(by));
        finding.note(Verdict::Error, &look.shown, what);
        finding.fix(release(survey.masters.get(first), &look.resource, by) + "   # if its holder is gone");
    }
    finding
}

/// Where keys without a ttl stand: the first master, all of them by name, and the first one's value.
fn forever(inspection: &Inspection) -> Option<(usize, String, &[u8])> {
    let keys = inspection.sightings.iter().enumerate();
    let keys: Vec<(usize, &[u8])> =
        keys.filter_map(|(nth, sighting)| Some((nth, forever_by(sighting.key.as_ref().ok()?)?))).collect();
    let on: Vec<String> = keys.iter().map(|(nth, _)| format!("m{}", nth + 1)).collect();
    let (first, by) = keys.first()?;
    Some((*first, on.join(", "), by))
}

/// What became of the lock that this holder had.
pub(crate) fn expected(looks: &[Look], expect: &str, finding: &mut Finding) {
    for look in looks {
        let holds = |holder: &[u8]| holder == expect.as_bytes();
        let keys =
            look.inspection.sightings.iter().filter(
                |sighting| matches!(&sighting.key, Ok(KeyState::Held { holder, .. }) if holds(holder)),
            );
        let (verdict, what) = match (&look.found, keys.count()) {
            (Found::Held { holder, votes, .. }, _) if holds(holder) => {
                (Verdict::Ok, format!("still held by {expect}, on {votes} masters"))
            }
            (Found::Held { holder, .. }, keys) => (
                Verdict::Error,
                format!(
                    "not yours any more: held by {}, and {} on {keys} masters. It expired under its holder (pitfall 2), was \
                     deleted by somebody (1, 4), or a failover forgot it (5)",
                    whole(holder),
                    expect
                ),
            ),
            (Found::NoQuorum, _) => (Verdict::Unchecked, "too few masters can be seen to tell".to_owned()),
            (_, 0) => (
                Verdict::Error,
                "gone: no master has that holder's key. It expired (pitfall 2), was released or deleted, or a failover forgot \
                 it (5)"
                    .to_owned(),
            ),
            (_, keys) => (
                Verdict::Error,
                format!("lost: only {keys} masters have that holder's key, {} are needed", look.inspection.quorum.needed()),
            ),
        };
        finding.note(verdict, &look.shown, what);
        if verdict == Verdict::Error {
            finding.fix("quorlock explain 2");
            finding.fix("quorlock explain 5");
        }
    }
}

/// For masters with too many keys.
pub(crate) fn not_searched(survey: &Survey, limit: Duration) -> Listing {
    let why = |master: &SurveyedMaster| {
        (master.master.clone(), format!("the search took longer than {}", show(limit)))
    };
    let unseen = survey.masters.iter().map(why).collect();
    Listing { quorum: survey.quorum, unseen, resources: Vec::new(), is_complete: false }
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn keys_without_a_ttl_are_counted() {
        assert_eq!(without("keys=5,expires=3,avg_ttl=0"), Some(2));
        assert_eq!(without("keys=5,expires=5,avg_ttl=0,subexpiry=0"), Some(0));
        assert_eq!(without("nonsense"), None);
    }
}
