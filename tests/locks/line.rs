//! The line of clients that wait for a resource: in order, one of them called at a time, and a courtesy only.
//!
//! Clients here pause for seconds before they ask again unless a test says otherwise, so that whoever gets a lock sooner
//! was called.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::{Guard, Policy, Redlock};
use tokio::task::{JoinHandle, JoinSet};

use crate::fleet::{Fleet, Lock, SOON, client, eventually, ms, pause, policy, run, timed};

/// Less than the shortest pause of [`patient`].
const CALLED: Duration = ms(4_000);

const fn patient() -> Policy {
    policy().with_backoff(ms(20_000), ms(20_000))
}

fn waiter(client: &Redlock) -> JoinHandle<Guard> {
    let request = client.on("r").wait(ms(30_000));
    tokio::spawn(async move { request.acquire().await.unwrap() })
}

/// How many stand in line for `r`, and on which master.
fn in_line(fleet: &Fleet) -> (usize, i64) {
    let length = |index| fleet.ask(index, &["ZCARD", "quorlock:line:r"]).integer().unwrap();
    (0..5).map(|index| (index, length(index))).max_by_key(|(_, length)| *length).unwrap()
}

async fn line_of(fleet: &Fleet, length: i64) {
    eventually("their place in line", SOON, || in_line(fleet).1 == length).await;
}

/// Two who died while they stood there, at these places.
fn dead_in_line(fleet: &Fleet, places: [&str; 2]) {
    let (master, _) = in_line(fleet);
    for (place, bell) in places.into_iter().zip(["quorlock:bell:dead:r", "quorlock:bell:gone:r"]) {
        assert_eq!(fleet.ask(master, &["ZADD", "quorlock:line:r", place, bell]).integer(), Some(1));
    }
}

async fn called(waiter: JoinHandle<Guard>) -> Guard {
    let (guard, took) = timed(waiter).await;
    assert!(took < CALLED, "only after {took:?}");
    guard.unwrap()
}

/// Each has the lock, and gives it back.
async fn take_turns(waiters: impl IntoIterator<Item = JoinHandle<Guard>>) {
    let mut turns = JoinSet::new();
    for waiter in waiters {
        turns.spawn(async move { assert!(called(waiter).await.release().await.is_freed()) });
    }
    turns.join_all().await;
}

/// A lock of somebody else, and so many clients that stand in line for it, by age.
async fn crowd(fleet: &Fleet, count: i64) -> (Guard, Vec<Redlock>, Vec<JoinHandle<Guard>>) {
    let guard = fleet.client().await.on("r").acquire().await.unwrap();
    let (mut clients, mut waiters) = (Vec::new(), Vec::new());
    for nth in 1..=count {
        let client = fleet.client().await;
        waiters.push(waiter(&client));
        clients.push(client);
        line_of(fleet, nth).await;
    }
    // The last one listens by then.
    pause(ms(50)).await;
    (guard, clients, waiters)
}

#[test]
fn clients_have_the_lock_in_the_order_they_came() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (guard, _clients, waiters) = crowd(&fleet, 6).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut turns = JoinSet::new();
        for (nth, waiter) in waiters.into_iter().enumerate() {
            let order = order.clone();
            turns.spawn(async move {
                let guard = called(waiter).await;
                order.lock().unwrap().push(nth);
                pause(ms(20)).await;
                assert!(guard.release().await.is_freed());
            });
        }
        assert!(guard.release().await.is_freed());
        turns.join_all().await;
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
        fleet.nothing_left(SOON).await;
        line_of(&fleet, 0).await;
        let listens = || (0..5).any(|index| fleet.stat(index, "tracking_total_keys") > 0);
        eventually("no master that has anything to tell", SOON, || !listens()).await;
        let keys = fleet.masters().iter().flat_map(|master| master.keys().unwrap());
        let own: BTreeSet<_> = keys.map(|key| String::from_utf8(key).unwrap()).collect();
        assert_eq!(own, BTreeSet::from(["quorlock:admitted", "quorlock:fence"].map(str::to_owned)));
    });
}

// What each of them would claim and ask, once for each turn of another
#[test]
fn those_behind_the_first_ask_nothing_while_others_take_turns() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (guard, _clients, waiters) = crowd(&fleet, 8).await;
        let mut waiters = waiters.into_iter();
        let first = waiters.next().unwrap();
        pause(ms(50)).await;
        let commands = |fleet: &Fleet| fleet.calls_of_all("evalsha") + fleet.calls_of_all("client|caching");
        let before = commands(&fleet);
        assert!(guard.release().await.is_freed());
        let guard = called(first).await;
        pause(ms(100)).await;
        // Five deletes, one call of the line, and three calls by the next to be told.
        let asked = commands(&fleet) - before;
        assert!((9..=16).contains(&asked), "{asked} commands for one turn");
        drop(guard);
    });
}

// Rule 16: correctness never depends on a notification
#[test]
fn a_first_in_line_that_does_not_come_holds_the_others_up_once() {
    run(async {
        let fleet = Fleet::with(policy().with_backoff(ms(300), ms(600))).await;
        let (guard, _clients, waiters) = crowd(&fleet, 3).await;
        dead_in_line(&fleet, ["-2", "-1"]);
        // The first was called before, and would come by that.
        let mut waiters = waiters.into_iter();
        waiters.next().unwrap().abort();
        line_of(&fleet, 4).await;
        assert!(guard.release().await.is_freed());
        take_turns(waiters).await;
        assert_eq!(in_line(&fleet).1, 0, "who did not come stands there still");
    });
}

// Who is gone would be called and not come
#[test]
fn those_who_are_gone_are_passed_over() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (guard, _clients, waiters) = crowd(&fleet, 2).await;
        dead_in_line(&fleet, ["1.2", "1.4"]);
        assert!(guard.release().await.is_freed());
        take_turns(waiters).await;
        assert_eq!(in_line(&fleet).1, 0);
    });
}

#[test]
fn who_gives_up_waiting_lets_the_next_one_be_called() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (guard, _clients, mut waiters) = crowd(&fleet, 3).await;
        waiters.remove(1).abort();
        waiters.remove(0).abort();
        line_of(&fleet, 1).await;
        pause(ms(50)).await;
        assert!(guard.release().await.is_freed());
        drop(called(waiters.remove(0)).await);
    });
}

#[test]
fn the_death_of_the_master_that_keeps_the_line_holds_up_nobody() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (guard, _clients, waiters) = crowd(&fleet, 3).await;
        let (master, _) = in_line(&fleet);
        fleet.kill([master]);
        pause(ms(200)).await;
        assert!(guard.release().await.is_freed());
        take_turns(waiters).await;
    });
}

#[test]
fn a_frozen_master_that_keeps_the_line_costs_no_more_than_a_pause() {
    run(async {
        let fleet = Fleet::with(policy().with_backoff(ms(300), ms(600))).await;
        let (guard, _clients, waiters) = crowd(&fleet, 3).await;
        let (master, _) = in_line(&fleet);
        fleet.freeze([master]);
        assert!(guard.release().await.is_freed());
        take_turns(waiters).await;
        fleet.thaw([master]);
    });
}

// Its answer would come, or be given up, after the masters' time limit
#[test]
fn nobody_waits_for_a_place_in_line_as_long_as_for_an_answer() {
    run(async {
        let fleet = Fleet::with(patient().with_master_timeout(ms(8_000))).await;
        let (holder, other) =
            (fleet.builder().connect().await.unwrap(), fleet.builder().connect().await.unwrap());
        for client in [&holder, &other] {
            let guard = client.on("warm").acquire().await.unwrap();
            eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
            assert!(guard.release().await.is_freed());
        }
        let guard = holder.on("r").acquire().await.unwrap();
        let first = waiter(&other);
        line_of(&fleet, 1).await;
        let (master, _) = in_line(&fleet);
        first.abort();
        line_of(&fleet, 0).await;
        fleet.freeze([master]);
        let waits = waiter(&other);
        pause(ms(500)).await;
        assert!(guard.release().await.is_freed());
        drop(called(waits).await);
        fleet.thaw([master]);
    });
}

// The lock is seldom free for long, and whoever comes then would have it before those who wait
#[test]
fn two_clients_that_want_it_all_the_time_take_turns() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut turns = JoinSet::new();
        for nth in 0..2 {
            let (client, order) = (fleet.client().await, order.clone());
            turns.spawn(async move {
                for _ in 0..60 {
                    let guard = client.on("r").wait(ms(30_000)).acquire().await.unwrap();
                    order.lock().unwrap().push(nth);
                    pause(ms(10)).await;
                    assert!(guard.release().await.is_freed());
                }
            });
        }
        turns.join_all().await;
        let order = order.lock().unwrap();
        // Each may keep it for 250 ms, before it first stands in line; and one is done before the other.
        assert!(order[60..90].windows(2).all(|pair| pair[0] != pair[1]), "{order:?}");
    });
}

// Its claim follows its release on the same connection, before any other can
#[test]
fn a_client_that_takes_the_lock_again_at_once_lets_another_have_it() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        let (busy, other) = (fleet.client().await, fleet.client().await);
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let works = tokio::spawn(async move {
            loop {
                let guard = busy.on("r").wait(ms(30_000)).acquire().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                assert!(guard.release().await.is_freed());
            }
        });
        for _ in 0..3 {
            let before = turns.load(Ordering::Relaxed);
            let guard = called(waiter(&other)).await;
            println!("after {} turns of the other", turns.load(Ordering::Relaxed) - before);
            assert!(guard.release().await.is_freed());
            pause(ms(1_100)).await;
        }
        works.abort();
    });
}

#[test]
fn without_the_rights_clients_wait_in_no_order_and_are_told_all_the_same() {
    run(async {
        let fleet = Fleet::with(patient()).await;
        fleet.tell(0..5, &["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all", "-@sortedset"]);
        let guard = fleet.client().await.on("r").acquire().await.unwrap();
        let mut waiters = Vec::new();
        for _ in 0..3 {
            let client = client(fleet.builder().credentials("lock", "pw")).await;
            waiters.push((waiter(&client), client));
        }
        pause(ms(200)).await;
        assert!(guard.release().await.is_freed());
        let mut turns = JoinSet::new();
        for (waiter, client) in waiters {
            turns.spawn(async move {
                let guard = called(waiter).await;
                assert!(guard.release().await.is_freed());
                drop(client);
            });
        }
        turns.join_all().await;
        assert_eq!(in_line(&fleet).1, 0);
    });
}
