//! Whole runs of the real client, by seeds: several machines with clocks of their own, masters and connections made of
//! values, and faults; what each run must keep is in `promise.rs`.
//!
//! A seed always gives the same run. `QUORLOCK_SIM_SEEDS=N` runs so many seeds, `QUORLOCK_SIM_SEED=n` runs one and tells
//! its story; `tests/sim/long.sh` runs ten thousand.

mod book;
mod dice;
mod machine;
#[cfg(feature = "mutants")]
mod mutants;
mod network;
mod plan;
mod promise;
mod run;
mod sights;
mod site;
#[path = "../splitmix/mod.rs"]
mod splitmix;
mod time;
mod trace;
mod transport;
mod user;
mod wire;
mod world;

use plan::Plan;
use promise::Promise;
use run::{Outcome, Run};
use sights::Sights;
use trace::Trace;

/// In two halves, for two cores.
const SEEDS: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

fn run(seed: u64, heeds: fn(Promise) -> bool, trace: Trace) -> Outcome {
    Run::of(Plan::new(seed, false), heeds, trace)
}

/// All that happens in the run of a seed, and how it ends.
fn story(seed: u64) -> String {
    let told = run(seed, |_| true, Trace::told());
    let end = told.breach.map_or_else(|| "no promise is broken".to_owned(), |breach| breach.to_string());
    let plan = Plan { faults: Vec::new(), ..Plan::new(seed, false) };
    format!("{plan:?}\n{}\n{end}", told.trace.lines().join("\n"))
}

/// Runs some seeds, and looks that each fault and each outcome was seen.
fn hold(seeds: std::ops::Range<u64>) {
    let mut total = Sights::default();
    let all = seeds.end - seeds.start;
    for seed in seeds {
        let outcome = run(seed, |_| true, Trace::default());
        if let Some(breach) = outcome.breach {
            println!("{}", story(seed));
            panic!(
                "seed {seed}: {breach}\nits story is above; once more with\n  QUORLOCK_SIM_SEED={seed} cargo nextest run \
                 --all-features --test sim --no-capture a_seed_tells_its_story"
            );
        }
        total.add(&outcome.sights);
    }
    println!("{total}");
    let seldom = total.missing((all / 200).max(1));
    assert!(seldom.is_empty(), "seldom seen: {seldom:?} in {total}");
}

fn seeds() -> u64 {
    number("QUORLOCK_SIM_SEEDS").unwrap_or(SEEDS)
}

#[test]
fn whatever_happens_the_promises_hold() {
    hold(0..seeds() / 2);
}

#[test]
fn whatever_else_happens_the_promises_hold() {
    hold(seeds() / 2..seeds());
}

/// The one that `QUORLOCK_SIM_SEED` names.
#[test]
fn a_seed_tells_its_story() {
    let seed = number("QUORLOCK_SIM_SEED").unwrap_or(1);
    let story = story(seed);
    println!("{story}");
    assert!(story.contains("no promise is broken"), "seed {seed}");
}

#[test]
fn a_seed_tells_the_same_story_again() {
    for seed in 0..8 {
        let (first, second) = (story(seed), story(seed));
        if first != second {
            let other = first.lines().zip(second.lines()).find(|(first, second)| first != second);
            panic!("seed {seed} has two stories, from here on: {other:?}");
        }
    }
}

/// The search sees overlaps where there are some: keys deleted by hand, wall clocks set forward.
#[test]
fn what_lies_outside_the_promise_is_seen() {
    let overlaps = (0..120).filter(|seed| {
        let outcome =
            Run::of(Plan::new(*seed, true), |promise| promise == Promise::Exclusion, Trace::default());
        outcome.breach.is_some()
    });
    let overlaps = overlaps.count();
    println!("{overlaps} of 120 runs with an overlap");
    assert!(overlaps >= 2, "{overlaps}");
}
