//! Several resources under one lock, all or none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quorlock::protocol::request::{MOST_RESOURCES, RequestError};
use quorlock::{AcquireError, Guard, LockRequest, Redlock, Why};
use tokio::task::JoinSet;

use crate::fleet::{
    Fleet, Lock, Monitor, SOON, client, contended, eventually, ms, pause, policy, run, timed,
};

const TTL: Duration = ms(15_000);

fn all<const N: usize>(client: &Redlock, resources: [&str; N]) -> LockRequest {
    client.lock_all(resources).ttl(TTL)
}

impl Fleet {
    async fn carries(&self, guard: &Guard, masters: usize) {
        let holder = guard.holder().as_bytes();
        let on_all = || guard.resources().all(|key| self.holding(key, holder) == masters);
        eventually("every key on so many masters", SOON, on_all).await;
    }

    fn remaining(&self, index: usize, key: &str) -> i64 {
        self.ask(index, &["PTTL", key]).integer().unwrap()
    }
}

#[test]
fn every_master_sets_all_keys_in_one_step_with_one_id_and_one_ttl() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let mut monitor = Monitor::on(&fleet[0]);
        let guard = all(&client, ["b", "a", "c", "a"]).acquire().await.unwrap();
        assert_eq!(guard.resources().collect::<Vec<_>>(), [b"b", b"a", b"c"]);
        assert!(guard.is_valid() && guard.remaining() <= TTL);
        fleet.carries(&guard, 5).await;
        for index in 0..5 {
            let left = ["a", "b", "c"].map(|key| fleet.remaining(index, key));
            assert!(left.iter().all(|left| (1..=15_000).contains(left)), "{left:?}");
        }
        guard.extend(ms(20_000)).await.unwrap();
        eventually("all raised", SOON, || {
            (0..5).all(|index| ["a", "b", "c"].iter().all(|key| fleet.remaining(index, key) > 15_000))
        })
        .await;
        assert!(guard.release().await.is_freed());
        fleet.nothing_left(SOON).await;
        let heard = monitor.commands();
        let calls = heard.iter().filter(|heard| !heard.in_script && heard.is("EVALSHA")).count();
        let set = heard.iter().filter(|heard| heard.in_script && heard.is("SET")).count();
        assert_eq!((calls, set), (3, 3), "one call each to claim, to extend, to release: {heard:?}");
    });
}

#[test]
fn a_lock_on_several_and_one_on_any_of_them_exclude_each_other() {
    run(async {
        let fleet = Fleet::start().await;
        let (one, other) = (fleet.client().await, fleet.client().await);
        for single in ["a", "b", "c"] {
            let guard = one.on(single).acquire().await.unwrap();
            fleet.carries(&guard, 5).await;
            contended(all(&other, ["a", "b", "c"]).try_acquire().await.unwrap_err());
            assert_eq!(fleet.keys(), [single.into()].into(), "nothing of the refused claim");
            assert!(guard.release().await.is_freed());
            fleet.nothing_left(SOON).await;
        }
        let guard = all(&one, ["a", "b", "c"]).acquire().await.unwrap();
        for single in ["a", "b", "c"] {
            contended(other.on(single).try_acquire().await.unwrap_err());
            contended(all(&other, [single, "d"]).try_acquire().await.unwrap_err());
        }
        let apart = all(&other, ["d", "e"]).try_acquire().await.unwrap();
        assert!(guard.is_valid() && apart.is_valid());
    });
}

// Issue 7: "injective keys"
#[test]
fn keys_are_the_resources_own_bytes() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let pairs: [[&[u8]; 2]; 4] =
            [[b"ab", b"c"], [b"a", b"bc"], [b"a,b", b"c\0"], [b"a\0b", b"\"a\" and \"b\""]];
        let mut guards = Vec::new();
        for pair in pairs {
            let guard = client.lock_all(pair).ttl(TTL).try_acquire().await.unwrap();
            fleet.carries(&guard, 5).await;
            guards.push(guard);
        }
        let keys = pairs.iter().flatten().map(|key| key.to_vec()).collect();
        assert_eq!(fleet.keys(), keys);
    });
}

#[test]
fn a_refusal_names_the_resource_in_the_way_on_each_master_and_its_holder() {
    run(async {
        let fleet = Fleet::start().await;
        let (holder, client) = (fleet.client().await, fleet.client().await);
        let guard = holder.lock("b").ttl(TTL).label("web-3:1842").acquire().await.unwrap();
        fleet.carries(&guard, 5).await;
        let refusal = contended(all(&client, ["a", "b", "c"]).try_acquire().await.unwrap_err());
        let text = refusal.to_string();
        assert!(text.starts_with(r#""a", "b" and "c" granted by 0 of 5 masters"#), "{text}");
        let told = format!("\"b\" held by {} for 1", guard.holder());
        assert!(text.matches(&told).count() >= 3, "{told} in {text}");
        // Of several in the way, the one that stays longest; one without a ttl before all.
        fleet.occupy(0..5, "c");
        let refusal = contended(all(&client, ["a", "b", "c"]).try_acquire().await.unwrap_err());
        assert!(refusal.to_string().matches(r#""c" held by somebody for"#).count() >= 3, "{refusal}");
        fleet.tell(0..5, &["SET", "a", "1"]);
        let refusal = contended(all(&client, ["a", "b", "c"]).try_acquire().await.unwrap_err());
        assert!(refusal.to_string().matches(r#""a" held by 1 without a ttl"#).count() >= 3, "{refusal}");
    });
}

/// A ring of sets, each asked for in both orders, by two clients: whoever waits holds nothing, so there is no order in
/// which all of them could wait for each other.
#[test]
fn overlapping_sets_asked_in_any_order_are_all_won() {
    run(async {
        const SETS: [[&str; 3]; 8] = [
            ["a", "b", "c"],
            ["c", "b", "a"],
            ["b", "c", "d"],
            ["d", "c", "b"],
            ["c", "d", "a"],
            ["a", "d", "c"],
            ["d", "a", "b"],
            ["b", "a", "d"],
        ];
        let fleet = Fleet::start().await;
        let clients = [fleet.client().await, fleet.client().await];
        let inside: Arc<BTreeMap<&str, AtomicUsize>> =
            Arc::new(["a", "b", "c", "d"].map(|key| (key, AtomicUsize::new(0))).into());
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for nth in 0..24 {
            let set = SETS[nth % SETS.len()];
            let (request, inside) = (all(&clients[nth / 4 % 2], set).wait(ms(50_000)), inside.clone());
            tasks.spawn(async move {
                for _ in 0..3 {
                    let guard = request.acquire().await.unwrap();
                    for key in set {
                        assert_eq!(inside[key].fetch_add(1, Ordering::SeqCst), 0, "two have {key}");
                    }
                    tokio::task::yield_now().await;
                    for key in set {
                        inside[key].fetch_sub(1, Ordering::SeqCst);
                    }
                    assert!(guard.release().await.is_freed());
                }
            });
        }
        // And two who want one of them only.
        for single in ["b", "d"] {
            let (request, inside) = (clients[0].on(single).wait(ms(50_000)), inside.clone());
            tasks.spawn(async move {
                for _ in 0..3 {
                    let guard = request.acquire().await.unwrap();
                    assert_eq!(inside[single].fetch_add(1, Ordering::SeqCst), 0, "two have {single}");
                    tokio::task::yield_now().await;
                    inside[single].fetch_sub(1, Ordering::SeqCst);
                    assert!(guard.release().await.is_freed());
                }
            });
        }
        tasks.join_all().await;
        println!("78 turns in {:?}", began.elapsed());
        fleet.nothing_left(SOON).await;
    });
}

#[test]
fn a_wait_ends_when_the_last_of_several_is_free() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for (key, left) in [("a", "300"), ("b", "1200")] {
            fleet.tell(0..5, &["SET", key, "somebody", "PX", left]);
        }
        let before = fleet.calls(0, "evalsha");
        let (guard, took) = timed(all(&client, ["a", "b"]).acquire()).await;
        drop(guard.unwrap());
        assert!(took >= ms(1_100) && took < ms(6_000), "{took:?}");
        let claims = fleet.calls(0, "evalsha") - before;
        assert!(claims < 40, "{claims} claims in {took:?}");
    });
}

#[test]
fn one_or_two_masters_that_are_down_or_refuse_do_not_matter() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.kill([4]);
        fleet.occupy([0], "b");
        assert_eq!(fleet.ask(1, &["HSET", "other", "field", "1"]).integer(), Some(1));
        let guard = all(&client, ["a", "b"]).acquire().await.unwrap();
        fleet.carries(&guard, 3).await;
        assert_eq!(fleet.occupied("a"), 3, "none of the keys where one was another's");
        assert!(guard.release().await.is_freed());
        // A key of another type is another's, and is not touched.
        let refusal = all(&client, ["a", "b", "other"]).try_acquire().await.unwrap_err();
        assert!(refusal.to_string().contains(r#""other" held by another without a ttl"#), "{refusal}");
        assert_eq!(fleet.ask(1, &["HLEN", "other"]).integer(), Some(1));
        eventually("nothing but what was there", SOON, || fleet.keys().len() == 2).await;
    });
}

#[test]
fn several_are_renewed_healed_and_lost_as_one() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.lock_all(["a", "b", "c"]).ttl(ms(3_000)).acquire().await.unwrap();
        fleet.carries(&guard, 5).await;
        fleet.tell_deleted([0], "a");
        fleet.tell_deleted([1], "c");
        fleet.carries(&guard, 5).await;
        pause(ms(4_000)).await;
        assert!(guard.is_valid(), "renewed");
        fleet.carries(&guard, 5).await;
        for (index, key) in [(0, "a"), (1, "b"), (2, "c")] {
            fleet.tell_deleted([index], key);
        }
        let lost = tokio::time::timeout(SOON, guard.lost()).await.unwrap();
        assert_eq!(lost.why(), Why::Vanished);
        drop(guard);
        fleet.nothing_left(ms(1_500)).await;
    });
}

impl Fleet {
    fn tell_deleted(&self, which: impl IntoIterator<Item = usize>, key: &str) {
        for index in which {
            assert_eq!(self.ask(index, &["DEL", key]).integer(), Some(1));
        }
    }
}

#[test]
fn several_can_be_extended_and_released_under_their_holder_id() {
    run(async {
        let fleet = Fleet::start().await;
        let (client, other) = (fleet.client().await, fleet.client().await);
        let guard = all(&client, ["a", "b"]).no_renewal().acquire().await.unwrap();
        fleet.carries(&guard, 5).await;
        let holder = guard.abandon();
        let again = other.extend_all_as(["b", "a"], &holder, ms(20_000)).await.unwrap();
        assert!(again.remaining() > TTL);
        again.abandon();
        // Not under one that it is not, and not together with one that it does not hold.
        let refused = other.extend_all_as(["a", "c"], &holder, ms(25_000)).await.unwrap_err();
        assert!(refused.to_string().contains("lacks one of the keys"), "{refused}");
        assert!((0..5).all(|index| fleet.remaining(index, "a") <= 20_000 && fleet.occupied("c") == 0));
        assert!(other.release_all_as(["a", "b"], &holder).await.unwrap().is_freed());
        fleet.nothing_left(SOON).await;
    });
}

#[test]
fn lists_that_cannot_be_one_lock_are_refused_before_any_traffic() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let names: Vec<String> = (0..=MOST_RESOURCES).map(|nth| format!("r{nth}")).collect();
        let before = fleet.calls_of_all("evalsha");
        let refused = async |names: &[&str]| match client.lock_all(names).acquire().await {
            Err(AcquireError::Request(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&[]).await, RequestError::NoResources);
        assert_eq!(refused(&["a", ""]).await, RequestError::EmptyResource);
        let reserved = refused(&["a", "quorlock:admitted"]).await;
        assert!(matches!(reserved, RequestError::ReservedResource { .. }), "{reserved}");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let too_many = refused(&names).await;
        assert!(too_many.to_string().contains("65") && too_many.to_string().contains("64"), "{too_many}");
        assert_eq!(fleet.calls_of_all("evalsha"), before);
        // The longest list there is, and each named twice.
        let most = &names[..MOST_RESOURCES];
        let guard = client.lock_all(most.iter().chain(most)).acquire().await.unwrap();
        assert_eq!(guard.resources().len(), MOST_RESOURCES);
        fleet.carries(&guard, 5).await;
        assert!(guard.release().await.is_freed());
        fleet.nothing_left(SOON).await;
    });
}

// Issue 7: "no server is held longer than 1 ms"
#[test]
fn the_longest_list_holds_no_master_for_a_millisecond() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let names: Vec<String> = (0..MOST_RESOURCES).map(|nth| format!("{nth}:{}", "x".repeat(60))).collect();
        fleet.tell(0..5, &["CONFIG", "RESETSTAT"]);
        for _ in 0..50 {
            let guard = client.lock_all(&names).ttl(TTL).acquire().await.unwrap();
            guard.extend(ms(20_000)).await.unwrap();
            // Refused for all of them, each looked at.
            contended(client.lock_all(&names).try_acquire().await.unwrap_err());
            assert!(guard.release().await.is_freed());
            fleet.nothing_left(SOON).await;
        }
        // Of so many, since a single one may be interrupted by whatever else this machine does.
        for index in 0..5 {
            let info = fleet[index].info().unwrap();
            let told = info["cmdstat_evalsha"].split("usec_per_call=").nth(1).unwrap();
            let micros: f64 = told.split(',').next().unwrap().parse().unwrap();
            println!("m{}: {micros} µs a call", index + 1);
            assert!(micros < 1_000.0, "{micros} µs a call");
        }
    });
}

#[test]
fn a_forbidden_key_among_several_sets_none_and_spoils_no_other_lock() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_000))).await;
        let rules = ["ACL", "SETUSER", "lock", "on", ">pw", "~quorlock:*", "~who*", "~lock:*", "+@all"];
        fleet.tell(0..5, &rules);
        let client = client(fleet.builder().credentials("lock", "pw")).await;
        let mut tasks = JoinSet::new();
        for n in 0..120 {
            let (mine, forbidden) = (format!("lock:{n}"), n % 20 == 0);
            let request = match n % 4 {
                _ if forbidden => client.lock_all([mine, format!("other:{n}")]).wait(ms(0)),
                0 => client.lock_all([mine, format!("lock:x{n}")]).wait(ms(8_000)),
                _ => client.lock(mine).wait(ms(8_000)),
            };
            tasks.spawn(async move {
                match request.ttl(TTL).acquire().await {
                    Ok(guard) => assert!(!forbidden && guard.release().await.is_freed()),
                    Err(error) => assert!(forbidden && error.to_string().contains("NOPERM"), "{error}"),
                }
            });
        }
        tasks.join_all().await;
        fleet.nothing_left(ms(2_000)).await;
    });
}

#[test]
fn a_forgotten_script_is_mended_for_several_too() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for round in 0..10 {
            fleet.tell(0..5, &["SCRIPT", "FLUSH"]);
            let mut tasks = JoinSet::new();
            for n in 0..20 {
                let request = if n % 3 == 0 {
                    client.lock_all([format!("{round} {n}"), format!("{round} {n}+")]).ttl(TTL)
                } else {
                    client.on(format!("{round} {n}"))
                };
                tasks.spawn(async move {
                    let guard = request.acquire().await.unwrap();
                    assert!(guard.release().await.is_freed());
                });
            }
            tasks.join_all().await;
        }
        fleet.nothing_left(SOON).await;
    });
}

// Rule 18
#[test]
fn lists_asked_for_at_once_travel_together() {
    run(async {
        // Six hundred calls at once that are not to be late, whatever else the machine does.
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_400))).await;
        let client = fleet.client().await;
        let before = ["set", "evalsha"].map(|command| fleet.calls_of_all(command));
        let mut tasks = JoinSet::new();
        for n in 0..300 {
            let request = client.lock_all([format!("a{n}"), format!("b{n}")]).ttl(TTL);
            tasks.spawn(async move {
                let guard = request.acquire().await.unwrap();
                assert!(guard.release().await.is_freed());
            });
        }
        tasks.join_all().await;
        fleet.nothing_left(SOON).await;
        let after = ["set", "evalsha"].map(|command| fleet.calls_of_all(command));
        let [set, calls] = [0, 1].map(|nth| after[nth] - before[nth]);
        // Two keys a list; claims that nobody needs any more are taken back unsent.
        assert!((1_800..=3_000).contains(&set), "{set} set");
        assert!(calls * 5 < set, "{set} SET in {calls} calls");
    });
}

// Rule 18: in order, for every key
#[test]
fn claims_and_releases_of_sets_and_of_their_keys_keep_their_order() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for round in 0..30 {
            let mut noise = JoinSet::new();
            for n in 0..20 {
                let request = client.on(format!("noise {round} {n}"));
                noise.spawn(async move { drop(request.acquire().await.unwrap()) });
            }
            drop(all(&client, ["r", "s"]).wait(SOON).acquire().await.unwrap());
            drop(client.on("s").wait(SOON).acquire().await.unwrap());
            drop(all(&client, ["s", "t"]).wait(SOON).acquire().await.unwrap());
            let abandoned = all(&client, ["t", "r"]);
            let _ = tokio::time::timeout(ms(round % 3), abandoned.acquire()).await;
            noise.join_all().await;
        }
        fleet.nothing_left(ms(2_000)).await;
    });
}
