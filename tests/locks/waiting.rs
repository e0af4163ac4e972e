//! Waiting: the line within a client, and being told by the masters (rule 16).
//!
//! Clients here pause for seconds between claims unless a test says otherwise, so that whoever gets a lock sooner was
//! told of it, or stood behind its own client's lock.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use quorlock::{AcquireError, Guard, LockRequest, Policy, Redlock};
use tokio::task::{JoinHandle, JoinSet};

use crate::fleet::{
    Fleet, Lock, Monitor, SOON, client, contended, eventually, ms, no_quorum, pause, policy, run, timed,
    voters,
};
use crate::proxy::Paths;
use crate::secrets::log;

/// Less than the shortest pause of [`patient`], so that nobody gets a lock in this by asking again.
const TOLD: Duration = ms(4_000);

/// The shortest pause between claims is 5 s.
const fn patient() -> Policy {
    policy().with_backoff(ms(20_000), ms(20_000))
}

const fn eager() -> Policy {
    policy().with_backoff(ms(20), ms(100))
}

type Acquiring = JoinHandle<Result<Guard, AcquireError>>;

fn waiter(client: &Redlock, resource: &str) -> Acquiring {
    spawn(client.on(resource).wait(ms(30_000)))
}

fn spawn(request: LockRequest) -> Acquiring {
    tokio::spawn(async move { request.acquire().await })
}

/// Held on all masters, so that nobody gets some of them meanwhile.
async fn hold(fleet: &Fleet, client: &Redlock, resource: &str) -> Guard {
    let guard = client.on(resource).acquire().await.unwrap();
    eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
    guard
}

/// How many keys each master is to tell of.
fn watched(fleet: &Fleet) -> Vec<u64> {
    (0..5).map(|index| fleet.stat(index, "tracking_total_keys")).collect()
}

/// Until as many masters as are needed are to tell somebody of a key.
async fn somebody_waits(fleet: &Fleet) {
    let telling = || watched(fleet).iter().filter(|keys| **keys > 0).count();
    eventually("a waiter", SOON, || telling() >= 3).await;
}

/// It has the lock, and got it without asking again after a pause.
async fn told(acquiring: Acquiring) -> Guard {
    let (guard, took) = timed(acquiring).await;
    println!("told after {took:?}");
    assert!(took < TOLD, "only after {took:?}");
    guard.unwrap().unwrap()
}

/// SETs on the key, plain ones and those in scripts.
async fn claims(monitor: &mut Monitor<'_>, key: &str) -> usize {
    pause(ms(30)).await;
    monitor.commands().iter().filter(|heard| heard.is("SET") && heard.names(key)).count()
}

// B57: 300 rounds there; each of these would take seconds without being told
#[test]
fn a_waiter_is_told_of_a_release_by_another_client() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, other) = (fleet.client().await, fleet.client().await);
        for round in 0..20 {
            let key = format!("r{round}");
            let guard = hold(&fleet, &holder, &key).await;
            let waits = waiter(&other, &key);
            somebody_waits(&fleet).await;
            assert!(!waits.is_finished());
            assert!(guard.release().await.is_freed());
            let _ = told(waits).await.release().await;
        }
        fleet.nothing_left(SOON).await;
    });
}

// B57: the holder is killed, and the key goes by its ttl
#[test]
fn a_waiter_knows_when_the_key_of_a_dead_holder_expires() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        for index in 0..5 {
            assert!(fleet.ask(index, &["SET", "r", "dead", "PX", "1500"]).is_ok());
        }
        let (guard, took) = timed(fleet.client().await.on("r").wait(ms(30_000)).acquire()).await;
        assert!(took < TOLD, "{took:?}");
        drop(guard.unwrap());
    });
}

// Rule 16: the release falls between the refusal of the plain claim and the first one that asks to be told
#[test]
fn a_release_before_a_waiter_asked_to_be_told_is_not_missed() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        fleet.occupy(0..5, "r");
        let mut monitor = Monitor::on(&fleet[0]);
        paths.0.iter().for_each(|path| path.delay_replies(ms(150)));
        let waits = waiter(&client, "r");
        let mut claimed = 0;
        eventually("the plain claim", SOON, || {
            claimed += monitor.commands().iter().filter(|heard| heard.is("SET")).count();
            claimed > 0
        })
        .await;
        fleet.tell(0..5, &["SET", "r", "x", "PX", "1"]);
        drop(told(waits).await);
    });
}

// Two claims that go halves while a master is down leave no quorum to either
#[test]
fn a_waiter_is_told_when_a_dead_master_and_two_busy_ones_left_it_no_quorum() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        fleet.occupy([1, 2], "r");
        fleet.kill([0]);
        voters(&client, 4).await;
        let refused = no_quorum(client.on("r").try_acquire().await.unwrap_err());
        assert_eq!(refused.tally().held().len(), 2);
        let waits = waiter(&client, "r");
        let telling = || (1..3).any(|index| fleet.stat(index, "tracking_total_keys") > 0);
        eventually("a waiter", TOLD, telling).await;
        (1..3).for_each(|index| drop(fleet.ask(index, &["DEL", "r"])));
        drop(told(waits).await);
    });
}

// Rule 16: a renewal changes the key too
#[test]
fn a_holders_renewals_wake_a_waiter_that_then_waits_on() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, other) = (fleet.client().await, fleet.client().await);
        let guard = holder.on("r").ttl(ms(1_500)).acquire().await.unwrap();
        let mut monitor = Monitor::on(&fleet[0]);
        let waits = waiter(&other, "r");
        // Renewed every half a second.
        pause(ms(2_600)).await;
        assert!(guard.is_valid() && !waits.is_finished());
        let claims = claims(&mut monitor, "r").await;
        assert!((3..=24).contains(&claims), "{claims} claims for five renewals");
        assert!(guard.release().await.is_freed());
        drop(told(waits).await);
    });
}

// Rule 16: what this client changes itself is told to it as well
#[test]
fn a_waiter_behind_its_own_clients_lock_asks_nobody_and_follows_its_release() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        for renewed in [false, true] {
            let request = client.on("r").ttl(ms(1_500));
            let guard = if renewed { request } else { request.no_renewal().ttl(ms(15_000)) };
            let guard = guard.acquire().await.unwrap();
            eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
            let mut monitor = Monitor::on(&fleet[0]);
            let waits = waiter(&client, "r");
            pause(ms(1_700)).await;
            assert_eq!(claims(&mut monitor, "r").await, 0, "claims on a lock this client has");
            assert!(guard.release().await.is_freed());
            let next = told(waits).await;
            eventually("five keys", SOON, || fleet.backing(&next) == 5).await;
            assert!(next.release().await.is_freed());
            assert_eq!(claims(&mut monitor, "r").await, 1);
        }
    });
}

// A lock that goes round within one client is never seen free by another
#[test]
fn a_client_that_has_waiters_at_all_times_lets_another_have_the_lock() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (busy, other) = (fleet.client().await, fleet.client().await);
        let turns = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            let (busy, turns) = (busy.clone(), turns.clone());
            tasks.spawn(async move {
                loop {
                    let guard = busy.on("r").wait(ms(30_000)).acquire().await.unwrap();
                    turns.fetch_add(1, Ordering::Relaxed);
                    pause(ms(2)).await;
                    assert!(guard.release().await.is_freed());
                }
            });
        }
        for _ in 0..5 {
            let before = turns.load(Ordering::Relaxed);
            let guard = told(waiter(&other, "r")).await;
            let during = turns.load(Ordering::Relaxed) - before;
            println!("after {during} turns of the others");
            let _ = guard.release().await;
            eventually("their turn", SOON, || turns.load(Ordering::Relaxed) > before + during + 4).await;
        }
        tasks.shutdown().await;
    });
}

/// One thread: what happens between two polls of a task is certain.
fn run_in_one_thread(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

// The same, as each master sees it
#[test]
fn a_lock_goes_from_hand_to_hand_in_one_call_a_master() {
    run_in_one_thread(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        let mut monitors: Vec<_> = (0..5).map(|master| Monitor::on(&fleet[master])).collect();
        for key in ["a", "b", "c"] {
            let guard = hold(&fleet, &client, key).await;
            monitors.iter_mut().for_each(|monitor| drop(monitor.commands()));
            let waits = waiter(&client, key);
            pause(ms(50)).await;
            let gives = tokio::spawn(guard.release());
            let guard = told(waits).await;
            assert!(gives.await.unwrap().is_freed());
            pause(ms(50)).await;
            for monitor in &mut monitors {
                let heard = monitor.commands();
                let asked: Vec<_> =
                    heard.iter().filter(|heard| !heard.in_script && heard.names(key)).collect();
                assert!(asked.len() == 1 && asked[0].is("EVALSHA"), "{asked:?}");
            }
            assert_eq!(fleet.backing(&guard), 5);
            assert!(guard.release().await.is_freed());
        }
    });
}

// Neither the releasing future nor the waiter is there any more to send off what was handed over
#[test]
fn a_release_dropped_while_it_waits_for_the_next_claim_is_sent_all_the_same() {
    run_in_one_thread(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        let guard = hold(&fleet, &client, "r").await;
        let waits = waiter(&client, "r");
        pause(ms(50)).await;
        {
            let mut release = pin!(guard.release());
            let once = poll_fn(|cx| Poll::Ready(release.as_mut().poll(cx).is_pending())).await;
            assert!(once, "it waits for the answers");
            waits.abort();
        }
        assert!(waits.await.unwrap_err().is_cancelled());
        eventually("no key", SOON, || fleet.occupied("r") == 0).await;
    });
}

// The other ways in which a lock of the same client ends
#[test]
fn a_waiter_follows_its_own_clients_lock_however_that_ends() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        // Dropped.
        let guard = client.on("dropped").acquire().await.unwrap();
        let waits = waiter(&client, "dropped");
        pause(ms(50)).await;
        drop(guard);
        drop(told(waits).await);
        // Lost: its key expires.
        let guard = client.on("lost").ttl(ms(1_000)).no_renewal().acquire().await.unwrap();
        let next = told(waiter(&client, "lost")).await;
        assert!(!guard.is_valid() && next.is_valid());
        // Left to another process, and given back in its name.
        let guard = client.on("left").acquire().await.unwrap();
        let waits = waiter(&client, "left");
        pause(ms(50)).await;
        let holder = guard.abandon();
        somebody_waits(&fleet).await;
        pause(ms(100)).await;
        assert!(!waits.is_finished());
        assert!(client.release_as("left", &holder).await.unwrap().is_freed());
        drop(told(waits).await);
    });
}

// Rule 16
#[test]
fn masters_that_die_between_claim_and_release_hold_up_no_waiter() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, other) = (fleet.client().await, fleet.client().await);
        let guard = hold(&fleet, &holder, "r").await;
        let waits = waiter(&other, "r");
        somebody_waits(&fleet).await;
        // One that was to tell, and one that was not.
        let (telling, others): (Vec<_>, Vec<_>) =
            watched(&fleet).into_iter().enumerate().partition(|(_, keys)| *keys > 0);
        fleet.kill([telling[0].0, others[0].0]);
        pause(ms(100)).await;
        assert!(guard.release().await.is_freed());
        let guard = told(waits).await;
        assert_eq!(fleet.backing(&guard), 3);
    });
}

// Rule 16: what a connection was to be told is lost with it
#[test]
fn a_waiter_is_told_on_the_next_connection_too() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, other) = (fleet.client().await, fleet.client().await);
        let guard = hold(&fleet, &holder, "r").await;
        let waits = waiter(&other, "r");
        somebody_waits(&fleet).await;
        fleet.hang_up(0..5);
        somebody_waits(&fleet).await;
        pause(ms(300)).await;
        assert!(!waits.is_finished());
        assert!(guard.release().await.is_freed());
        drop(told(waits).await);
    });
}

// B69 of keys: pitfall 3
#[test]
fn a_key_without_a_ttl_is_told_of_and_asked_for_no_oftener_than_the_back_off_says() {
    run(async {
        let fleet = Fleet::with(eager()).await;
        let client = fleet.client().await;
        let mark = log().len();
        fleet.tell(0..5, &["SET", "r", "somebody"]);
        let mut monitor = Monitor::on(&fleet[0]);
        let refusal = contended(client.on("r").wait(ms(1_500)).acquire().await.unwrap_err());
        assert!(refusal.to_string().contains("never expires by itself"), "{refusal}");
        let claims = claims(&mut monitor, "r").await;
        assert!(claims > 3 && claims <= 1_500 / 25 + 3, "{claims} claims");
        let said = log().since(mark);
        assert_eq!(said.matches("waits for a key without a ttl").count(), 1, "{said}");
        // By hand, as the error says.
        let client = crate::fleet::client(fleet.builder().policy(patient())).await;
        let waits = waiter(&client, "r");
        somebody_waits(&fleet).await;
        (0..5).for_each(|index| drop(fleet.ask(index, &["DEL", "r"])));
        drop(told(waits).await);
    });
}

// FLUSHALL is told without a key, which the client does not hear: the back-off covers it
#[test]
fn a_flush_frees_a_waiter_after_the_longest_pause_at_the_latest() {
    run(async {
        let fleet = Fleet::with(eager()).await;
        let client = fleet.client().await;
        fleet.occupy(0..5, "r");
        let waits = waiter(&client, "r");
        somebody_waits(&fleet).await;
        fleet.tell(0..5, &["FLUSHALL"]);
        drop(told(waits).await);
    });
}

// Rule 16: with wait 0 nothing is armed
#[test]
fn without_a_wait_nobody_asks_to_be_told() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        fleet.occupy(0..5, "r");
        for _ in 0..10 {
            contended(client.on("r").try_acquire().await.unwrap_err());
        }
        pause(ms(50)).await;
        assert_eq!(watched(&fleet), [0; 5]);
        contended(client.on("r").wait(ms(200)).acquire().await.unwrap_err());
        eventually("three masters with the key to tell of, and no bell", SOON, || {
            let mut watched = watched(&fleet);
            watched.sort_unstable();
            watched == [0, 0, 1, 1, 1]
        })
        .await;
    });
}

// Rule 16: without the right, by asking again
#[test]
fn a_user_that_may_not_be_told_polls_and_is_warned_once() {
    run(async {
        let fleet = Fleet::with(eager()).await;
        fleet.tell(0..3, &["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all", "-client|tracking"]);
        fleet.tell(3..5, &["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all", "-client|caching"]);
        let mark = log().len();
        let poller = client(fleet.builder().credentials("lock", "pw")).await;
        let holder = fleet.client().await;
        for _ in 0..3 {
            let guard = hold(&fleet, &holder, "r").await;
            let waits = waiter(&poller, "r");
            pause(ms(300)).await;
            assert!(guard.release().await.is_freed());
            let _ = told(waits).await.release().await;
        }
        fleet.hang_up(0..5);
        voters(&poller, 5).await;
        let said = log().since(mark);
        let warnings = said.lines().filter(|line| line.contains("+client|tracking")).count();
        assert_eq!(warnings, 1, "{said}");
    });
}

// B82: wherever in the line
#[test]
fn a_waiter_that_goes_away_holds_up_nobody() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, client) = (fleet.client().await, fleet.client().await);
        for behind_own in [true, false] {
            let holder = if behind_own { &client } else { &holder };
            let guard = hold(&fleet, holder, "r").await;
            let mut waiters = Vec::new();
            for _ in 0..4 {
                waiters.push(waiter(&client, "r"));
                pause(ms(20)).await;
            }
            if !behind_own {
                somebody_waits(&fleet).await;
            }
            // One in the middle, then the one in front.
            waiters.remove(1).abort();
            waiters.remove(0).abort();
            pause(ms(20)).await;
            if !behind_own {
                pause(ms(100)).await;
            }
            assert!(guard.release().await.is_freed());
            let _ = told(waiters.remove(0)).await.release().await;
            let _ = told(waiters.remove(0)).await.release().await;
        }
        fleet.nothing_left(SOON).await;
    });
}

// B86
#[test]
fn closing_ends_every_wait() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, client) = (fleet.client().await, fleet.client().await);
        let guard = hold(&fleet, &holder, "r").await;
        let own = client.on("own").acquire().await.unwrap();
        let mut waiters: Vec<_> = (0..3).map(|_| waiter(&client, "r")).collect();
        waiters.extend((0..3).map(|_| waiter(&client, "own")));
        somebody_waits(&fleet).await;
        let (report, took) = timed(client.close()).await;
        assert!(report.released == 1 && took < TOLD, "{report:?} {took:?}");
        for waiter in waiters {
            assert!(matches!(waiter.await.unwrap(), Err(AcquireError::Closed)));
        }
        assert!(guard.is_valid() && !own.is_valid());
    });
}

// B58, and rule 16: every wait is bounded, also in the line
#[test]
fn a_wait_in_the_line_ends_in_time_and_says_why() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, client) = (fleet.client().await, fleet.client().await);
        let own = client.on("own").acquire().await.unwrap();
        let (error, took) = timed(client.on("own").wait(ms(300)).acquire()).await;
        let refusal = contended(error.unwrap_err());
        assert!(took >= ms(300) && took < TOLD, "{took:?}");
        assert!(
            refusal.claims() == 0 && refusal.to_string().contains("this client has the lock"),
            "{refusal}"
        );
        drop(own);
        let theirs = hold(&fleet, &holder, "r").await;
        let first = waiter(&client, "r");
        somebody_waits(&fleet).await;
        let (error, took) = timed(client.on("r").wait(ms(300)).acquire()).await;
        let refusal = contended(error.unwrap_err());
        assert!(took >= ms(300) && took < TOLD, "{took:?}");
        assert!(refusal.claims() == 0 && refusal.tally().held().len() >= 3, "{refusal}");
        assert!(refusal.to_string().contains(&theirs.holder().to_string()), "{refusal}");
        // The one in front, on a claim of its own.
        first.abort();
        let (error, took) = timed(client.on("r").wait(ms(300)).acquire()).await;
        assert!(contended(error.unwrap_err()).claims() >= 2);
        assert!(took >= ms(300) && took < TOLD, "{took:?}");
    });
}

// Issue 7: first come, first served within a client
#[test]
fn waiters_of_one_client_get_the_lock_in_the_order_they_came() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        let guard = client.on("r").acquire().await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for nth in 0..30 {
            let (request, order) = (client.on("r").wait(ms(30_000)), order.clone());
            let (in_line, stands) = tokio::sync::oneshot::channel();
            tasks.spawn(async move {
                let mut acquiring = pin!(request.acquire());
                let waits = poll_fn(|cx| Poll::Ready(acquiring.as_mut().poll(cx).is_pending())).await;
                assert!(waits);
                in_line.send(()).unwrap();
                let guard = acquiring.await.unwrap();
                order.lock().unwrap().push(nth);
                let _ = guard.release().await;
            });
            stands.await.unwrap();
        }
        assert!(guard.release().await.is_freed());
        tasks.join_all().await;
        assert_eq!(*order.lock().unwrap(), (0..30).collect::<Vec<_>>());
    });
}

// B51; and fairness between clients, which share nothing but the masters
#[test]
fn clients_that_start_together_all_get_their_turns() {
    const ROUNDS: usize = 12;
    run(async {
        let fleet = Fleet::start().await;
        let inside = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let start = Arc::new(tokio::sync::Barrier::new(5));
        for _ in 0..5 {
            let (client, inside, start) = (fleet.client().await, inside.clone(), start.clone());
            tasks.spawn(async move {
                for _ in 0..ROUNDS {
                    start.wait().await;
                    let guard = client.on("r").wait(ms(20_000)).acquire().await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two inside");
                    pause(ms(5)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    let _ = guard.release().await;
                }
            });
        }
        tasks.join_all().await;
        fleet.nothing_left(SOON).await;
    });
}

// Rule 16: lists wait in a line of their own
#[test]
fn a_list_waits_for_what_its_own_client_holds_and_keeps_nobody_from_the_rest() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        let a = client.on("a").acquire().await.unwrap();
        let both = spawn(client.lock_all(["a", "b"]).ttl(ms(15_000)).wait(ms(30_000)));
        pause(ms(50)).await;
        // Who has a part of the list and wants more is not held up by those who wait for the list.
        let (b, took) = timed(client.on("b").acquire()).await;
        assert!(took < TOLD, "{took:?}");
        assert!(!both.is_finished());
        assert!(a.release().await.is_freed());
        pause(ms(50)).await;
        assert!(!both.is_finished());
        assert!(b.unwrap().release().await.is_freed());
        let both = told(both).await;
        let again = waiter(&client, "b");
        pause(ms(50)).await;
        assert!(!again.is_finished());
        assert!(both.release().await.is_freed());
        drop(told(again).await);
    });
}

// A list is told of each of its keys
#[test]
fn a_list_is_told_of_a_release_by_another_client() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, other) = (fleet.client().await, fleet.client().await);
        for keys in [["a", "b"], ["b", "c"], ["c", "a"]] {
            let guard = hold(&fleet, &holder, keys[1]).await;
            let waits = spawn(other.lock_all(keys).ttl(ms(15_000)).wait(ms(30_000)));
            somebody_waits(&fleet).await;
            pause(ms(100)).await;
            assert!(guard.release().await.is_freed());
            let _ = told(waits).await.release().await;
            eventually("nobody waits", SOON, || watched(&fleet) == [0; 5]).await;
        }
    });
}

// Rules 16 and 17
#[test]
fn a_fenced_waiter_is_told_of_every_release_and_of_each_renewal() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (holder, other) = (fleet.client().await, fleet.client().await);
        let fenced = |client: &Redlock| client.on("r").ttl(ms(1_500)).wait(ms(30_000)).fenced();
        for held_with_a_token in [true, false, true] {
            let held = if held_with_a_token { fenced(&holder) } else { holder.on("r").ttl(ms(1_500)) };
            let guard = held.acquire().await.unwrap();
            let waits = spawn(fenced(&other));
            somebody_waits(&fleet).await;
            // Renewed every half a second, whereupon it asks to be told once more.
            pause(ms(1_200)).await;
            assert!(guard.is_valid() && !waits.is_finished());
            let before = guard.fence().ok();
            assert!(guard.release().await.is_freed());
            let next = told(waits).await;
            assert!(before < next.fence().ok(), "{before:?}, then {:?}", next.fence());
            let _ = next.release().await;
        }
    });
}

// Rule 16: much is told at once
#[test]
fn two_hundred_waiters_are_told_of_what_changes_at_once() {
    const WAITERS: usize = 200;
    run(async {
        let fleet = Fleet::with(patient()).await;
        let client = fleet.client().await;
        let keys: Vec<String> = (0..WAITERS).map(|nth| format!("r{nth}")).collect();
        keys.iter().for_each(|key| fleet.occupy(0..5, key));
        let mut waits: Vec<_> = keys.iter().map(|key| waiter(&client, key)).collect();
        // A master that one waiter of a call asks to tell takes note of all keys of that call. Each has a bell too.
        let all = (3 + 1) * WAITERS as u64;
        eventually("two hundred waiters", SOON, || watched(&fleet).iter().sum::<u64>() >= all).await;
        let delete: Vec<&str> = ["DEL"].into_iter().chain(keys.iter().map(String::as_str)).collect();
        for index in 0..5 {
            assert_eq!(fleet.ask(index, &delete).integer(), Some(200));
        }
        for waits in waits.drain(..) {
            drop(told(waits).await);
        }
    });
}
