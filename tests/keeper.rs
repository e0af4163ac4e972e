//! What the keeper does with held locks as time passes: it renews, warns, heals, notices loss, and stops in time.
//!
//! All of it in virtual time: minutes pass in milliseconds, and "exactly" means to the millisecond of tokio's timers.

#[path = "network/mod.rs"]
mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::future::join_all;
use network::{
    Done, NOWHERE, Network, RESOURCE, THREE, TICK, TTL, Weather, locked, millis, request, request_of_three,
};
use quorlock::protocol::fanout::Act;
use quorlock::protocol::time::Moment;
use quorlock::protocol::votes::Vote;
use quorlock::{AcquireError, ExtendError, Guard, Hold, Lost, Policy, Released, UsingError, Why};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::Level;

/// A third of the ttl, and the drift of it: 1 % and 2 ms.
const PERIOD: Duration = Duration::from_secs(2);
const DRIFT: Duration = Duration::from_millis(62);
/// Renewals fall on a grid of so many slots in a period.
const SLOTS: u32 = 16;

/// When the lock is over unless a renewal is confirmed.
fn deadline(hold: &Hold) -> Instant {
    Instant::now() + hold.remaining()
}

/// The loss, and when it was told.
async fn loss_of(hold: &Hold) -> (Instant, Lost) {
    let lost = timeout(Duration::from_secs(24 * 60 * 60), hold.lost()).await.expect("told at the deadline");
    (Instant::now(), lost)
}

fn assert_at(what: &str, when: Instant, expected: Instant) {
    let late = when.saturating_duration_since(expected);
    assert!(when >= expected && late <= 2 * TICK, "{what}: {late:?} late, {:?} early", expected - when);
}

/// The moments at which a resource was renewed, with the masters that did it.
fn renewals(done: &[Done]) -> BTreeMap<Instant, BTreeSet<usize>> {
    let mut renewals = BTreeMap::<Instant, BTreeSet<usize>>::new();
    for done in done.iter().filter(|done| done.act == Act::Renew) {
        renewals.entry(done.sent).or_default().insert(done.master);
    }
    renewals
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_renewed_every_third_of_its_ttl_and_no_more() {
    let network = Network::new(5);
    network.set(0..5, Weather::far(4, 6));
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    let acquired = Instant::now();
    let mut least = TTL;
    for _ in 0..300_000 / 50 {
        sleep(millis(50)).await;
        assert!(guard.is_valid());
        least = least.min(guard.remaining());
    }
    let done = network.done();
    assert!(
        done.iter().all(|done| done.vote == Vote::Granted && matches!(done.act, Act::Claim | Act::Renew))
    );
    let renewals = renewals(&done);
    assert!(renewals.values().all(|masters| masters.len() == 5), "each renewal goes to every master");
    let moments: Vec<Instant> = renewals.into_keys().collect();
    assert!(moments[0] - acquired <= PERIOD && moments[0] - acquired >= PERIOD * (SLOTS - 5) / SLOTS);
    // Only the second one comes earlier, by chance.
    let scattered = moments[1] - moments[0];
    assert!(scattered + 2 * TICK >= PERIOD / 4 && scattered <= PERIOD + 2 * TICK, "{scattered:?}");
    for pair in moments[1..].windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= PERIOD - 2 * TICK && gap <= PERIOD + 2 * TICK, "{gap:?}");
    }
    assert!((149..=151).contains(&moments.len()), "{} renewals in five minutes", moments.len());
    // The send stamp counts, and the answers take ten milliseconds.
    assert!(least >= TTL - DRIFT - PERIOD - millis(10) - 3 * TICK, "{least:?}");
}

/// The verdict fell early and its future was polled late: the first renewal does not wait a whole period more.
#[tokio::test(start_paused = true)]
async fn the_first_renewal_is_counted_from_the_claim() {
    let network = Network::new(5);
    let client = network.client();
    let request = request(&client);
    let mut acquire = Box::pin(request.acquire());
    let polled = std::future::poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx))).await;
    assert!(polled.is_pending(), "the claim is on its way");
    sleep(TTL - DRIFT - millis(100)).await;
    let guard = acquire.await.expect("won long ago");
    assert!(guard.remaining() <= millis(100));
    sleep(millis(200)).await;
    assert!(guard.is_valid() && guard.remaining() >= TTL - DRIFT - millis(200) - 2 * TICK);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_locks_taken_at_once_are_all_renewed_in_time() {
    let network = Network::new(5);
    network.set(0..5, Weather::far(2, 3));
    let client = network.client();
    let names: Vec<String> = (0..1_000).map(|nth| format!("order:{nth}")).collect();
    let guards: Vec<Guard> = join_all(names.iter().map(|name| {
        let request = client.lock(name).ttl(TTL);
        async move { request.acquire().await.expect("free") }
    }))
    .await;
    let acquired = Instant::now();
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        let least = guards.iter().map(Guard::remaining).min().expect("a thousand");
        assert!(least >= TTL - DRIFT - PERIOD - millis(5) - 4 * TICK, "{least:?}");
    }
    assert!(guards.iter().all(|guard| guard.votes() == 5));
    let done = network.done();
    let first: Vec<&Done> =
        done.iter().filter(|done| done.act == Act::Renew && done.sent < acquired + PERIOD + TICK).collect();
    let mut slots = BTreeMap::<Instant, usize>::new();
    first.iter().filter(|done| done.master == 0).for_each(|done| *slots.entry(done.sent).or_default() += 1);
    assert_eq!(slots.values().sum::<usize>(), 1_000, "each once in the first period");
    assert!(slots.len() >= 4, "not all at once: {slots:?}");
    assert!(slots.values().all(|count| *count <= 400), "none by far the fullest: {slots:?}");
    // Sixty seconds are thirty periods, five commands each; the second renewal comes up to three quarters early.
    let renewals = done.iter().filter(|done| done.act == Act::Renew).count();
    assert!((29 * 5_000..=31 * 5_000).contains(&renewals), "{renewals} commands");
    let released = join_all(guards.into_iter().map(Guard::release)).await;
    assert!(released.iter().all(Released::is_freed));
}

/// Locks taken in one instant do not renew in lock step, and yet those due together travel together.
#[tokio::test(start_paused = true)]
async fn locks_taken_at_once_are_spread_over_the_whole_grid() {
    const LOCKS: usize = 3_200;
    let network = Network::new(5);
    let client = network.client();
    let names: Vec<String> = (0..LOCKS).map(|nth| format!("order:{nth}")).collect();
    let guards: Vec<Guard> = join_all(names.iter().map(|name| {
        let request = client.lock(name).ttl(TTL);
        async move { request.acquire().await.expect("free") }
    }))
    .await;
    let acquired = Instant::now();
    // The first renewal is in the last quarter of the first period; from the third period on all are where they stay.
    sleep(10 * PERIOD + TICK).await;
    let slot = PERIOD / SLOTS;
    let done = network.done();
    let early = acquired + PERIOD - 5 * slot;
    assert!(
        done.iter().all(|done| done.act != Act::Renew || done.sent >= early),
        "a short hold costs no renewal"
    );
    let settled = acquired + 3 * PERIOD;
    let periods = 6;
    let mut moments = BTreeMap::<Instant, usize>::new();
    for done in done.iter().filter(|done| done.act == Act::Renew && done.master == 0) {
        if done.sent >= settled && done.sent < settled + periods * PERIOD {
            *moments.entry(done.sent).or_default() += 1;
        }
    }
    assert_eq!(moments.values().sum::<usize>(), LOCKS * periods as usize, "each once a period");
    assert_eq!(moments.len(), (SLOTS * periods) as usize, "on the moments of the grid, and on all of them");
    let (least, most) = (moments.values().min().expect("some"), moments.values().max().expect("some"));
    // A slot's even share is 200; the outer ones get a fifth to a half of it, the twelve in the middle a bit more.
    assert!(*most <= 2 * LOCKS / SLOTS as usize && *least >= 20, "{least} to {most} at once");
    assert!(guards.iter().all(Guard::is_valid));
}

/// Locks taken at any time are renewed on the same few moments of each period, so that they travel together.
#[tokio::test(start_paused = true)]
async fn locks_taken_one_by_one_are_renewed_together() {
    let network = Network::new(5);
    let client = network.client();
    let mut guards = Vec::new();
    for nth in 0..200 {
        guards.push(client.lock(format!("order:{nth}")).ttl(TTL).acquire().await.expect("free"));
        sleep(millis(17)).await;
    }
    let settled = Instant::now() + PERIOD;
    sleep(10 * PERIOD).await;
    let done = network.done();
    let moments: BTreeSet<Instant> = done
        .iter()
        .filter(|done| done.act == Act::Renew && done.sent > settled)
        .map(|done| done.sent)
        .collect();
    // A slot is 125 ms; timers may round its moment up, never to another one.
    let slots: BTreeSet<u128> = moments
        .iter()
        .map(|at| network.moment(*at).as_nanos() as u128 % 2_000_000_000 / 125_000_000)
        .collect();
    assert_eq!(slots.len(), 16, "every slot is used");
    assert!(moments.len() <= 16 * 10, "{} moments in nine periods", moments.len());
    drop(guards);
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_at_the_deadline_however_the_renewals_get_lost() {
    for (what, weather) in [
        ("lost", Weather::LOST),
        ("done and unanswered", Weather::MUTE),
        ("refused", Weather::DOWN),
        ("late by more than the ttl", Weather::far(7_000, 1)),
        ("answered later than the ttl", Weather::far(1, 7_000)),
    ] {
        let network = Network::new(5);
        let client = network.client();
        let guard = request(&client).acquire().await.expect("calm");
        let hold = guard.hold();
        // Two masters that go on confirming do not make a quorum.
        network.set(2..5, weather);
        let end = deadline(&hold);
        sleep_until(end - TICK).await;
        assert!(hold.is_valid(), "{what}");
        assert_eq!(deadline(&hold), end, "{what}: the two confirmations do not move it");
        let (when, lost) = loss_of(&hold).await;
        assert_at(what, when, end);
        assert_eq!(lost.why(), Why::Expired, "{what}");
        assert!(!guard.is_valid() && guard.remaining().is_zero(), "{what}");
        // For good, also when confirmations arrive later.
        network.set(0..5, Weather::CALM);
        sleep(2 * TTL).await;
        assert!(!guard.is_valid() && hold.lost().await == lost, "{what}");
        let again = guard.extend(TTL).await;
        assert!(matches!(again, Err(ExtendError::Lost(_))), "{what}: {again:?}");
        assert_eq!(guard.release().await, Released::AlreadyLost(lost), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_renewal_the_loss_is_told_at_the_deadline_too() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).no_renewal().acquire().await.expect("calm");
    let hold = guard.hold();
    assert_eq!(hold.remaining(), TTL - DRIFT);
    let end = deadline(&hold);
    assert!(timeout(TTL - DRIFT - TICK, hold.at_risk()).await.is_err(), "its end is no surprise");
    let (when, lost) = loss_of(&hold).await;
    assert_at("no renewal", when, end);
    assert_eq!(lost.why(), Why::Expired);
    hold.at_risk().await;
    assert!(network.done().iter().all(|done| done.act == Act::Claim));
}

#[tokio::test(start_paused = true)]
async fn the_risk_is_told_one_period_before_the_loss() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    let hold = guard.hold();
    // While renewals succeed there is none.
    assert!(timeout(10 * TTL, hold.at_risk()).await.is_err());
    assert_eq!(events.at("at risk"), []);
    network.set(0..3, Weather::LOST);
    let end = deadline(&hold);
    hold.at_risk().await;
    assert_at("at_risk()", Instant::now(), end - PERIOD);
    assert!(hold.is_valid());
    let (when, _) = loss_of(&hold).await;
    assert_at("lost()", when, end);
    hold.at_risk().await;
    let told = events.at("at risk");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_at("the event", told[0], end - PERIOD);
    assert_eq!(events.at("lost").len(), 1);
    // The retries went between the slots: every quarter of the period or more often.
    let tries = events.at("renewal not confirmed");
    assert!(tries.windows(2).all(|pair| pair[1] - pair[0] <= millis(502)), "{tries:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_at_risk_recovers() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    let hold = guard.hold();
    for nth in 1..=3 {
        network.set(1..5, Weather::LOST);
        let end = deadline(&hold);
        hold.at_risk().await;
        sleep(2 * TICK).await;
        assert_eq!(events.at("at risk").len(), nth);
        sleep_until(end - millis(600)).await;
        network.set(1..5, Weather::CALM);
        sleep_until(end + TICK).await;
        assert!(hold.is_valid() && hold.remaining() > TTL - DRIFT - PERIOD, "a retry came in time");
        assert_eq!(events.at("renewed again").len(), nth);
        assert!(timeout(2 * TTL, hold.at_risk()).await.is_err());
    }
    assert_eq!(events.at("lost"), []);
    assert!(guard.release().await.is_freed());
}

/// One master after the other confirms, never three at once: no round has its quorum, the deadline moves all the
/// same, and each time it comes near the risk is told.
#[tokio::test(start_paused = true)]
async fn every_risk_is_told_also_without_a_whole_round_between() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let period = Duration::from_secs(10);
    let guard = request(&client).ttl(3 * period).acquire().await.expect("calm");
    let hold = guard.hold();
    network.set(0..5, Weather::LOST);
    for _ in 0..3 {
        let end = deadline(&hold);
        hold.at_risk().await;
        assert_at("at_risk()", Instant::now(), end - period);
        sleep(2 * TICK).await;
        let told = events.at("at risk").last().copied().expect("told");
        assert_at("the event", told, end - period);
        for master in 0..3 {
            network.set([master], Weather::CALM);
            sleep(millis(1_200)).await;
            network.set([master], Weather::LOST);
        }
        assert!(hold.is_valid() && deadline(&hold) > end + period, "three in three tries");
    }
    let end = deadline(&hold);
    let (when, _) = loss_of(&hold).await;
    assert_at("lost()", when, end);
}

#[tokio::test(start_paused = true)]
async fn the_longest_hold_ends_it() {
    let network = Network::new(5);
    let client = network.client();
    let longest = Duration::from_secs(60);
    let guard = request(&client).max_hold(longest).acquire().await.expect("calm");
    let (hold, end) = (guard.hold(), Instant::now() + longest);
    sleep_until(end - TICK).await;
    assert!(hold.is_valid() && hold.remaining() <= TICK);
    let (when, lost) = loss_of(&hold).await;
    assert_at("max_hold", when, end);
    assert_eq!(lost.why(), Why::MaxHold);
    let held = guard.extend(TTL).await;
    assert!(matches!(held, Err(ExtendError::Lost(_))));
    // Nothing renews it any more; given back, the keys go at once.
    assert_eq!(network.keys_of(RESOURCE).len(), 5);
    assert_eq!(guard.release().await, Released::AlreadyLost(lost));
    sleep(TICK).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE);
    // Shorter than the ttl is as good.
    let guard = request(&client).max_hold(millis(250)).acquire().await.expect("calm");
    assert_eq!(guard.remaining(), millis(250));
    // Work under it is cancelled then.
    drop(guard);
    let began = Instant::now();
    let work = request(&client).max_hold(millis(300)).using(async |_| sleep(TTL).await).await;
    assert!(matches!(work, Err(UsingError::Cancelled(ref lost)) if lost.why() == Why::MaxHold), "{work:?}");
    assert_at("the work", Instant::now(), began + millis(300));
}

/// Case B19: the machine slept. Its clock and the masters' went on, its timers did not.
#[tokio::test(start_paused = true)]
async fn after_a_suspension_the_first_look_says_lost() {
    let network = Network::new(5);
    let client = network.client();
    let guards = [request(&client).acquire().await.expect("calm"), {
        let request = client.lock("order:2").ttl(TTL).no_renewal();
        request.acquire().await.expect("calm")
    }];
    let holds: Vec<Hold> = guards.iter().map(Guard::hold).collect();
    sleep(millis(10)).await;
    let before = network.done().len();
    network.suspend(TTL + Duration::from_secs(1));
    // Before any task has had its turn.
    assert!(holds.iter().all(|hold| !hold.is_valid() && hold.remaining().is_zero()));
    // Somebody else took it meanwhile.
    network.lock_by_another(RESOURCE, Some(TTL));
    for hold in &holds {
        let woken = Instant::now();
        let (when, lost) = loss_of(hold).await;
        assert!(when - woken <= 2 * TICK, "asked anew, it says so at once");
        assert_eq!(lost.why(), Why::Expired);
    }
    sleep(2 * TTL - millis(500)).await;
    assert_eq!(network.done().len(), before, "the other's keys are left alone");
    for guard in guards {
        assert!(matches!(guard.release().await, Released::AlreadyLost(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_loss_learns_of_a_suspension_within_a_second() {
    for asleep in [TTL + Duration::from_secs(1), Duration::from_secs(3_600)] {
        let events = Events::start();
        let network = Network::new(5);
        let client = network.client();
        let guard = request(&client).acquire().await.expect("calm");
        let hold = guard.hold();
        let waiting = async { loss_of(&hold).await };
        let asleep = async {
            sleep(millis(10)).await;
            network.suspend(asleep);
            Instant::now()
        };
        let ((when, lost), woken) = tokio::join!(waiting, asleep);
        assert!(when - woken <= Duration::from_secs(1) + 2 * TICK, "{:?}", when - woken);
        assert_eq!(lost.why(), Why::Expired);
        assert_eq!(events.at("lost").len(), 1);
        assert!(network.done().iter().all(|done| done.act == Act::Claim), "not renewed after it was over");
    }
}

/// A sleep shorter than the validity costs nothing; slots missed meanwhile are skipped, not made up for.
#[tokio::test(start_paused = true)]
async fn a_short_suspension_is_survived() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    sleep(millis(10)).await;
    network.suspend(Duration::from_secs(4));
    assert!(guard.is_valid());
    sleep(millis(995)).await;
    assert_eq!(renewals(&network.done()).len(), 1, "within a second, and once");
    assert!(guard.is_valid() && guard.remaining() > TTL - DRIFT - Duration::from_secs(1));
    sleep(10 * PERIOD).await;
    assert!((10..=12).contains(&renewals(&network.done()).len()));
    assert!(guard.release().await.is_freed());
}

/// What the clock shows does not matter, only how it goes on: the wall clock is never asked.
#[tokio::test(start_paused = true)]
async fn the_time_of_day_does_not_matter() {
    let mut traces = Vec::new();
    for origin in [0, 4_000_000_000, 1 << 40, 1 << 62] {
        let network = Network::new(5).at(Moment::from_nanos(origin));
        let began = Instant::now();
        let client = network.client();
        let guard = request(&client).acquire().await.expect("calm");
        sleep(5 * PERIOD).await;
        network.set(0..3, Weather::LOST);
        let (when, _) = loss_of(&guard.hold()).await;
        drop(guard);
        let count = |act| network.done().iter().filter(|done| done.act == act).count();
        traces.push((when - began, count(Act::Claim), count(Act::Release)));
    }
    // Renewals fall on a grid of the clock, so the moment of the last one may differ by a few slots.
    let first = traces[0];
    for trace in &traces {
        assert!(trace.0.abs_diff(first.0) <= PERIOD / 3, "{traces:?}");
        assert_eq!((trace.1, trace.2), (first.1, first.2), "{traces:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_master_that_forgot_gets_the_key_again() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    sleep(TICK).await;
    assert_eq!(guard.votes(), 5);
    for nth in 0..4 {
        network.master(nth).forget();
        network.master((nth + 1) % 5).forget();
        sleep(PERIOD + TICK).await;
        assert_eq!(network.keys_of(RESOURCE), [0, 1, 2, 3, 4], "with the next renewal");
        assert_eq!(guard.votes(), 3, "created anew they do not count yet");
        sleep(PERIOD + TICK).await;
        assert_eq!(guard.votes(), 5, "confirmed by the one after it");
    }
    assert!(guard.is_valid());
    assert_eq!((events.at("a master lost the key").len(), events.at("key created anew").len()), (8, 8));
    assert!(guard.release().await.is_freed());
}

/// With a short ttl the answers of far masters come after the time of the first retry. Their confirmations count all
/// the same: nothing is asked twice, nothing is warned of, keys are healed, extensions succeed.
#[tokio::test(start_paused = true)]
async fn far_masters_confirm_in_their_own_time() {
    let ttl = Duration::from_secs(1);
    for far in [Weather::far(60, 60), Weather::far(100, 150), Weather::far(200, 200)] {
        let events = Events::start();
        let network = Network::new(5);
        network.set(0..3, far);
        let client = network.client();
        let guard = request(&client).ttl(ttl).acquire().await.expect("calm");
        sleep(millis(500)).await;
        for master in [0, 4] {
            network.master(master).forget();
            sleep(5 * ttl).await;
            assert_eq!(guard.votes(), 5, "healed {far:?} {master}");
            guard.extend(ttl).await.expect("confirmed");
        }
        assert_eq!(events.at("renewal not confirmed"), []);
        let renewals =
            network.done().iter().filter(|done| done.act == Act::Renew && done.master == 4).count();
        // Two of them are extensions, and the second renewal is early.
        assert!(renewals <= 3 * 11 + 3, "{renewals} renewals in eleven seconds");
        assert!(guard.release().await.is_freed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_master_that_was_down_gets_the_key_when_it_is_back() {
    let network = Network::new(5);
    network.set(3..5, Weather::DOWN);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("three are enough");
    sleep(3 * PERIOD).await;
    assert_eq!((guard.votes(), network.keys_of(RESOURCE)), (3, vec![0, 1, 2]));
    network.set(3..5, Weather::CALM);
    network.reconnect(3, false);
    network.reconnect(4, true);
    sleep(2 * PERIOD + TICK).await;
    assert_eq!((guard.votes(), network.keys_of(RESOURCE)), (5, vec![0, 1, 2, 3, 4]));
    assert!(guard.release().await.is_freed());
}

/// A master that restarted with an empty memory does not vote for us any more, from the moment it is known.
#[tokio::test(start_paused = true)]
async fn a_restart_seen_takes_the_vote_at_once() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    let hold = guard.hold();
    sleep(millis(100)).await;
    for (master, votes) in [(0, 4), (1, 3)] {
        network.master(master).forget();
        network.reconnect(master, true);
        assert_eq!((guard.votes(), guard.is_valid()), (votes, true));
    }
    network.master(2).forget();
    network.reconnect(2, true);
    assert!(!guard.is_valid(), "two are no quorum");
    let (when, lost) = loss_of(&hold).await;
    assert_at("the third restart", when, Instant::now());
    assert_eq!(lost.why(), Why::Vanished);
    // Nothing of it comes back.
    sleep(2 * PERIOD).await;
    assert_eq!(renewals(&network.done()).len(), 0);
    drop(guard);
    sleep(TICK).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE);
}

/// Also not for a claim that is still under way, nor for a lock taken over from another process.
#[tokio::test(start_paused = true)]
async fn a_restart_seen_takes_the_vote_from_a_claim_and_from_an_adopted_lock() {
    let network = Network::new(5);
    network.set([2], Weather::far(50, 50));
    network.set([3, 4], Weather::DOWN);
    let client = network.client();
    let restart = async {
        sleep(millis(20)).await;
        network.reconnect(0, true);
    };
    let request = request(&client);
    let (claimed, ()) = tokio::join!(request.try_acquire(), restart);
    assert!(matches!(claimed, Err(AcquireError::NoQuorum(_))), "two masters of five are left: {claimed:?}");
    sleep(millis(200)).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE);

    let holder = request.try_acquire().await.expect("three of five").abandon();
    let adopted = client.extend_as(RESOURCE, &holder, TTL).await.expect("three of five");
    network.reconnect(0, true);
    assert!(!adopted.is_valid(), "two masters of five stand behind it");
}

#[tokio::test(start_paused = true)]
async fn a_lock_deleted_by_hand_is_lost_with_the_next_renewal() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    let end = deadline(&guard.hold());
    (0..3).for_each(|master| network.master(master).delete(RESOURCE.as_bytes()));
    let (when, lost) = loss_of(&guard.hold()).await;
    assert_eq!(lost.why(), Why::Vanished);
    assert!(when < end - PERIOD, "long before the deadline");
    sleep(TTL).await;
    assert_eq!(network.keys_of(RESOURCE), NOWHERE, "not healed, and the rest expired");
    drop(guard);
}

/// Another's key in place of ours is never renewed, healed or deleted.
#[tokio::test(start_paused = true)]
async fn anothers_keys_are_left_alone() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    sleep(TICK).await;
    let now = network.now();
    (0..2).for_each(|master| network.master(master).set(RESOURCE, "web-9:1/other", None, now));
    network.master(2).set_other_type("order:2");
    sleep(5 * PERIOD).await;
    assert_eq!((guard.votes(), guard.is_valid()), (3, true));
    assert!(guard.release().await.is_freed());
    sleep(TICK).await;
    assert_eq!(network.keys_of(RESOURCE), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_renewed_once_the_holder_is_done() {
    type End = fn(Guard) -> futures::future::BoxFuture<'static, ()>;
    let ends: [(&str, usize, End); 4] = [
        ("release", 0, |guard| Box::pin(async { assert!(guard.release().await.is_freed()) })),
        ("drop", 0, |guard| Box::pin(async { drop(guard) })),
        ("abandon", 5, |guard| Box::pin(async { drop(guard.abandon()) })),
        ("a late renewal", 0, |guard| {
            Box::pin(async {
                let _ = network::polled(guard.extend(TTL), 1).await;
                drop(guard);
            })
        }),
    ];
    for (what, left, end) in ends {
        let network = Network::new(5);
        network.set(0..5, Weather::far(20, 20));
        let client = network.client();
        let guard = request(&client).acquire().await.expect("calm");
        sleep(3 * PERIOD + millis(700)).await;
        end(guard).await;
        let ended = Instant::now();
        sleep(millis(25)).await;
        assert_eq!(network.keys_of(RESOURCE).len(), left, "{what}");
        sleep(3 * TTL).await;
        assert_eq!(network.keys_of(RESOURCE), NOWHERE, "{what}");
        let late: Vec<Done> = network.done().into_iter().filter(|done| done.sent > ended).collect();
        assert_eq!(late, [], "{what}");
    }
}

/// An extension only raises, and later renewals keep the new ttl.
#[tokio::test(start_paused = true)]
async fn renewals_keep_the_ttl_of_the_last_extension() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request(&client).acquire().await.expect("calm");
    guard.extend(Duration::from_secs(40)).await.expect("confirmed");
    assert_eq!(guard.remaining(), Duration::from_secs(40) - millis(402));
    guard.extend(TTL).await.expect("confirmed");
    assert_eq!(guard.remaining(), Duration::from_secs(40) - millis(402), "never lowered");
    guard.extend(Duration::from_secs(20)).await.expect("confirmed");
    sleep(Duration::from_secs(60)).await;
    assert!(guard.remaining() > Duration::from_secs(20) - millis(202) - PERIOD - 2 * TICK);
    let too_long = guard.extend(Policy::new().max_ttl() + TICK).await;
    assert!(matches!(too_long, Err(ExtendError::Request(_))));
    assert!(guard.is_valid());
}

/// Thousands of deletes take their turns; what counts when the client closes is whether they were done.
#[tokio::test(start_paused = true)]
async fn a_delete_that_comes_late_counts_when_the_client_closes() {
    for (weather, released) in [(Weather::far(300, 300), 1), (Weather::LOST, 0)] {
        let network = Network::new(5);
        let client = network.client();
        let guard = request(&client).acquire().await.expect("calm");
        network.set(0..3, weather);
        let report = client.close().await;
        assert_eq!(
            (report.released, report.lingering, report.lost),
            (released, 1 - released, 0),
            "{weather:?}"
        );
        drop(guard);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_without_a_bound_is_told_of_each_hour() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let hour = Duration::from_secs(3_600);
    let text = "no max_hold bounds it";
    let guard = client.lock(RESOURCE).acquire().await.expect("calm");
    let began = Instant::now();
    let bounded = client.lock("order:2").max_hold(5 * hour).acquire().await.expect("calm");
    sleep(4 * hour + millis(100)).await;
    let told = events.at(text);
    assert_eq!(told.len(), 4, "{told:?}");
    for (nth, told) in (1..).zip(&told) {
        assert_at("the reminder", *told, began + nth * hour);
    }
    assert!(guard.release().await.is_freed());
    drop(bounded);
    sleep(2 * hour).await;
    assert_eq!(events.at(text).len(), 4, "nothing is held");
    // Also between renewals that are rarer; and a machine that slept is reminded once, not once an hour slept.
    let client = Network::new(5);
    let slept = client.clone();
    let client = client.client_with(Policy::new().with_max_ttl(24 * hour));
    let guard = client.lock(RESOURCE).ttl(24 * hour).acquire().await.expect("calm");
    let unrenewed = client.lock("order:2").ttl(24 * hour).no_renewal().acquire().await.expect("calm");
    sleep(2 * hour + millis(100)).await;
    assert_eq!(events.at(text).len(), 6);
    slept.suspend(3 * hour);
    sleep(millis(1_100)).await;
    assert_eq!(events.at(text).len(), 7);
    sleep(hour - millis(900)).await;
    assert_eq!(events.at(text).len(), 8);
    assert!(guard.is_valid() && unrenewed.is_valid());
}

/// Case B95: what befalls many at once is no flood.
#[tokio::test(start_paused = true)]
async fn of_many_that_are_lost_at_once_a_hundred_are_named_and_the_others_counted() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let names: Vec<String> = (0..250).map(|nth| format!("order:{nth}")).collect();
    let take = || async {
        join_all(names.iter().map(|name| {
            let request = client.lock(name).ttl(TTL);
            async move { request.acquire().await.expect("free") }
        }))
        .await
    };
    let guards = take().await;
    network.set(0..5, Weather::LOST);
    join_all(guards.iter().map(Guard::lost)).await;
    let lost = Instant::now();
    assert_eq!((events.of(Level::ERROR, "lost"), events.of(Level::DEBUG, "lost")), (100, 150));
    assert_eq!(
        events.of(Level::ERROR, "lost: more locks than were named"),
        0,
        "that they are all is not known yet"
    );
    // Nothing else is due for the keeper, which sums up all the same.
    drop(guards);
    sleep(Duration::from_secs(11)).await;
    let sums = events.at("lost: more locks than were named");
    assert!(
        sums.len() == 1 && sums[0] <= lost + Duration::from_secs(10) + 2 * TICK,
        "{sums:?} after {lost:?}"
    );
    assert_eq!(events.more(), [(Level::ERROR, 150), (Level::WARN, 150)], "lost, and at risk before");
    // Then they are named again.
    network.set(0..5, Weather::CALM);
    sleep(Duration::from_secs(60)).await;
    let guards = take().await;
    network.set(0..5, Weather::LOST);
    join_all(guards.iter().map(Guard::lost)).await;
    assert_eq!(events.of(Level::ERROR, "lost"), 200);
}

/// The keeper, which has nothing to look after, is woken to sum up what others noticed.
#[tokio::test(start_paused = true)]
async fn losses_that_the_keeper_had_no_part_in_are_summed_up_too() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let mut guards = Vec::new();
    for nth in 0..150 {
        let name = format!("order:{nth}");
        let holder = client.lock(&name).ttl(TTL).acquire().await.expect("free").abandon();
        guards.push(client.extend_as(&name, &holder, TTL).await.expect("ours"));
    }
    join_all(guards.iter().map(Guard::lost)).await;
    let lost = Instant::now();
    assert_eq!((events.of(Level::ERROR, "lost"), events.of(Level::DEBUG, "lost")), (100, 50));
    sleep(Duration::from_secs(60)).await;
    let sums = events.at("lost: more locks than were named");
    assert!(
        sums.len() == 1 && sums[0] <= lost + Duration::from_secs(10) + 2 * TICK,
        "{sums:?} after {lost:?}"
    );
    assert_eq!(events.more(), [(Level::ERROR, 50)]);
    drop(guards);
}

/// What was logged, and when.
struct Events {
    told: Arc<Mutex<Vec<Told>>>,
    _on_this_thread: tracing::subscriber::DefaultGuard,
}

struct Told {
    when: Instant,
    level: Level,
    message: String,
    /// How many were summed up.
    more: Option<u64>,
}

impl Events {
    fn start() -> Self {
        let told = Arc::<Mutex<Vec<Told>>>::default();
        let ear = Ear { told: told.clone() };
        Self { told, _on_this_thread: tracing::subscriber::set_default(ear) }
    }

    /// When something of this wording was told.
    fn at(&self, wording: &str) -> Vec<Instant> {
        let is_meant = |message: &str| message.starts_with(wording) || message.ends_with(wording);
        locked(&self.told).iter().filter(|told| is_meant(&told.message)).map(|told| told.when).collect()
    }

    /// How often just this was told.
    fn of(&self, level: Level, message: &str) -> usize {
        locked(&self.told).iter().filter(|told| told.level == level && told.message == message).count()
    }

    /// The sums, in order.
    fn more(&self) -> Vec<(Level, u64)> {
        locked(&self.told).iter().filter_map(|told| Some((told.level, told.more?))).collect()
    }
}

struct Ear {
    told: Arc<Mutex<Vec<Told>>>,
}

impl tracing::field::Visit for Told {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "more" => self.more = format!("{value:?}").parse().ok(),
            _ => {}
        }
    }
}

impl tracing::Subscriber for Ear {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("quorlock")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let (when, level) = (Instant::now(), *event.metadata().level());
        let mut told = Told { when, level, message: String::new(), more: None };
        event.record(&mut told);
        locked(&self.told).push(told);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// One command a master renews all keys of a lock on several resources, and all of them keep the same ttl.
#[tokio::test(start_paused = true)]
async fn several_resources_are_renewed_as_one() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request_of_three(&client).acquire().await.expect("calm");
    sleep(10 * TTL).await;
    assert!(guard.is_valid());
    let done = network.done();
    let renewals = renewals(&done);
    assert!((29..=31).contains(&renewals.len()), "{} renewals", renewals.len());
    assert_eq!(done.len(), 5 + 5 * renewals.len(), "one command a master each time, and one claim");
    for master in 0..5 {
        let left = THREE.map(|key| network.master(master).remaining(key.as_bytes(), network.now()));
        assert!(left[0].is_some() && left == [left[0]; 3], "{left:?}");
    }
    assert!(guard.release().await.is_freed());
    sleep(TICK).await;
    assert_eq!(network.occupied(), NOWHERE);
}

/// A master that lost one of the keys has lost its vote, gets the key again, and votes again.
#[tokio::test(start_paused = true)]
async fn a_key_of_several_that_a_minority_lost_is_created_anew() {
    let events = Events::start();
    let network = Network::new(5);
    let client = network.client();
    let guard = request_of_three(&client).acquire().await.expect("calm");
    for (master, key) in [(0, THREE[0]), (1, THREE[2])] {
        network.master(master).delete(key.as_bytes());
    }
    sleep(PERIOD + 2 * TICK).await;
    assert_eq!((guard.votes(), events.at("key created anew").len()), (3, 2), "counts from the next round on");
    assert!(THREE.iter().all(|key| network.keys_of(key).len() == 5));
    sleep(PERIOD).await;
    assert_eq!(guard.votes(), 5);
    // As long as w masters have all keys, the others may lose any.
    for _ in 0..20 {
        network.master(2).delete(THREE[1].as_bytes());
        network.master(4).forget();
        sleep(2 * PERIOD + TICK).await;
        assert!(guard.is_valid() && guard.votes() == 5);
    }
    assert!(guard.release().await.is_freed());
    sleep(TICK).await;
    assert_eq!(network.occupied(), NOWHERE);
}

/// Without one of the keys on so many masters that no quorum has all, the lock on all of them is over; what is left of
/// it goes when the guard does, also on masters that had said that a key was missing.
#[tokio::test(start_paused = true)]
async fn several_resources_are_lost_with_one_of_them() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request_of_three(&client).acquire().await.expect("calm");
    let acquired = Instant::now();
    for (master, key) in [(0, THREE[0]), (1, THREE[1]), (3, THREE[2])] {
        network.master(master).delete(key.as_bytes());
    }
    let (when, lost) = loss_of(&guard.hold()).await;
    assert_eq!(lost.why(), Why::Vanished);
    assert!(when <= acquired + PERIOD + 2 * TICK, "told with the first renewal");
    assert!(THREE.iter().all(|key| lost.to_string().contains(key)), "{lost}");
    let rest = |master| THREE.map(|key| network.keys_of(key).contains(&master));
    assert_eq!(rest(0), [false, true, true], "no failed renewal releases");
    assert_eq!(rest(1), [true, false, true]);
    assert_eq!(guard.release().await, Released::AlreadyLost(lost));
    sleep(TICK).await;
    assert_eq!(network.occupied(), NOWHERE);
}

#[tokio::test(start_paused = true)]
async fn anothers_key_among_several_is_left_alone() {
    let network = Network::new(5);
    let client = network.client();
    let guard = request_of_three(&client).acquire().await.expect("calm");
    let ours = guard.holder().as_bytes().to_vec();
    let value = |master, key: &str| network.master(master).value(key.as_bytes(), network.now());
    for master in [1, 3] {
        network.master(master).set(THREE[1], "web-9:1/other", None, network.now());
        network.master(master).delete(THREE[2].as_bytes());
    }
    sleep(10 * TTL).await;
    assert!(guard.is_valid() && guard.votes() == 3);
    for master in [1, 3] {
        assert!(value(master, THREE[1]).is_some_and(|value| value != ours));
        // Where one is another's, none is created anew, and the time of the rest ran out.
        assert_eq!((value(master, THREE[0]), value(master, THREE[2])), (None, None));
    }
    assert!(guard.release().await.is_freed());
    sleep(TICK).await;
    assert_eq!((network.keys_of(THREE[1]), network.occupied()), (vec![1, 3], vec![1, 3]));
}
