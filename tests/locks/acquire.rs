//! Claims: who is asked what, how long that takes, and what a win is.

use std::collections::{BTreeMap, BTreeSet};

use quorlock::{AcquireError, Released};
use tokio::task::JoinSet;

use crate::fleet::{
    Fleet, Lock, Monitor, SOON, client, contended, eventually, ms, no_quorum, pause, policy, run, timed,
};
use crate::proxy::Paths;

// B01, rule 5
#[test]
fn every_claim_signs_with_an_id_of_its_own() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let monitors: Vec<_> = fleet.masters().iter().map(Monitor::on).collect();
        let mut tasks = JoinSet::new();
        for n in 0..200 {
            let key = if n % 2 == 0 { "one".to_owned() } else { format!("key {n}") };
            let request = client.on(key).label("b01");
            tasks.spawn(async move {
                if let Ok(guard) = request.try_acquire().await {
                    let _ = guard.release().await;
                }
            });
        }
        tasks.join_all().await;
        let mut claims = 0;
        let mut signed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for mut monitor in monitors {
            let mut heard_here = BTreeSet::new();
            for set in monitor.commands().iter().filter(|heard| heard.is("SET")) {
                let [_, key, id, ..] = set.words.as_slice() else { panic!("{set:?}") };
                assert!(id.starts_with("b01/"), "{id}");
                assert!(heard_here.insert(id.clone()), "an id signed two claims");
                signed.entry(id.clone()).or_default().insert(key.clone());
                claims += 1;
            }
        }
        // A hundred keys of their own, at w masters each: what is not needed any more need not be sent.
        assert!(claims >= 300, "{claims} claims");
        assert!(signed.values().all(|keys| keys.len() == 1));
    });
}

// B01, rule 5
#[test]
fn all_masters_carry_the_same_id_which_tells_host_and_process() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").acquire().await.unwrap();
        let id = guard.holder().to_string();
        eventually("five keys", SOON, || fleet.holding("r", &id) == 5).await;
        let (label, uuid) = id.split_once('/').unwrap();
        assert!(label.ends_with(&format!(":{}", std::process::id())), "{label}");
        assert_eq!(uuid.len(), 36);
    });
}

// B02, rule 4
#[test]
fn a_key_and_its_ttl_are_set_in_one_command() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let mut monitors: Vec<_> = fleet.masters().iter().map(Monitor::on).collect();
        let guard = client.on("r").ttl(ms(2_500)).acquire().await.unwrap();
        let heard = monitors.iter_mut().flat_map(Monitor::commands);
        let heard: Vec<_> = heard.filter(|heard| heard.names("r")).collect();
        assert!((3..=5).contains(&heard.len()), "one at each master that was needed: {heard:?}");
        let id = guard.holder().to_string();
        for claim in heard {
            let words: BTreeSet<_> = claim.words.iter().map(String::as_str).collect();
            assert!(!claim.in_script, "alone, a claim is a plain SET");
            assert_eq!(words, BTreeSet::from(["SET", "r", id.as_str(), "PX", "2500", "NX"]));
        }
        for master in fleet.masters() {
            eventually("a ttl", SOON, || (1..=2_500).contains(&master.pttl("r").unwrap())).await;
        }
    });
}

// B03, B49; issue 2: "acquire with one and with two masters frozen succeeds in the time of the healthy three"
#[test]
fn one_or_two_frozen_masters_slow_nothing_and_a_third_fails_it_in_time() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_000))).await;
        let client = fleet.client().await;
        for frozen in [4, 3] {
            fleet.freeze([frozen]);
            for n in 0..20 {
                let (guard, took) = timed(client.on(format!("{frozen} {n}")).ttl(ms(5_000)).acquire()).await;
                assert!(took < ms(500), "acquired after {took:?}");
                let guard = guard.unwrap();
                assert!(guard.votes() >= 3);
                let (released, took) = timed(guard.release()).await;
                assert!(took < ms(500), "released after {took:?}");
                let Released::Freed { pending, .. } = released else { panic!("{released:?}") };
                assert!(!pending.is_empty() || n > 0, "a frozen master cannot have answered");
            }
        }
        fleet.freeze([2]);
        let (error, took) = timed(client.on("r").try_acquire()).await;
        let refusal = no_quorum(error.unwrap_err());
        assert!(took < ms(1_500), "refused after {took:?}");
        assert_eq!(refusal.tally().granted().len(), 2);
        fleet.nothing_left(SOON).await;
        fleet.thaw([2, 3, 4]);
        eventually("the thawed answer", SOON, || (0..5).all(|index| fleet[index].keys().is_ok())).await;
        fleet.nothing_left(SOON).await;
    });
}

// B04, rule 4
#[test]
fn masters_are_asked_side_by_side() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_400))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        paths.0.iter().for_each(|path| path.delay_replies(ms(400)));
        let (guard, took) = timed(client.on("r").ttl(ms(3_000)).no_renewal().acquire()).await;
        assert!(
            took >= ms(400) && took < ms(800),
            "three in a row take 1.2 s, side by side it took {took:?}"
        );
        drop(guard.unwrap());
    });
}

// B04
#[test]
fn two_masters_held_by_another_leave_a_quorum_in_the_first_claim() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.occupy([0, 1], "r");
        let guard = client.on("r").try_acquire().await.unwrap();
        eventually("three keys", SOON, || fleet.backing(&guard) == 3).await;
        assert_eq!(guard.votes(), 3);
        assert_eq!(fleet.holding("r", "somebody"), 2);
        assert!(guard.release().await.is_freed());
        eventually("released", SOON, || fleet.occupied("r") == 2).await;
        assert_eq!(fleet.holding("r", "somebody"), 2);
    });
}

// B05, rule 7
#[test]
fn an_error_of_a_minority_is_a_missing_vote() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.kill([3]);
        fleet.tell([4], &["CONFIG", "SET", "requirepass", "x"]);
        fleet[4].command(&["AUTH", "x"]).unwrap();
        fleet.hang_up([4]);
        for _ in 0..10 {
            let guard = client.on("r").try_acquire().await.unwrap();
            assert!(guard.release().await.is_freed());
        }
    });
}

// B06
#[test]
fn a_lost_reply_is_not_taken_for_somebody_elses_lock() {
    run(async {
        let fleet = Fleet::start().await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        (0..3).for_each(|index| paths[index].swallow_a_reply());
        let refusal = no_quorum(client.on("r").try_acquire().await.unwrap_err());
        assert!((0..3).all(|index| paths[index].has_swallowed()), "the fault did not strike");
        assert_eq!(refusal.tally().held().len(), 0, "{refusal}");
        fleet.nothing_left(SOON).await;
        let guard = client.on("r").wait(ms(5_000)).acquire().await.unwrap();
        assert!(guard.is_valid());
    });
}

// B07, rule 6
#[test]
fn after_a_win_all_masters_carry_the_lock() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(800))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        for late in [0, 60] {
            paths[3].delay_requests(ms(late));
            paths[4].delay_requests(ms(late));
            let mut guards = Vec::new();
            for n in 0..40 {
                guards.push(client.on(format!("{late} {n}")).ttl(ms(3_000)).acquire().await.unwrap());
            }
            for guard in &guards {
                eventually("five keys", SOON, || fleet.backing(guard) == 5).await;
            }
        }
    });
}

// B09, rule 16
#[test]
fn a_wait_of_zero_is_exactly_one_claim() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for _ in 0..50 {
            let guard = client.on("free").wait(ms(0)).acquire().await.unwrap();
            assert!(guard.release().await.is_freed());
        }
        fleet.occupy(0..5, "held");
        let mut monitors: Vec<_> = fleet.masters().iter().map(Monitor::on).collect();
        for _ in 0..20 {
            let (error, took) = timed(client.on("held").wait(ms(0)).acquire()).await;
            assert_eq!(contended(error.unwrap_err()).claims(), 1);
            assert!(took < ms(300), "{took:?}");
        }
        pause(ms(50)).await;
        for monitor in &mut monitors {
            let heard = monitor.commands();
            let claims = heard.iter().filter(|heard| heard.names("held") && heard.is("SET")).count();
            assert!((1..=20).contains(&claims), "{claims} claims");
            // A refused claim is cleaned up after, unless every master refused it.
            assert!(heard.iter().all(|heard| !heard.is("DEL")));
        }
    });
}

// B92
#[test]
fn one_client_does_not_grant_itself_a_lock_it_holds() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").ttl(ms(900)).acquire().await.unwrap();
        let again = client.on("r").wait(ms(300));
        let other = again.clone();
        let (mine, theirs) =
            tokio::join!(again.acquire(), tokio::spawn(async move { other.acquire().await }));
        assert!(matches!(mine, Err(AcquireError::Contended(_))));
        assert!(matches!(theirs.unwrap(), Err(AcquireError::Contended(_))));
        assert!(guard.is_valid());
        assert_eq!(fleet.backing(&guard), 5);
    });
}

// B92, rule 16
#[test]
fn many_tasks_of_one_client_never_overlap() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let inside = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..40 {
            let (request, inside) = (client.on("r").wait(ms(30_000)), inside.clone());
            tasks.spawn(async move {
                let guard = request.acquire().await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two inside");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                let _ = guard.release().await;
            });
        }
        tasks.join_all().await;
        fleet.nothing_left(SOON).await;
    });
}

// Rule 4: the verdict falls as early as the votes allow, also the bad one.
#[test]
fn three_refusals_are_a_verdict_whoever_else_is_silent() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_200))).await;
        let client = fleet.client().await;
        fleet.occupy(0..5, "r");
        fleet.freeze([0, 1]);
        let (error, took) = timed(client.on("r").ttl(ms(5_000)).try_acquire()).await;
        assert_eq!(contended(error.unwrap_err()).tally().held().len(), 3);
        assert!(took < ms(600), "{took:?}");
    });
}
