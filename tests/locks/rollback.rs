//! What a claim that came to nothing leaves behind: nothing.

use std::time::Duration;

use quorlock::testbed::{Data, Fault};
use quorlock::{Admission, Redlock};

use crate::fleet::{
    Fleet, Lock, Monitor, SOON, client, contended, eventually, ms, no_quorum, pause, policy, run, timed,
    voters,
};
use crate::proxy::Paths;

// B23, rule 6
#[test]
fn masters_that_did_not_say_yes_get_the_delete_too() {
    run(async {
        let fleet = Fleet::start().await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        fleet.occupy([0, 1], "r");
        paths[2].delay_replies(ms(900));
        let mut monitors: Vec<_> = fleet.masters().iter().map(Monitor::on).collect();
        let refusal = no_quorum(client.on("r").try_acquire().await.unwrap_err());
        assert_eq!(refusal.tally().granted().len(), 2, "{refusal}");
        eventually("the failed claim's keys are gone", SOON, || fleet.occupied("r") == 2).await;
        pause(ms(100)).await;
        assert_eq!(fleet.holding("r", "somebody"), 2);
        for monitor in &mut monitors[2..] {
            let heard = monitor.commands();
            let set = heard.iter().position(|heard| heard.is("SET")).expect("it was claimed");
            let deleted = heard.iter().rposition(|heard| heard.is("DEL")).expect("it was deleted");
            assert!(set < deleted && heard[deleted].in_script, "{heard:?}");
        }
        // And those that said no: a script looks at the key there, and leaves it.
        for monitor in &mut monitors[..2] {
            let heard = monitor.commands();
            let set = heard.iter().position(|heard| heard.is("SET")).expect("it was claimed");
            let looked = heard.iter().rposition(|heard| heard.in_script && heard.names("r"));
            assert!(looked.is_some_and(|looked| set < looked), "{heard:?}");
        }
    });
}

// B24, rule 6
#[test]
fn a_set_that_was_held_back_is_deleted_when_it_comes() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        (0..3).for_each(|index| assert!(fleet[index].inject(Fault::PauseWrites(ms(1_200))).is_installed()));
        let (error, took) = timed(client.on("r").try_acquire()).await;
        let first = error.unwrap_err();
        no_quorum(first);
        assert!(took < ms(900), "{took:?}");
        pause(ms(1_200)).await;
        voters(&client, 5).await;
        fleet.nothing_left(SOON).await;
        drop(fleet.builder().connect().await.unwrap().on("r").acquire().await.unwrap());
    });
}

// B24, rule 6
#[test]
fn a_set_that_lay_in_a_frozen_master_is_deleted_when_it_thaws() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for n in 0..5 {
            fleet.freeze(0..3);
            no_quorum(client.on(format!("r{n}")).try_acquire().await.unwrap_err());
            fleet.thaw(0..3);
            fleet.nothing_left(SOON).await;
            voters(&client, 5).await;
        }
    });
}

// B24, rule 6: the sweep on the next connection, and those after it
#[test]
fn a_set_in_a_broken_connection_is_deleted_on_the_next_one() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(20_000))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        // The requests lie about for 700 ms, while their connections break and others are made.
        (0..3).for_each(|index| paths[index].delay_requests(ms(700)));
        let before: Vec<_> = (0..3).map(|index| fleet.calls(index, "set")).collect();
        let request = client.on("r").ttl(ms(20_000));
        let refused = tokio::spawn(async move { no_quorum(request.try_acquire().await.unwrap_err()) });
        eventually("two granted it", SOON, || fleet.occupied("r") == 2).await;
        (0..3).for_each(|index| {
            paths[index].delay_requests(Duration::ZERO);
            paths[index].cut();
        });
        refused.await.unwrap();
        eventually("the old requests came", SOON, || (0..3).all(|n| fleet.calls(n, "set") > before[n])).await;
        fleet.nothing_left(ms(4_000)).await;
        voters(&client, 5).await;
    });
}

// Rule 6: also if that is made when the ttl is long over
#[test]
fn a_set_that_comes_when_its_ttl_is_long_over_is_deleted_by_a_connection_made_since() {
    run(async {
        let fleet = Fleet::start().await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        let mut monitors: Vec<_> = fleet.masters().iter().take(3).map(Monitor::on).collect();
        // So late that no connection is made meanwhile, either.
        (0..3).for_each(|index| paths[index].delay_requests(ms(4_000)));
        let request = client.on("r").ttl(ms(1_000));
        let refused = tokio::spawn(async move { no_quorum(request.try_acquire().await.unwrap_err()) });
        eventually("two granted it", SOON, || fleet.occupied("r") == 2).await;
        (0..3).for_each(|index| paths[index].cut());
        refused.await.unwrap();
        // Until nobody tries any more where nobody is.
        pause(ms(3_000)).await;
        (0..3).for_each(|index| paths[index].delay_requests(Duration::ZERO));
        let mut heard = [const { Vec::new() }; 3];
        eventually("a delete after the claim", SOON, || {
            monitors.iter_mut().zip(&mut heard).for_each(|(monitor, heard)| heard.extend(monitor.commands()));
            heard.iter().all(|heard| {
                let set = heard.iter().position(|heard| heard.is("SET") && heard.names("r"));
                set.is_some_and(|set| heard[set..].iter().any(|heard| heard.in_script && heard.names("r")))
            })
        })
        .await;
        fleet.nothing_left(SOON).await;
    });
}

// B25 a, rule 13
#[test]
fn a_claim_on_frozen_masters_does_not_follow_them_into_their_next_life() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(60_000))).await;
        let client = client(fleet.builder().admission(Admission::Off)).await;
        fleet.freeze(0..3);
        no_quorum(client.on("r").ttl(ms(60_000)).try_acquire().await.unwrap_err());
        rise_again(&fleet, &client).await;
    });
}

// B25 b, rule 18
#[test]
fn a_claim_on_masters_that_are_down_waits_in_no_queue() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(60_000))).await;
        fleet.kill(0..3);
        let client = fleet.builder().admission(Admission::Off).connect().await.unwrap();
        no_quorum(client.on("r").ttl(ms(60_000)).try_acquire().await.unwrap_err());
        rise_again(&fleet, &client).await;
    });
}

// B25 c, rule 6
#[test]
fn a_dropped_claim_on_frozen_masters_does_not_follow_them_into_their_next_life() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(60_000))).await;
        let client = client(fleet.builder().admission(Admission::Off)).await;
        fleet.freeze(0..3);
        let request = client.on("r").ttl(ms(60_000));
        assert!(tokio::time::timeout(ms(50), request.acquire()).await.is_err());
        rise_again(&fleet, &client).await;
    });
}

/// Kills the first three and starts them empty, connects, and finds that nobody claims anything on them.
async fn rise_again(fleet: &Fleet, client: &Redlock) {
    fleet.kill(0..3);
    pause(ms(100)).await;
    (0..3).for_each(|index| fleet[index].restart(Data::Empty).unwrap());
    for index in 0..3 {
        eventually("the client is back", SOON, || fleet.calls(index, "hello") > 0).await;
    }
    pause(ms(1_500)).await;
    for index in 0..3 {
        assert_eq!(fleet.calls(index, "set"), 0);
    }
    assert!(fleet.keys().is_empty(), "{:?}", fleet.keys());
    voters(client, 5).await;
}

// B26, rule 6
#[test]
fn the_losers_roll_back_never_touches_the_winners_keys() {
    run(async {
        let fleet = Fleet::start().await;
        let clients = [fleet.client().await, fleet.client().await];
        let mut monitor = Monitor::on(&fleet[2]);
        let mut won = 0;
        for n in 0..150 {
            let key = format!("r{n}");
            let [one, other] = [clients[0].on(&key), clients[1].on(&key)];
            let (one, other) = tokio::join!(one.try_acquire(), other.try_acquire());
            assert!(one.is_err() || other.is_err(), "both won");
            let Some(winner) = one.ok().or(other.ok()) else { continue };
            won += 1;
            if won % 10 == 0 {
                pause(ms(20)).await;
            }
            assert!(fleet.backing(&winner) >= 3 && winner.is_valid());
            drop(winner);
        }
        assert!(won > 20, "{won} rounds won");
        assert!(monitor.commands().iter().filter(|heard| heard.is("DEL")).all(|heard| heard.in_script));
        fleet.nothing_left(SOON).await;
    });
}

// B27
#[test]
fn rolling_back_delays_neither_the_caller_nor_the_next_claim() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.occupy([2], "r");
        fleet.freeze([0, 1]);
        let (error, took) = timed(client.on("r").wait(ms(3_000)).acquire()).await;
        let refusal = no_quorum(error.unwrap_err());
        assert!(took >= ms(3_000) && took < ms(4_500), "{took:?}");
        // At 300 ms a claim at most, and half a second's pause.
        assert!(refusal.claims() >= 4, "{refusal}");
        eventually("only the other's key is left", SOON, || fleet.occupied("r") == 1).await;
    });
}

// Issue 2: "after any failed acquire no reachable master keeps the key"
#[test]
fn a_refused_claim_leaves_no_key_whoever_refused_it() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for held in 3..=5 {
            for n in 0..20 {
                let key = format!("{held} {n}");
                fleet.occupy(0..held, &key);
                contended(client.on(&key).try_acquire().await.unwrap_err());
            }
            eventually("nothing but the others' keys", SOON, || {
                (0..20).all(|n| fleet.occupied(format!("{held} {n}")) == held)
            })
            .await;
            pause(ms(50)).await;
            assert!((0..20).all(|n| fleet.holding(format!("{held} {n}"), "somebody") == held));
        }
    });
}
