//! D15 and P2: the ttl against the work.

use std::time::Duration;

use quorlock::protocol::request::Ttl;
use quorlock::protocol::votes::Remaining;
use quorlock::{Finding as Found, KeyState, Policy, Survey};

use super::finding::{Finding, Verdict};
use super::locks::{Look, expected};
use super::masters::seen;
use crate::args::Doctor;
use crate::duration::{show, word};
use crate::fleet;

/// A ttl that many times the P99 of the work leaves room for a bad day.
const ROOM: u32 = 3;

pub(crate) fn policy(args: &Doctor, policy: &Policy, survey: &Survey, looks: &[Look]) -> Finding {
    let (ttl, timeout) = (fleet::ttl(args.ttl, policy), policy.master_timeout());
    let sound = format!(
        "ttl {}, renewed each {}; master timeout {}; longest ttl of the fleet {}",
        show(ttl),
        show(ttl / 3),
        show(timeout),
        show(policy.max_ttl())
    );
    let mut finding = Finding::of("D15", sound);
    if let Err(error) = Ttl::new(ttl, policy) {
        finding.note(Verdict::Error, "--ttl", error.to_string());
        finding.fix("quorlock doctor --ttl 30s");
    } else if ttl / 6 < timeout {
        let what = format!(
            "one silent master takes {} of a ttl of {}: a renewal, due each third, has one try",
            show(timeout),
            show(ttl)
        );
        finding.note(Verdict::Warning, "--ttl", what);
        finding.fix(format!("quorlock doctor --ttl {}   # the same where it is acquired", word(timeout * 6)));
    }
    longest(policy, survey, &mut finding);
    if let Some(ttl) = args.ttl {
        looks.iter().for_each(|look| renewals(ttl, look, &mut finding));
    }
    finding
}

/// Masters that were told of another longest ttl than we have refuse us.
fn longest(policy: &Policy, survey: &Survey, finding: &mut Finding) {
    for (name, _, facts) in seen(survey) {
        let Some(theirs) = facts.max_ttl.filter(|theirs| *theirs != policy.max_ttl()) else { continue };
        let what = format!(
            "its fleet's longest ttl is {}, not the {} given here: it takes no client that differs",
            show(theirs),
            show(policy.max_ttl())
        );
        finding.note(Verdict::Error, &name, what);
        finding.fix(format!("quorlock doctor --max-ttl {}   # the same for every client", word(theirs)));
    }
}

/// When a lock was taken or renewed shows in what is left of its ttl; which of the two, only a second look can tell.
fn renewals(ttl: Duration, look: &Look, finding: &mut Finding) {
    let Found::Held { holder, .. } = &look.found else { return };
    let left = look.inspection.sightings.iter().filter_map(|sighting| match &sighting.key {
        Ok(KeyState::Held { holder: by, remaining: Remaining::For(left), .. }) if by == holder => Some(*left),
        _ => None,
    });
    let Some(left) = left.max() else { return };
    let Some(ago) = ttl.checked_sub(left) else {
        let what = format!("{} are left of a ttl of {}: it is held with a longer one", show(left), show(ttl));
        finding.note(Verdict::Warning, &look.shown, what);
        finding.fix(format!("quorlock doctor --ttl {}s", left.as_secs() + 1));
        return;
    };
    if ago > ttl / 3 * 2 {
        let what = format!(
            "taken or last renewed {} ago, where a renewal is due each {}: nobody renews it",
            show(ago),
            show(ttl / 3)
        );
        finding.note(Verdict::Warning, &look.shown, what);
        finding.fix("quorlock explain 2");
    } else {
        finding.note(Verdict::Ok, &look.shown, format!("taken or last renewed {} ago", show(ago)));
    }
}

pub(crate) fn work(args: &Doctor, policy: &Policy, looks: &[Look]) -> Finding {
    if args.p99.is_none() && args.expect.is_none() {
        return Finding::unchecked(
            "P2",
            "how long the work takes was not told",
            "quorlock doctor --p99 8s RESOURCE…   # the 99th percentile of the time it is held",
        );
    }
    let sound = if args.p99.is_some() {
        "the ttl leaves room for the work"
    } else {
        "the lock is where it is expected"
    };
    let mut finding = Finding::of("P2", sound);
    if let Some(p99) = args.p99 {
        let (ttl, wanted) = (fleet::ttl(args.ttl, policy), p99 * ROOM);
        let validity = ttl.saturating_sub(policy.drift(ttl));
        let short = if validity <= p99 {
            Some((
                Verdict::Error,
                format!(
                    "1 in 100 runs takes {} or more: the lock is gone by then unless it is renewed",
                    show(p99)
                ),
            ))
        } else if ttl < wanted {
            let times = ttl.as_secs_f64() / p99.as_secs_f64();
            Some((
                Verdict::Warning,
                format!("{times:.1} times the P99 of {}; {ROOM} times leave room for pauses", show(p99)),
            ))
        } else {
            None
        };
        if let Some((verdict, what)) = short {
            finding.note(verdict, &format!("ttl {}", show(ttl)), what);
            if wanted <= policy.max_ttl() {
                finding.fix(format!(
                    "quorlock acquire RESOURCE --ttl {}   # or leave the renewal on",
                    word(wanted)
                ));
            } else {
                finding.fix(format!(
                    "grep -rn no_renewal src   # longer than max_ttl ({}): leave the renewal on, or raise max_ttl for every \
                     client",
                    show(policy.max_ttl())
                ));
            }
        }
        for look in looks {
            if let Found::Held { at_least: Some(left), .. } = &look.found
                && *left < p99
            {
                let what = format!(
                    "held for {} more at least, the work's P99 is {}: is it renewed?",
                    show(*left),
                    show(p99)
                );
                finding.note(Verdict::Warning, &look.shown, what);
                finding.fix("quorlock explain 2");
            }
        }
    }
    if let Some(expect) = &args.expect {
        expected(looks, expect, &mut finding);
    }
    finding
}
