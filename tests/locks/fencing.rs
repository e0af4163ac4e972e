//! Fencing tokens of five real masters (rule 17).
//!
//! Tokens follow the clock as long as nothing is amiss, which would hide a counter that was lost. So most tests here
//! first put the counters far ahead of all clocks: then nothing but the counters makes tokens rise.

use std::sync::{Arc, Mutex};

use quorlock::fence::Gate;
use quorlock::protocol::fencing;
use quorlock::testbed::Data;
use quorlock::{
    AcquireError, Admission, FenceError, FencingToken, Finding, HolderId, KeyState, Policy, Redlock, Why,
};

use crate::fleet::{
    Fleet, Lock, SOON, client, contended, eventually, forgiving, ms, no_quorum, pause, policy, run, voters,
};

const COUNTERS: &str = "quorlock:fence";
/// In microseconds, some hundred years from now.
const FAR: u64 = 5_000_000_000_000_000;

/// One fenced hold, from its beginning to its end.
async fn token(client: &Redlock, resource: &str) -> FencingToken {
    let guard = client.lock(resource).ttl(ms(1_900)).fenced().wait(SOON).acquire().await.unwrap();
    let token = guard.fence().unwrap();
    let _ = guard.release().await;
    token
}

fn counter(fleet: &Fleet, index: usize, resource: &str) -> u64 {
    let shard = fencing::shard(resource.as_bytes()).to_string();
    fleet.ask(index, &["HGET", COUNTERS, &shard]).text().map_or(0, |number| number.parse().unwrap())
}

fn set_counters(fleet: &Fleet, resource: &str, numbers: [u64; 5]) {
    let shard = fencing::shard(resource.as_bytes()).to_string();
    for (index, number) in numbers.iter().enumerate() {
        assert!(fleet.ask(index, &["HSET", COUNTERS, &shard, &number.to_string()]).integer().is_some());
    }
}

/// Five masters whose counter for `resource` is far ahead.
async fn far_ahead(policy: Policy, resource: &str) -> Fleet {
    let fleet = Fleet::with(policy).await;
    set_counters(&fleet, resource, [FAR; 5]);
    fleet
}

async fn all_take_part(fleet: &Fleet, client: &Redlock) {
    let takes_part = |index: usize| {
        let run = fleet.ask(index, &["HGET", COUNTERS, "run"]).text();
        run.is_some_and(|run| run == fleet[index].run_id().unwrap())
    };
    for _ in 0..400 {
        let _ = token(client, "looked after by anybody's claims").await;
        if (0..5).all(takes_part) {
            return;
        }
        pause(ms(25)).await;
    }
    panic!("not all take part in fencing");
}

#[test]
fn tokens_rise_from_holder_to_holder_and_client_to_client() {
    run(async {
        for fleet in [Fleet::start().await, far_ahead(policy(), "r").await] {
            let clients = [fleet.client().await, fleet.client().await];
            let mut last = FencingToken::new(0);
            for nth in 0..40 {
                let next = token(&clients[nth % 2], "r").await;
                assert!(next > last, "{next} after {last}");
                last = next;
            }
            fleet.nothing_left(SOON).await;
        }
    });
}

#[test]
fn a_token_is_the_wall_clock_in_microseconds_while_nothing_is_amiss_and_takes_one_round() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let micros =
            || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        let before = micros();
        let guard = client.on("r").fenced().acquire().await.unwrap();
        let number = u128::from(guard.fence().unwrap().as_u64());
        assert!((before..=micros()).contains(&number), "{number}");
        let value = format!("{}|{number}", guard.holder());
        eventually("five keys with one number", SOON, || fleet.holding("r", &value) == 5).await;
        assert_eq!(
            (0..5).map(|index| u128::from(counter(&fleet, index, "r"))).collect::<Vec<_>>(),
            [number; 5]
        );
    });
}

// Safety of ABD: where counters differ, they are raised to the token before the lock is handed out
#[test]
fn counters_that_differ_are_raised_on_a_majority_before_the_lock_is_held() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for round in 0..30 {
            let numbers = std::array::from_fn(|index| FAR + round * 100 + [7, 50, 3, 90, 21][index]);
            set_counters(&fleet, "r", numbers);
            let guard = client.on("r").fenced().acquire().await.unwrap();
            let token = guard.fence().unwrap().as_u64();
            let raised = (0..5).filter(|index| counter(&fleet, *index, "r") >= token).count();
            assert!(raised >= 3, "{token} is on {raised} masters");
            assert!(numbers.iter().filter(|number| **number < token).count() >= 3, "{token} of {numbers:?}");
            let _ = guard.release().await;
            fleet.nothing_left(SOON).await;
        }
    });
}

#[test]
fn tokens_rise_while_one_and_two_masters_are_down_or_frozen() {
    run(async {
        let fleet = far_ahead(policy(), "r").await;
        let client = fleet.client().await;
        let mut last = token(&client, "r").await;
        for down in [vec![0], vec![0, 3], vec![4], vec![2, 4], vec![1, 2]] {
            fleet.freeze(down.clone());
            for _ in 0..5 {
                let next = token(&client, "r").await;
                assert!(next > last, "{next} after {last}, with {down:?} frozen");
                last = next;
            }
            fleet.thaw(down);
        }
        fleet.kill([0, 1]);
        let next = token(&client, "r").await;
        assert!(next > last, "{next} after {last}, with two dead");
    });
}

#[test]
fn sixty_four_tasks_get_tokens_in_the_order_of_their_holds() {
    run(async {
        let fleet = far_ahead(policy(), "r").await;
        let clients = [fleet.client().await, fleet.client().await];
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..64)
            .map(|nth: usize| {
                let (client, order) = (clients[nth % 2].clone(), order.clone());
                let shared = nth.is_multiple_of(4);
                tokio::spawn(async move {
                    let resource = if shared { "r" } else { &format!("r{nth}") };
                    for _ in 0..if shared { 2 } else { 10 } {
                        let request = client.on(resource).fenced().wait(ms(50_000));
                        let guard = request.acquire().await.unwrap();
                        if shared {
                            order.lock().unwrap().push(guard.fence().unwrap());
                        }
                        let _ = guard.release().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let order = order.lock().unwrap();
        assert_eq!(order.len(), 32);
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
    });
}

#[test]
fn a_holder_that_slept_past_its_ttl_is_refused_by_the_gate_and_told_by_its_hold() {
    run(async {
        let fleet = Fleet::start().await;
        let (sleeper, next) = (fleet.client().await, fleet.client().await);
        let stock = Gate::new(10);
        let guard = sleeper.lock("stock").ttl(ms(700)).no_renewal().fenced().acquire().await.unwrap();
        let token = guard.fence().unwrap();
        assert_eq!(stock.enter(token, |left| *left -= 1), Ok(()));
        // It looked, and is stopped before it acts.
        let later = next.on("stock").fenced().wait(SOON).acquire().await.unwrap();
        assert_eq!(stock.enter(later.fence().unwrap(), |left| *left -= 1), Ok(()));
        let stale = stock.enter(token, |left| *left -= 1).unwrap_err();
        assert_eq!((stale.token, stale.seen), (token, later.fence().unwrap()));
        assert!(stale.to_string().contains(&token.to_string()), "{stale}");
        assert_eq!(stock.into_inner(), 8);
        match guard.fence() {
            Err(FenceError::Lost(lost)) => assert_eq!(lost.why(), Why::Expired),
            other => panic!("{other:?}"),
        }
        let hold = later.hold();
        let _ = later.release().await;
        assert!(matches!(hold.fence(), Err(FenceError::Lost(lost)) if lost.why() == Why::Released));
    });
}

#[test]
fn fenced_and_plain_locks_on_one_resource_exclude_each_other() {
    run(async {
        let fleet = far_ahead(policy(), "r").await;
        let (one, two) = (fleet.client().await, fleet.client().await);
        let mut last = FencingToken::new(0);
        for _ in 0..5 {
            let plain = one.on("r").acquire().await.unwrap();
            assert!(matches!(plain.fence(), Err(FenceError::NotFenced { .. })));
            contended(two.on("r").fenced().try_acquire().await.unwrap_err());
            let _ = plain.release().await;
            let fenced = two.on("r").fenced().wait(SOON).acquire().await.unwrap();
            let refusal = contended(one.on("r").wait(ms(100)).acquire().await.unwrap_err());
            assert!(refusal.to_string().contains(&fenced.holder().to_string()), "{refusal}");
            assert!(fenced.fence().unwrap() > last);
            last = fenced.fence().unwrap();
            let _ = fenced.release().await;
        }
    });
}

#[test]
fn a_fenced_lock_is_seen_extended_and_released_by_its_holder_id_alone() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").fenced().acquire().await.unwrap();
        let token = guard.fence().unwrap();
        let signed = format!("{}|{token}", guard.holder());
        eventually("five keys", SOON, || fleet.holding("r", &signed) == 5).await;
        let holder = HolderId::parse(&guard.abandon().to_string()).unwrap();
        let inspection = fleet.builder().inspect("r").await.unwrap();
        for sighting in &inspection.sightings {
            let Ok(KeyState::Held { holder: seen, fence, .. }) = &sighting.key else {
                panic!("{sighting:?}")
            };
            assert_eq!((seen.as_slice(), *fence), (holder.as_bytes(), Some(token.as_u64())));
        }
        let Finding::Held { holder: seen, fence, votes, .. } = inspection.finding(&policy()) else {
            panic!("{inspection:?}")
        };
        assert_eq!((seen.as_slice(), fence, votes), (holder.as_bytes(), Some(token.as_u64()), 5));
        let guard = client.extend_as("r", &holder, ms(20_000)).await.unwrap();
        eventually("five are extended", SOON, || {
            (0..5).all(|index| fleet[index].pttl("r").unwrap() > 15_100)
        })
        .await;
        assert_eq!(fleet.holding("r", &signed), 5);
        guard.abandon();
        assert!(client.release_as("r", &holder).await.unwrap().is_freed());
        fleet.nothing_left(SOON).await;
    });
}

// Rule 9: a key that is created anew has the token
#[test]
fn a_fenced_lease_is_renewed_and_healed_with_its_token() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.lock("r").ttl(ms(1_500)).fenced().acquire().await.unwrap();
        let token = guard.fence().unwrap();
        let signed = format!("{}|{token}", guard.holder());
        eventually("five keys", SOON, || fleet.holding("r", &signed) == 5).await;
        let shard = fencing::shard(b"r").to_string();
        assert_eq!(fleet.ask(1, &["DEL", "r"]).integer(), Some(1));
        assert_eq!(fleet.ask(1, &["HDEL", COUNTERS, &shard]).integer(), Some(1));
        eventually("it is healed", SOON, || fleet.holding("r", &signed) == 5).await;
        assert_eq!(counter(&fleet, 1, "r"), token.as_u64());
        assert_eq!(guard.fence().unwrap(), token);
        let _ = guard.release().await;
        fleet.nothing_left(SOON).await;
    });
}

// Safety of amnesia: two that restart empty get their counters from the three others, after the quarantine
#[test]
fn two_masters_that_restart_empty_take_the_counters_of_the_others() {
    run(async {
        let fleet = far_ahead(forgiving(), "r").await;
        let client = fleet.client().await;
        let mut last = token(&client, "r").await;
        for (one, other) in [(0, 1), (2, 3), (4, 0)] {
            fleet[one].restart(Data::Empty).unwrap();
            fleet[other].restart(Data::Empty).unwrap();
            let next = token(&client, "r").await;
            assert!(next > last, "{next} after {last}");
            all_take_part(&fleet, &client).await;
            for index in [one, other] {
                assert!(counter(&fleet, index, "r") >= next.as_u64(), "m{} forgot {next}", index + 1);
            }
            voters(&client, 5).await;
            last = next;
        }
        assert!(last.as_u64() > FAR);
    });
}

// H17 for counters: an old snapshot is no memory
#[test]
fn a_master_that_wakes_with_an_old_snapshot_takes_the_counters_of_the_others() {
    run(async {
        let fleet = far_ahead(forgiving(), "r").await;
        let client = fleet.client().await;
        (0..2).for_each(|index| fleet[index].snapshot().unwrap());
        let old = counter(&fleet, 0, "r");
        let mut last = token(&client, "r").await;
        for _ in 0..5 {
            last = token(&client, "r").await;
        }
        (0..2).for_each(|index| fleet[index].restart(Data::Old).unwrap());
        eventually("it is back with what it had", SOON, || counter(&fleet, 0, "r") == old).await;
        all_take_part(&fleet, &client).await;
        assert!((0..2).all(|index| counter(&fleet, index, "r") >= last.as_u64()));
        assert!(token(&client, "r").await > last);
    });
}

#[test]
fn a_master_whose_counters_are_deleted_takes_no_part_until_it_has_them_again() {
    run(async {
        let fleet = far_ahead(policy(), "r").await;
        let client = fleet.client().await;
        let last = token(&client, "r").await;
        assert_eq!(fleet.ask(0, &["DEL", COUNTERS]).integer(), Some(1));
        let guard = client.on("r").fenced().acquire().await.unwrap();
        eventually("all have answered", SOON, || guard.tally().unknown().is_empty()).await;
        let said = guard.tally().iter().next().unwrap().1.unwrap().to_string();
        assert!(said.contains("takes no part in fencing"), "{said}");
        assert!(guard.fence().unwrap() > last);
        let _ = guard.release().await;
        all_take_part(&fleet, &client).await;
        assert!(counter(&fleet, 0, "r") > last.as_u64());
    });
}

#[test]
fn three_that_forget_together_stop_fencing_with_an_error_until_a_floor_is_set() {
    run(async {
        let fleet = far_ahead(forgiving(), "r").await;
        let client = fleet.client().await;
        let last = token(&client, "r").await;
        (0..3).for_each(|index| fleet[index].restart(Data::Empty).unwrap());
        let text = {
            let mut text = String::new();
            for _ in 0..400 {
                let request = client.lock("r").ttl(ms(1_900)).fenced();
                text = no_quorum(request.try_acquire().await.unwrap_err()).to_string();
                if text.contains("together") {
                    break;
                }
                pause(ms(25)).await;
            }
            text
        };
        let named = fleet.urls().iter().take(3).all(|url| {
            let name = url.trim_start_matches("redis://");
            text.matches(name).count() >= 3
        });
        assert!(named && text.contains("quorlock fence-floor") && text.contains("m1"), "{text}");
        // The lock without a token is none the worse.
        voters(&client, 5).await;

        let too_low = fleet.builder().set_fence_floor(Some(FencingToken::new(FAR - 1))).await.unwrap_err();
        assert!(too_low.to_string().contains("too low"), "{too_low}");
        let set = fleet.builder().set_fence_floor(None).await.unwrap();
        assert!(set.floor >= last && set.raised.len() == 3 && set.left.is_empty(), "{set:?}");
        let next = token(&client, "r").await;
        assert!(next > last && next > set.floor, "{next} after {last}");
        all_take_part(&fleet, &client).await;
        let again = fleet.builder().set_fence_floor(None).await.unwrap();
        assert!(again.raised.is_empty() && again.left.is_empty(), "{again:?}");
    });
}

#[test]
fn fencing_begins_by_itself_once_all_five_are_there() {
    run(async {
        let fleet = Fleet::fresh(forgiving());
        fleet[4].freeze().unwrap();
        let client = fleet.builder().connect().await.unwrap();
        voters(&client, 4).await;
        let refusal = no_quorum(client.lock("r").ttl(ms(1_900)).fenced().try_acquire().await.unwrap_err());
        let text = refusal.to_string();
        assert!(text.contains("never used") && text.contains("m5"), "{text}");
        fleet[4].thaw().unwrap();
        voters(&client, 5).await;
        let first = client.lock("r").ttl(ms(1_900)).fenced().try_acquire().await.unwrap();
        assert!(first.fence().unwrap().as_u64() > 1_000_000_000_000_000);
        let _ = first.release().await;
        all_take_part(&fleet, &client).await;
    });
}

#[test]
fn masters_that_init_admitted_take_part_at_once_and_plain_locks_pay_nothing() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let before = fleet.calls_of_all("hmget") + fleet.calls_of_all("time");
        for _ in 0..10 {
            let _ = client.on("r").acquire().await.unwrap().release().await;
        }
        assert_eq!(fleet.calls_of_all("hmget") + fleet.calls_of_all("time"), before);
        assert!(client.on("r").fenced().try_acquire().await.unwrap().fence().is_ok());
    });
}

#[test]
fn without_admission_no_token_can_be_had() {
    run(async {
        let fleet = Fleet::fresh(policy());
        let client = client(fleet.builder().admission(Admission::Off)).await;
        let error = client.on("r").fenced().try_acquire().await.unwrap_err();
        assert!(
            matches!(error, AcquireError::Request(_)) && error.to_string().contains("admission"),
            "{error}"
        );
        assert_eq!(fleet.occupied("r"), 0);
    });
}

#[test]
fn rights_that_fencing_needs_are_named_with_the_acl_line() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell(0..5, &["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all", "-time"]);
        let client = client(fleet.builder().credentials("lock", "pw")).await;
        let text = no_quorum(client.on("r").fenced().try_acquire().await.unwrap_err()).to_string();
        assert!(text.matches("for fencing also +hgetall +time").count() >= 3, "{text}");
        fleet.nothing_left(SOON).await;
        fleet.tell(0..5, &["ACL", "SETUSER", "lock", "+time"]);
        assert!(client.on("r").fenced().try_acquire().await.unwrap().fence().is_ok());
    });
}

#[test]
fn proposals_of_a_clock_that_is_days_ahead_are_ignored() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let sane = token(&client, "r").await.as_u64();
        let shard = fencing::shard(b"x").to_string();
        for (ahead, taken) in
            [(2 * fencing::FARTHEST_PROPOSAL, false), (fencing::FARTHEST_PROPOSAL / 2, true)]
        {
            let wish = sane + ahead;
            let argument = format!("me/1|{shard}|{wish}");
            let run_id = fleet[0].run_id().unwrap();
            let act = include_str!("../../src/transport/lua/act.lua");
            let said = fleet.ask(0, &["EVAL", act, "1", "x", "C", "1000", &argument, &run_id]);
            let quorlock::testbed::Reply::Array(said) = said else { panic!("{said:?}") };
            let number: u64 = said[0].text().unwrap().trim_start_matches('+').parse().unwrap();
            assert_eq!(number == wish, taken, "{number} of {wish}");
            assert!(taken || number == 1);
            assert_eq!(fleet.ask(0, &["DEL", "x"]).integer(), Some(1));
        }
    });
}

// Several resources: one token is for all of them, in one order with the tokens of each
#[test]
fn a_token_of_several_resources_is_above_those_of_each() {
    run(async {
        let fleet = far_ahead(policy(), "a").await;
        set_counters(&fleet, "b", [FAR + 5_000, FAR + 4_000, FAR + 3_000, FAR + 2_000, FAR + 1_000]);
        let client = fleet.client().await;
        let both = || client.lock_all(["a", "b", "c"]).ttl(ms(10_000)).fenced().wait(SOON);
        let (a, b) = (token(&client, "a").await, token(&client, "b").await);
        let guard = both().acquire().await.unwrap();
        let all = guard.fence().unwrap();
        assert!(all > a && all > b, "{all} after {a} and {b}");
        for resource in ["a", "b", "c"] {
            let raised = (0..5).filter(|index| counter(&fleet, *index, resource) >= all.as_u64()).count();
            assert!(raised >= 3, "{resource} on {raised}");
            contended(client.on(resource).fenced().try_acquire().await.unwrap_err());
        }
        let _ = guard.release().await;
        let next = [token(&client, "a").await, token(&client, "b").await, token(&client, "c").await];
        assert!(next.iter().all(|next| *next > all), "{next:?} after {all}");
        fleet.freeze([0, 3]);
        let later = both().acquire().await.unwrap().fence().unwrap();
        assert!(next.iter().all(|next| later > *next), "{later} after {next:?}");
        fleet.thaw([0, 3]);
        fleet.nothing_left(SOON).await;
    });
}

// Rule 9 for several: what is created anew has the token
#[test]
fn a_fenced_lease_on_several_resources_is_healed_with_its_token() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.lock_all(["a", "b"]).ttl(ms(1_500)).fenced().acquire().await.unwrap();
        let signed = format!("{}|{}", guard.holder(), guard.fence().unwrap());
        eventually("ten keys", SOON, || fleet.holding("a", &signed) + fleet.holding("b", &signed) == 10)
            .await;
        assert_eq!(fleet.ask(1, &["DEL", "b"]).integer(), Some(1));
        eventually("it is healed", SOON, || fleet.holding("b", &signed) == 5).await;
        assert_eq!(fleet.holding("a", &signed), 5);
        let _ = guard.release().await;
        fleet.nothing_left(SOON).await;
    });
}
