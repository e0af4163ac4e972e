//! What makes a quorum, until when a lease is valid, and how a refusal is told.

use std::time::Duration;

use quorlock::{AcquireError, Redlock, Why};

use crate::fleet::{
    Fleet, Lock, SOON, client, contended, eventually, ms, no_quorum, pause, policy, run, timed, voters,
};
use crate::proxy::Paths;

// B10, rule 1
#[test]
fn validity_counts_from_the_winning_claim_not_from_the_wait() {
    run(async {
        let fleet = Fleet::start().await;
        let (holder, contender) = (fleet.client().await, fleet.client().await);
        let held = holder.on("r").acquire().await;
        let waiting = tokio::spawn(async move {
            let guard = contender.on("r").ttl(ms(1_000)).wait(SOON).acquire().await.unwrap();
            (guard.remaining(), guard)
        });
        pause(ms(1_200)).await;
        let _ = held.unwrap().release().await;
        let (remaining, guard) = waiting.await.unwrap();
        // 1 s less a drift of 12 ms.
        assert!(remaining > ms(688) && remaining <= ms(988), "{remaining:?}");
        pause(ms(1_500)).await;
        assert!(guard.is_valid(), "it was not renewed");
    });
}

// B11, rules 1 and 3
#[test]
fn validity_counts_from_the_sending_and_never_outlives_the_keys() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(900))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        paths.0.iter().for_each(|path| path.delay_replies(ms(400)));
        let guard = client.on("r").ttl(ms(2_000)).no_renewal().acquire().await.unwrap();
        assert!(guard.remaining() <= ms(2_000 - 400 - 22), "{:?}", guard.remaining());
        let mut looks = 0;
        loop {
            let keys = fleet.backing(&guard);
            // Valid now means valid at the look before.
            if !guard.is_valid() {
                break;
            }
            assert!(keys >= 3, "valid with {keys} keys, {:?} to go", guard.remaining());
            looks += 1;
            pause(ms(2)).await;
        }
        assert!(looks > 20, "{looks} looks");
        assert_eq!(guard.remaining(), Duration::ZERO);
    });
}

// B12, B74, rule 1
#[test]
fn a_ttl_is_refused_before_any_traffic_or_gives_a_validity_below_it() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(20))).await;
        let client = fleet.builder().connect().await.unwrap();
        pause(ms(200)).await;
        let before = fleet.calls_of_all("set");
        for ttl in (0..=22).map(ms).chain([Duration::from_micros(999), Duration::from_nanos(1)]) {
            let error = client.on("r").ttl(ttl).acquire().await.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, AcquireError::Request(_)), "{ttl:?}: {text}");
            assert!(text.contains(&format!("{ttl:?}")) && text.contains("20ms"), "{text}");
            assert!(!error.is_retryable());
        }
        assert_eq!(fleet.calls_of_all("set"), before);
        for ttl in [24, 25, 30, 50, 100].map(ms) {
            for n in 0..20 {
                let key = format!("{ttl:?} {n}");
                if let Ok(guard) = client.on(key).ttl(ttl).no_renewal().try_acquire().await {
                    assert!(guard.remaining() < ttl);
                }
            }
        }
    });
}

// B14, rule 7
#[test]
fn a_majority_of_the_configured_masters_is_needed_whatever_is_connected() {
    run(async {
        let fleet = Fleet::start().await;
        // Nobody listens at these.
        let nobody = (1..=5).map(|port| format!("redis://127.0.0.1:{port}"));
        for (masters, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            for up in [needed - 1, needed] {
                let urls: Vec<_> =
                    fleet.urls().into_iter().take(up).chain(nobody.clone()).take(masters).collect();
                let client = fleet.builder().masters(urls).connect().await.unwrap();
                assert_eq!(client.quorum().needed(), needed);
                if up == needed {
                    drop(client.on("r").acquire().await.unwrap());
                    fleet.nothing_left(SOON).await;
                } else {
                    let text = no_quorum(client.on("r").try_acquire().await.unwrap_err()).to_string();
                    let numbers = format!("of {masters} masters, {needed} needed");
                    assert!(text.contains(&numbers), "{text}");
                }
            }
        }
    });
}

// Rule 7: `min_votes` may raise w.
#[test]
fn four_votes_may_be_asked_for() {
    run(async {
        let fleet = Fleet::start().await;
        let client = client(fleet.builder().min_votes(4)).await;
        fleet.occupy([0], "r");
        drop(client.on("r").try_acquire().await.unwrap());
        eventually("released", SOON, || fleet.occupied("r") == 1).await;
        fleet.occupy([1], "r");
        let refusal = contended(client.on("r").try_acquire().await.unwrap_err());
        assert_eq!(refusal.tally().quorum().needed(), 4);
        eventually("rolled back", SOON, || fleet.occupied("r") == 2).await;
        for votes in [0, 2, 6] {
            let error = fleet.builder().min_votes(votes).connect().await.unwrap_err().to_string();
            assert!(
                error.contains(&format!("min_votes({votes})")) && error.contains("3 (the majority) to 5"),
                "{error}"
            );
        }
    });
}

// B16, rules 2 and 10
#[test]
fn validity_ends_by_the_clock_and_for_good() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").ttl(ms(1_000)).no_renewal().acquire().await.unwrap();
        fleet.freeze(0..5);
        assert!(guard.is_valid() && guard.remaining() <= ms(988));
        pause(ms(300)).await;
        assert!(guard.is_valid());
        pause(ms(750)).await;
        assert!(!guard.is_valid());
        assert_eq!(guard.remaining(), Duration::ZERO);
        fleet.thaw(0..5);
        assert_eq!(guard.lost().await.why(), Why::Expired);
        assert!(!guard.is_valid());

        let guard = client.on("s").acquire().await.unwrap();
        let hold = guard.hold();
        assert!(hold.is_valid());
        assert!(guard.release().await.is_freed());
        assert!(!hold.is_valid());
        assert_eq!(hold.remaining(), Duration::ZERO);
        assert_eq!(hold.lost().await.why(), Why::Released);
    });
}

// B17, rule 2
#[test]
fn a_look_at_validity_asks_nobody() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(3_000)).no_renewal().acquire().await.unwrap();
        fleet.freeze(0..5);
        let (valid, took) = timed(async { (0..1_000).all(|_| guard.is_valid()) }).await;
        assert!(valid && took < ms(1_000), "{took:?}");
    });
}

// B20, rule 9
#[test]
fn two_keys_that_vanish_are_healed_and_a_third_is_a_loss() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(1_500)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        for index in [0, 1] {
            fleet.ask(index, &["PEXPIRE", "r", "1"]);
        }
        eventually("healed", SOON, || fleet.backing(&guard) == 5).await;
        assert!(guard.is_valid());
        // The healed count from the round after the one that healed them.
        eventually("five votes", SOON, || guard.votes() == 5).await;
        for index in 0..3 {
            fleet.ask(index, &["PEXPIRE", "r", "1"]);
        }
        // A period of 500 ms, and the answers.
        let (lost, took) = timed(guard.lost()).await;
        assert_eq!(lost.why(), Why::Vanished);
        assert!(took < ms(1_200), "{took:?}");
        assert!(!guard.is_valid());
    });
}

// B88
#[test]
fn held_and_unreachable_are_told_apart() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let wait = |time| client.on("r").wait(ms(time));
        fleet.occupy(0..5, "r");
        for time in [0, 300] {
            let refusal = contended(wait(time).acquire().await.unwrap_err());
            assert_eq!(refusal.claims() > 1, time > 0);
            assert!(refusal.waited() >= ms(time));
        }
        fleet.tell([0], &["CONFIG", "SET", "maxmemory", "1"]);
        (2..5).for_each(|index| assert_eq!(fleet.ask(index, &["DEL", "r"]).integer(), Some(1)));
        fleet.freeze([2]);
        let refusal = no_quorum(wait(0).acquire().await.unwrap_err());
        let tally = refusal.tally();
        assert_eq!((tally.held().len(), tally.granted().len()), (1, 2), "{refusal}");
        // What an earlier claim had to delete there may keep the frozen one's claim from being sent at all.
        assert_eq!(
            (tally.failed().len(), tally.unknown().len()),
            if tally.unknown().is_empty() { (2, 0) } else { (1, 1) }
        );
        fleet.kill([0, 1, 2]);
        for time in [0, 300] {
            assert!(matches!(wait(time).acquire().await, Err(AcquireError::NoQuorum(_))));
        }
    });
}

// B93; issue 2: "with the reason per master"
#[test]
fn a_refusal_names_every_master_and_its_reason() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.kill([0]);
        fleet.tell([1], &["CONFIG", "SET", "requirepass", "x"]);
        fleet.hang_up([1]);
        fleet.occupy([3], "r");
        fleet.freeze([2]);
        let mut text = String::new();
        // Until the client has noticed all that.
        for _ in 0..100 {
            let refusal = no_quorum(client.on("r").wait(ms(100)).acquire().await.unwrap_err());
            text = refusal.to_string();
            let said = |nth: usize, word: &str| {
                let line = text.lines().nth(nth).unwrap_or_default();
                line.contains(&format!("m{nth} ")) && line.contains(word)
            };
            // The frozen one is asked at first, and after three answers that did not come, no more.
            let silent = said(3, "no answer") || said(3, "did not come in time") || said(3, "no connection");
            if said(1, "refused") && said(2, "NOAUTH") && silent {
                assert!(said(4, "held by somebody") || said(4, "not asked"), "{text}");
                assert!(said(5, "granted") || said(5, "not asked"), "{text}");
                assert!(text.contains("3 needed") && text.contains("claims in"), "{text}");
                for (line, master) in text.lines().skip(1).zip(client.masters()) {
                    assert!(line.contains(master), "{text}");
                }
                return;
            }
        }
        panic!("{text}");
    });
}

// Issue 2: three masters down, at once and after a wait
#[test]
fn with_three_masters_down_the_error_says_how_many_are_left() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.kill([0, 1, 2]);
        voters_gone(&client).await;
        let (error, took) = timed(client.on("r").try_acquire()).await;
        let text = error.unwrap_err().to_string();
        assert!(took < ms(800), "{took:?}");
        assert!(text.contains("no quorum") && text.contains("2 of 5 reachable"), "{text}");
        let (error, took) = timed(client.on("r").wait(ms(1_000)).acquire()).await;
        let refusal = no_quorum(error.unwrap_err());
        assert!(took >= ms(1_000) && took < ms(2_500), "{took:?}");
        assert!(refusal.claims() > 1);
        fleet.nothing_left(SOON).await;
    });
}

async fn voters_gone(client: &Redlock) {
    let limit = std::time::Instant::now() + SOON;
    loop {
        let error = client.on("who is there?").try_acquire().await.unwrap_err();
        if error.to_string().matches("unreachable").count() == 3 {
            return;
        }
        assert!(std::time::Instant::now() < limit, "{error}");
        pause(ms(20)).await;
    }
}

// B54, rule 16
#[test]
fn a_wait_ends_in_time_whatever_the_masters_do() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let wait = client.on("r").wait(ms(1_000));
        let bounded = |took: Duration| assert!(took >= ms(1_000) && took < ms(2_300), "{took:?}");
        fleet.freeze(0..5);
        let (error, took) = timed(wait.acquire()).await;
        no_quorum(error.unwrap_err());
        bounded(took);
        fleet.kill(0..5);
        let (error, took) = timed(wait.acquire()).await;
        no_quorum(error.unwrap_err());
        bounded(took);
        // A client made while all are down.
        let (other, took) = timed(fleet.builder().connect()).await;
        assert!(took < ms(3_000), "{took:?}");
        let (error, took) = timed(other.unwrap().on("r").wait(ms(1_000)).acquire()).await;
        no_quorum(error.unwrap_err());
        bounded(took);
    });
}

// B55
#[test]
fn a_wait_is_not_a_ttl() {
    run(async {
        let fleet = Fleet::start().await;
        let (holder, contender) = (fleet.client().await, fleet.client().await);
        voters(&contender, 5).await;
        let held = holder.on("r").ttl(ms(900)).acquire().await.unwrap();
        let (error, took) = timed(contender.on("r").ttl(ms(400)).wait(ms(1_500)).acquire()).await;
        contended(error.unwrap_err());
        assert!(took >= ms(1_500), "it gave up after its ttl: {took:?}");
        let waiting = tokio::spawn(async move { contender.on("r").ttl(ms(400)).wait(SOON).acquire().await });
        pause(ms(200)).await;
        drop(held);
        let guard = waiting.await.unwrap().unwrap();
        assert!(guard.remaining() < ms(400));
        assert!(fleet.masters().iter().all(|master| master.pttl("r").unwrap() <= 400));
    });
}
