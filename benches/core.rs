//! The pure core by itself: what the decisions cost, without sockets, tasks and clocks.
//!
//! ```text
//! cargo bench --bench core
//! ```
#![allow(missing_docs, reason = "what the macro makes is public")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use quorlock::Policy;
use quorlock::protocol::attempt::Attempt;
use quorlock::protocol::fanout::{Dispatch, Link};
use quorlock::protocol::quorum::{MasterId, Quorum};
use quorlock::protocol::request::Ttl;
use quorlock::protocol::time::Moment;
use quorlock::protocol::votes::{Incumbent, Reply, Tally, Vote};

const TIMEOUT: Duration = Duration::from_millis(500);

fn at(micros: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + micros * 1_000)
}

fn granted(link: u32) -> Reply {
    Reply { vote: Vote::Granted, link: Some(Link(link)), number: None }
}

/// A claim with all its answers.
fn won(quorum: Quorum, ttl: Ttl) -> Attempt {
    let mut attempt = Attempt::claim(quorum, ttl, TIMEOUT, at(0));
    answer(&mut attempt, 100);
    attempt
}

fn answer(attempt: &mut Attempt, micros: u64) {
    let asked: Vec<Dispatch> = std::iter::from_fn(|| attempt.next_dispatch()).collect();
    for dispatch in &asked {
        attempt.on_reply(dispatch, granted(1), at(micros));
    }
}

fn rounds(criterion: &mut Criterion) {
    let ttl = Ttl::new(Duration::from_secs(30), &Policy::new());
    for masters in [1, 3, 5, 7] {
        let (Ok(quorum), Ok(ttl)) = (Quorum::majority(masters), ttl.clone()) else { continue };
        criterion.bench_function(&format!("a claim of {masters} masters, all granted"), |bencher| {
            bencher.iter(|| black_box(won(quorum, ttl)).verdict());
        });
        criterion.bench_function(&format!("a release on {masters} masters"), |bencher| {
            bencher.iter_batched(
                || won(quorum, ttl),
                |mut attempt| {
                    attempt.release(at(200));
                    answer(&mut attempt, 300);
                    attempt.released()
                },
                criterion::BatchSize::SmallInput,
            );
        });
    }
}

fn tallies(criterion: &mut Criterion) {
    let Ok(quorum) = Quorum::majority(5) else { return };
    criterion.bench_function("a tally of three votes against two", |bencher| {
        bencher.iter(|| {
            let votes = (0..5)
                .map(|nth| Some(if nth < 3 { Vote::Granted } else { Vote::Held(Incumbent::default()) }));
            let tally = Tally::new(quorum, votes);
            let first = MasterId::new(0).and_then(|master| tally.vote(master)).is_some();
            black_box((tally.granted(), tally.held(), first))
        });
    });
}

criterion_group!(core, rounds, tallies);
criterion_main!(core);
