//! Whole runs of the real client, by seeds: several machines with clocks of their own, masters and connections made of
//! values, and faults; what each run must keep is in `promise.rs`.
//!
//! A seed always gives the same run. `QUORLOCK_SIM_SEEDS=N` runs so many seeds, `QUORLOCK_SIM_SEED=n` runs one and tells
//! its story; `tests/sim/long.sh` runs ten thousand.

mod book;
mod dice;
mod machine;
mod network;
mod plan;
mod promise;
mod run;
mod sights;
mod site;
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

const SEEDS: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn run(seed: u64, outside: bool, heeds: fn(Promise) -> bool, trace: Trace) -> Outcome {
    Run::of(Plan::new(seed, outside), heeds, trace)
}

/// The story of a seed.
fn story(seed: u64) -> String {
    let told = run(seed, false, |_| true, Trace::told());
    let breach = told.breach.map_or_else(|| "no promise is broken".to_owned(), |breach| format!("{:?} at {:.6} s: {}", breach.promise, breach.at as f64 / 1e9, breach.words));
    format!("{}\n{:#?}\n{breach}", told.trace.lines().join("\n"), Plan { faults: Vec::new(), ..Plan::new(seed, false) })
}

#[test]
fn whatever_happens_the_promises_hold() {
    if let Some(seed) = number("QUORLOCK_SIM_SEED") {
        println!("{}", story(seed));
        return;
    }
    let seeds = number("QUORLOCK_SIM_SEEDS").unwrap_or(SEEDS);
    let mut total = Sights::default();
    let mut failed = 0;
    for seed in 0..seeds {
        let outcome = run(seed, false, |_| true, Trace::default());
        total.add(&outcome.sights);
        if let Some(breach) = outcome.breach { println!("seed {seed}: {breach:?}"); failed += 1; }
        if failed > 20 { break }
    }
    println!("{total}");
    assert_eq!(failed, 0);
    assert!(total.missing(20).is_empty(), "seldom seen: {:?}", total.missing(20));
}
