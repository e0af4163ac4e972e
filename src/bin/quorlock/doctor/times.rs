//! D15 and P2: the ttl against the work.

use std::time::Duration;

use quorlock::protocol::request::Ttl;
use quorlock::{Finding as Found, Policy};

use super::finding::{Finding, Verdict};
use super::locks::{Look, expected};
use crate::args::Doctor;
use crate::duration::show;

/// A ttl that many times the P99 of the work leaves room for a bad day.
const ROOM: u32 = 3;
/// What locks are taken with unless told otherwise.
const USUAL: Duration = Duration::from_secs(30);

pub(crate) fn policy(args: &Doctor, policy: &Policy) -> Finding {
    let (ttl, timeout) = (ttl(args, policy), policy.master_timeout());
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
    finding
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
        let (ttl, wanted) = (ttl(args, policy), p99 * ROOM);
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

fn ttl(args: &Doctor, policy: &Policy) -> Duration {
    args.ttl.unwrap_or(USUAL.min(policy.max_ttl()))
}

/// As `--ttl` takes it.
fn word(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}
