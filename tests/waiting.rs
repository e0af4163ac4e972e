//! The line within a client and what masters tell, in virtual time: how many commands and polls they cost, what far
//! masters do to them, and waiters dropped at every poll.

#![allow(clippy::disallowed_methods, reason = "a test's tasks end with its runtime")]

#[path = "network/mod.rs"]
mod network;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use network::{Network, RESOURCE, Weather, millis, polled, request};
use quorlock::protocol::fanout::Act;
use quorlock::protocol::policy::Policy;
use quorlock::protocol::votes::Vote;
use quorlock::{AcquireError, Guard, LockRequest, Redlock};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

const LONG: Duration = Duration::from_secs(3_600);

/// The shortest pause between claims is a quarter of an hour: whoever is quicker was told.
fn patient(network: &Network) -> Redlock {
    let pauses = LONG;
    network.client_with(Policy::new().with_max_ttl(Duration::from_secs(7_200)).with_backoff(pauses, pauses))
}

fn long(client: &Redlock) -> LockRequest {
    request(client).ttl(Duration::from_secs(7_000)).wait(LONG * 2)
}

fn waiter(request: LockRequest) -> JoinHandle<Result<Guard, AcquireError>> {
    tokio::spawn(async move { request.acquire().await })
}

fn count(network: &Network, acts: &[Act]) -> usize {
    network.done().iter().filter(|done| acts.contains(&done.act)).count()
}

const CLAIMS: [Act; 2] = [Act::Claim, Act::Watch];

/// Counts how often `future` is polled.
async fn counted<F: Future>(future: F, polls: &AtomicUsize) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        polls.fetch_add(1, Ordering::Relaxed);
        future.as_mut().poll(cx)
    })
    .await
}

// B52, issue 7: no quadratic work
#[tokio::test(start_paused = true)]
async fn ten_thousand_waiters_of_one_client_cost_one_claim_and_few_polls_each() {
    const WAITERS: usize = 10_000;
    let network = Network::new(5);
    let client = patient(&network);
    let guard = long(&client).acquire().await.expect("free");
    let polls = Arc::new(AtomicUsize::new(0));
    let mut waiters = JoinSet::new();
    for _ in 0..WAITERS {
        let (request, polls) = (long(&client), polls.clone());
        waiters.spawn(async move {
            let guard = counted(request.acquire(), &polls).await.expect("in turn");
            let _ = guard.release().await;
        });
    }
    sleep(millis(10)).await;
    assert_eq!(count(&network, &CLAIMS), 5, "those who wait ask nobody");
    let _ = guard.release().await;
    waiters.join_all().await;
    sleep(millis(10)).await;
    assert_eq!(count(&network, &CLAIMS), 5 * (WAITERS + 1));
    assert_eq!(count(&network, &[Act::Release]), 5 * (WAITERS + 1));
    let polls = polls.load(Ordering::Relaxed);
    assert!(polls <= 8 * WAITERS, "{polls} polls");
}

// The same for as many resources, each held by another client; benches/handoff has ten thousand
#[tokio::test(start_paused = true)]
async fn two_thousand_waiters_of_as_many_resources_are_told_one_by_one() {
    const WAITERS: usize = 2_000;
    let network = Network::new(5);
    let (holder, client) = (patient(&network), patient(&network));
    let name = |nth: usize| format!("order:{nth}");
    let mut guards = Vec::new();
    for nth in 0..WAITERS {
        guards.push(holder.lock(name(nth)).no_renewal().acquire().await.expect("free"));
    }
    sleep(millis(10)).await;
    let before = network.done().len();
    let mut waiters = JoinSet::new();
    for nth in 0..WAITERS {
        let request = client.lock(name(nth)).wait(millis(25_000));
        waiters.spawn(async move {
            let _ = request.acquire().await.expect("released").release().await;
        });
    }
    sleep(millis(1_000)).await;
    assert_eq!(network.done().len() - before, 11 * WAITERS, "two claims each, and a place in line");
    let began = Instant::now();
    for guard in guards {
        let _ = guard.release().await;
    }
    waiters.join_all().await;
    assert!(began.elapsed() < millis(5_000), "{:?}", began.elapsed());
    sleep(millis(10)).await;
    // The release by the holder; then a claim, its release, and out of the line.
    assert_eq!(network.done().len() - before, (11 + 5 + 11) * WAITERS);
}

// Rule 16
#[tokio::test(start_paused = true)]
async fn a_release_between_the_plain_claim_and_the_watching_one_is_not_missed() {
    let network = Network::new(5);
    let (holder, client) = (patient(&network), patient(&network));
    let guard = long(&holder).acquire().await.expect("free");
    sleep(millis(1)).await;
    network.set(0..5, Weather::far(10, 10));
    let waits = waiter(long(&client));
    sleep(millis(12)).await;
    network.set(0..5, Weather::CALM);
    let _ = guard.release().await;
    network.set(0..5, Weather::far(10, 10));
    let began = Instant::now();
    let next = waits.await.expect("no panic").expect("free");
    // What is left of the plain claim, and two round trips: in line, and the claim that watches.
    assert!(began.elapsed() <= millis(50), "{:?}", began.elapsed());
    assert_eq!(count(&network, &[Act::Watch]), 3);
    drop(next);
}

/// Whom the last claim asked to tell, of one client that waits.
fn watched(network: &Network) -> Vec<usize> {
    let done = network.done();
    let last =
        done.iter().rev().find(|done| done.act == Act::Watch).expect("a claim that watches").holder.clone();
    let mut watched: Vec<usize> = done
        .iter()
        .filter(|done| done.act == Act::Watch && done.holder == last)
        .map(|done| done.master)
        .collect();
    watched.sort_unstable();
    watched
}

// Rule 16: w masters tell, and those that were quick to answer
#[tokio::test(start_paused = true)]
async fn a_waiter_asks_the_quickest_to_tell_and_others_for_those_that_fell_silent() {
    let network = Network::new(5);
    let (holder, client) = (patient(&network), patient(&network));
    let mut guard = long(&holder).acquire().await.expect("free");
    sleep(millis(10)).await;
    network.set([0, 2], Weather::far(20, 20));
    let waits = waiter(long(&client));
    sleep(millis(300)).await;
    assert_eq!(watched(&network), [1, 3, 4]);
    // All are heard by now; those that are asked already stay.
    for (silent, asked) in [(None, [1, 3, 4]), (Some(3), [0, 1, 4]), (Some(4), [0, 1, 2])] {
        network.set(silent, Weather::LOST);
        // The first claim finds out, the second asks another.
        for _ in 0..2 {
            (0..3).for_each(|master| network.lag(master));
            sleep(millis(1_000)).await;
        }
        assert_eq!(watched(&network), asked, "without {silent:?}");
    }
    let began = Instant::now();
    let _ = guard.release().await;
    guard = waits.await.expect("no panic").expect("free");
    assert!(began.elapsed() < millis(1_000), "{:?}", began.elapsed());
    drop(guard);
}

// Rule 16: the verdict falls with others than those that are to tell, and one of these is not heard of at all
#[tokio::test(start_paused = true)]
async fn who_cannot_rely_on_being_told_asks_again_soon() {
    let network = Network::new(5);
    let holder = patient(&network);
    let client = network
        .client_with(Policy::new().with_max_ttl(Duration::from_secs(7_200)).with_backoff(millis(25), LONG));
    let guard = long(&holder).acquire().await.expect("free");
    sleep(millis(10)).await;
    network.set([0], Weather { unanswered: |act| act == Act::Watch, ..Weather::CALM });
    let waits = waiter(long(&client));
    sleep(millis(1_000)).await;
    assert_eq!(watched(&network), [1, 2, 3]);
    let claims = count(&network, &CLAIMS);
    assert!(claims <= 5 * 4, "{claims}");
    let began = Instant::now();
    let _ = guard.release().await;
    drop(waits.await.expect("no panic").expect("free"));
    assert!(began.elapsed() < millis(100), "{:?}", began.elapsed());
}

// Rule 16: also with the last answers after the verdict
#[tokio::test(start_paused = true)]
async fn answers_that_come_after_the_verdict_count_for_the_wait() {
    let network = Network::new(5);
    let (holder, client) = (patient(&network), patient(&network));
    let guard = long(&holder).acquire().await.expect("free");
    sleep(millis(1)).await;
    network.set(0..3, Weather::far(10, 10));
    network.set(3..5, Weather::far(40, 40));
    let waits = waiter(long(&client));
    // Refused on the first three, which it now asks to tell; the third answers when the others have refused already.
    sleep(millis(15)).await;
    network.set([2], Weather::far(40, 40));
    network.set(3..5, Weather::CALM);
    sleep(millis(200)).await;
    assert_eq!(watched(&network), [0, 1, 2]);
    let _ = guard.release().await;
    let began = Instant::now();
    let next = waits.await.expect("no panic").expect("free");
    assert!(began.elapsed() < millis(400), "{:?}", began.elapsed());
    drop(next);
}

// Rule 16: more was told than could be kept in mind, by w masters or by fewer
#[tokio::test(start_paused = true)]
async fn who_waits_asks_again_when_anything_may_have_changed_on_enough_masters() {
    let network = Network::new(5);
    let (holder, client) = (patient(&network), patient(&network));
    let guard = long(&holder).acquire().await.expect("free");
    sleep(millis(10)).await;
    let list = client.lock_all([RESOURCE, "another"]).ttl(Duration::from_secs(7_000)).wait(LONG * 2);
    let waits = [waiter(long(&client)), waiter(list)];
    sleep(millis(100)).await;
    // It was free for nobody.
    let before = count(&network, &CLAIMS);
    (0..3).for_each(|master| network.lag(master));
    sleep(millis(100)).await;
    assert_eq!(
        count(&network, &CLAIMS) - before,
        15,
        "each asks once more, and the first in line to be told"
    );
    // It is, and nobody is told.
    (0..5).for_each(|master| drop(network.forget_watches(master)));
    let _ = guard.release().await;
    (0..2).for_each(|master| network.lag(master));
    sleep(millis(1_000)).await;
    assert_eq!(count(&network, &CLAIMS) - before, 15, "two masters are too few");
    let began = Instant::now();
    network.lag(2);
    for waits in waits {
        let _ = waits.await.expect("no panic").expect("free").release().await;
    }
    assert!(began.elapsed() < millis(1_000), "{:?}", began.elapsed());
}

// A busy lock costs one command a master and claim, also where the verdict falls before the last answers
#[tokio::test(start_paused = true)]
async fn a_claim_that_all_refuse_is_not_deleted_however_late_the_last_ones_say_so() {
    let network = Network::new(5);
    network.set(3..5, Weather::far(1, 60));
    network.lock_by_another(RESOURCE, Some(LONG));
    for wait in [millis(0), millis(30)] {
        let client = network.client();
        let error = request(&client).wait(wait).acquire().await.expect_err("busy");
        assert!(matches!(error, AcquireError::Contended(_)));
    }
    sleep(millis(3_000)).await;
    assert_eq!(count(&network, &[Act::Release]), 0);
}

// Rule 6: but what a late answer may have left is
#[tokio::test(start_paused = true)]
async fn a_late_grant_or_a_late_silence_after_a_refusal_is_deleted() {
    let creates: fn(Act) -> bool = |act| act.creates();
    for late in [Weather::far(1, 60), Weather::far(60, 1), Weather { unanswered: creates, ..Weather::CALM }] {
        let network = Network::new(5);
        network.set(3..5, late);
        network.lock_by_another(RESOURCE, Some(LONG));
        (3..5).for_each(|master| network.master(master).delete(RESOURCE.as_bytes()));
        let client = network.client();
        assert!(request(&client).try_acquire().await.is_err());
        sleep(millis(3_000)).await;
        assert_eq!(network.keys_of(RESOURCE), [0, 1, 2]);
        // Refusals included.
        assert!(count(&network, &[Act::Release]) >= 5);
    }
}

// B82: wherever it is, and whatever it waits for
#[tokio::test(start_paused = true)]
async fn a_waiter_dropped_at_any_poll_holds_up_nobody_and_leaves_nothing() {
    for weather in [Weather::CALM, Weather::far(1, 2), Weather::far(3, 9)] {
        for polls in 0..16 {
            let network = Network::new(5);
            network.set(0..5, weather);
            let (holder, client) = (patient(&network), patient(&network));
            let guard = long(&holder).acquire().await.expect("free");
            sleep(millis(20)).await;
            let first = long(&client);
            let dropped = tokio::spawn(async move { polled(first.acquire(), polls).await.is_none() });
            let waits = [waiter(long(&client)), waiter(long(&client))];
            sleep(millis(100)).await;
            let _ = guard.release().await;
            let released = Instant::now();
            for waits in waits {
                let _ = waits.await.expect("no panic").expect("in turn").release().await;
            }
            let took = released.elapsed();
            assert!(took < millis(1_000), "{took:?} after {polls} polls in {weather:?}");
            drop(dropped.await);
            sleep(millis(1_500)).await;
            assert_eq!(network.occupied(), network::NOWHERE, "after {polls} polls in {weather:?}");
        }
    }
}

// B51: no lock step, near and far
#[tokio::test(start_paused = true)]
async fn clients_that_are_told_at_the_same_moment_all_get_the_lock() {
    for weather in [Weather::CALM, Weather::far(1, 1), Weather::far(15, 20)] {
        let network = Network::new(5);
        network.set(0..5, weather);
        let mut contenders = JoinSet::new();
        for _ in 0..6 {
            let client = network.client();
            contenders.spawn(async move {
                for _ in 0..20 {
                    let guard = request(&client).wait(LONG).acquire().await.expect("a turn");
                    sleep(millis(5)).await;
                    let _ = guard.release().await;
                }
            });
        }
        let began = Instant::now();
        contenders.join_all().await;
        let each = began.elapsed() / 120;
        let round_trip = weather.there + weather.back;
        assert!(each < millis(40) + round_trip * 8, "{each:?} an acquisition in {weather:?}");
        let done = network.done();
        let won = done.iter().filter(|done| CLAIMS.contains(&done.act) && done.vote == Vote::Granted).count();
        let per_win = done.len() / 120;
        assert!(per_win < 120 && won >= 360, "{per_win} commands an acquisition in {weather:?}");
    }
}
