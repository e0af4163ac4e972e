//! D10: the masters' wall clocks, against each other.
//!
//! No rule of ours reads this machine's wall clock, so it is no judge here; the middle one of the masters' is.

use std::time::{Duration, Instant};

use quorlock::{Contact, Place, Policy, Survey, WallClock};

use super::finding::{Finding, Verdict};
use super::masters::seen;
use super::servers;
use crate::duration::show;

/// A deviation that NTP would not leave.
const NOTICEABLE: Duration = Duration::from_millis(500);
/// Below this, two looks are too close to tell a rate.
const APART: Duration = Duration::from_secs(2);

/// What each clock showed at an earlier look.
#[derive(Default)]
pub(crate) struct Clocks {
    earlier: Vec<(String, WallClock)>,
}

/// By how much a clock is ahead of another one that shows `time` at `at`.
fn ahead(clock: &WallClock, at: Instant) -> i128 {
    let since = |later: Instant, earlier: Instant| {
        i128::try_from(later.duration_since(earlier).as_micros()).unwrap_or(0)
    };
    let elapsed = if clock.read_at >= at { since(clock.read_at, at) } else { -since(at, clock.read_at) };
    i128::try_from(clock.time.as_micros()).unwrap_or(0) - elapsed
}

/// Microseconds ahead of the middle clock, one a master that told its time.
pub(crate) fn deviations(survey: &Survey) -> Vec<(String, i128)> {
    let clocks: Vec<(String, WallClock)> =
        seen(survey).filter_map(|(name, _, facts)| Some((name, *facts.clock.as_ref().ok()?))).collect();
    let Some((_, first)) = clocks.first() else { return Vec::new() };
    let at = first.read_at;
    let mut all: Vec<i128> = clocks.iter().map(|(_, clock)| ahead(clock, at)).collect();
    let shown: Vec<(String, i128)> =
        clocks.iter().map(|(name, clock)| (name.clone(), ahead(clock, at))).collect();
    all.sort_unstable();
    let middle = all[(all.len() - 1) / 2];
    shown.into_iter().map(|(name, ahead)| (name, ahead - middle)).collect()
}

impl Clocks {
    pub(crate) fn check(&mut self, survey: &Survey, policy: &Policy) -> Finding {
        let deviations = deviations(survey);
        let spread = |most: &[(String, i128)]| {
            let all = most.iter().map(|(_, deviation)| *deviation);
            all.clone().max().unwrap_or(0) - all.min().unwrap_or(0)
        };
        let spread = Duration::from_micros(u64::try_from(spread(&deviations)).unwrap_or(u64::MAX));
        let mut finding = Finding::of("D10", format!("the masters' clocks agree within {}", show(spread)));
        for (name, deviation) in &deviations {
            let by = Duration::from_micros(u64::try_from(deviation.abs()).unwrap_or(u64::MAX));
            if by < NOTICEABLE {
                continue;
            }
            let verdict = if by >= policy.max_ttl() { Verdict::Error } else { Verdict::Warning };
            let side = if *deviation > 0 { "ahead of" } else { "behind" };
            let what = format!(
                "{} {side} the others: set right by a step forward, it would end locks early",
                show(by)
            );
            finding.note(verdict, name, what);
        }
        self.rates(survey, policy, &mut finding);
        for (name, master, facts) in seen(survey) {
            match &facts.clock {
                Err(untold) => servers::unchecked(&mut finding, &name, master, "its clock", untold),
                Ok(_) if finding.notes.iter().any(|note| note.subject == name) => {
                    finding.fix(format!(
                        "ssh {} chronyc tracking   # let it slew, not step",
                        host(&master.contact)
                    ));
                }
                Ok(_) => {}
            }
        }
        finding
    }

    /// Against what the same clock showed at the look before.
    fn rates(&mut self, survey: &Survey, policy: &Policy, finding: &mut Finding) {
        for (name, _, facts) in seen(survey) {
            let Ok(clock) = &facts.clock else { continue };
            let Some((_, earlier)) = self.earlier.iter_mut().find(|(known, _)| *known == name) else {
                self.earlier.push((name, *clock));
                continue;
            };
            let apart = clock.read_at.saturating_duration_since(earlier.read_at);
            if apart < APART {
                continue;
            }
            let before = std::mem::replace(earlier, *clock);
            let gained = ahead(clock, before.read_at) - ahead(&before, before.read_at);
            let by = Duration::from_micros(u64::try_from(gained.abs()).unwrap_or(u64::MAX));
            // The drift of a ttl as long as that is allowed for.
            if by > policy.drift(apart) + before.give_or_take + clock.give_or_take {
                let side = if gained > 0 { "gained" } else { "lost" };
                let what = format!(
                    "it {side} {} in {}: it was stepped, or runs beyond the drift allowed for",
                    show(by),
                    show(apart)
                );
                finding.note(Verdict::Error, &name, what);
            }
        }
    }
}

fn host(contact: &Contact) -> String {
    match &contact.place {
        Place::Tcp { host, .. } => host.clone(),
        _ => "localhost".to_owned(),
    }
}
