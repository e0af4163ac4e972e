//! What is asked at the same time travels together, and nobody is harmed by his company (rule 18).

use tokio::task::JoinSet;

use crate::fleet::{Fleet, Lock, Monitor, SOON, eventually, ms, pause, policy, run};

// Rule 18
#[test]
fn five_hundred_at_once_take_a_fraction_of_the_calls() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let before = ["set", "del", "evalsha"].map(|command| fleet.calls_of_all(command));
        let mut tasks = JoinSet::new();
        for n in 0..500 {
            let request = client.on(format!("r{n}"));
            tasks.spawn(async move {
                let guard = request.acquire().await.unwrap();
                assert!(guard.release().await.is_freed());
            });
        }
        tasks.join_all().await;
        fleet.nothing_left(SOON).await;
        let after = ["set", "del", "evalsha"].map(|command| fleet.calls_of_all(command));
        let [set, deleted, calls] = [0, 1, 2].map(|nth| after[nth] - before[nth]);
        // Claims that nobody needs any more are taken back unsent.
        assert!((1_500..=2_500).contains(&set) && deleted >= 1_500, "{set} set, {deleted} deleted");
        assert!(calls * 5 < set + deleted, "{set} SET and {deleted} DEL in {calls} calls");
    });
}

// Rule 18
#[test]
fn alone_a_claim_is_a_plain_set_and_a_release_one_script() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        pause(ms(100)).await;
        let mut monitor = Monitor::on(&fleet[0]);
        for n in 0..20 {
            let guard = client.on(format!("r{n}")).no_renewal().acquire().await.unwrap();
            eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
            assert!(guard.release().await.is_freed());
            fleet.nothing_left(SOON).await;
        }
        let ours = monitor.commands();
        let ours = ours.iter().filter(|heard| !heard.in_script && (heard.is("SET") || heard.is("EVALSHA")));
        let (set, scripts): (Vec<_>, Vec<_>) = ours.partition(|heard| heard.is("SET"));
        assert_eq!((set.len(), scripts.len()), (20, 20));
    });
}

// Rule 18: in order
#[test]
fn claims_and_releases_of_one_key_keep_their_order() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for round in 0..30 {
            let mut noise = JoinSet::new();
            for n in 0..20 {
                let request = client.on(format!("noise {round} {n}"));
                noise.spawn(async move { drop(request.acquire().await.unwrap()) });
            }
            let first = client.on("r").wait(SOON).acquire().await.unwrap();
            drop(first);
            let second = client.on("r").wait(SOON).acquire().await.unwrap();
            drop(second);
            let abandoned = client.on("r");
            let _ = tokio::time::timeout(ms(round % 3), abandoned.acquire()).await;
            noise.join_all().await;
        }
        fleet.nothing_left(ms(2_000)).await;
    });
}

// Issue 2: "one bad key in a batch (the others unharmed)"
#[test]
fn one_bad_key_spoils_no_other() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for index in 0..5 {
            assert_eq!(fleet.ask(index, &["HSET", "bad", "field", "1"]).integer(), Some(1));
        }
        let before = fleet.calls(0, "evalsha");
        let mut tasks = JoinSet::new();
        for n in 0..200 {
            let bad = n % 20 == 0;
            let request = client.on(if bad { "bad".to_owned() } else { format!("r{n}") });
            tasks.spawn(async move {
                match request.wait(ms(if bad { 0 } else { 8_000 })).acquire().await {
                    Ok(guard) => {
                        assert!(!bad);
                        guard.extend(ms(2_900)).await.unwrap();
                        assert!(guard.release().await.is_freed());
                    }
                    Err(error) => assert!(bad, "{error}"),
                }
            });
        }
        tasks.join_all().await;
        assert!(fleet.calls(0, "evalsha") - before < 300, "they did not travel together");
        assert!((0..5).all(|index| fleet.ask(index, &["HLEN", "bad"]).integer() == Some(1)));
        eventually("nothing but the hash", SOON, || fleet.keys().len() == 1).await;
    });
}

// B72, rule 18; issue 2: "one bad key in a batch (the others unharmed)"; here one that the user may not touch, for which
// a master refuses the whole call
#[test]
fn a_forbidden_key_spoils_no_other() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_000))).await;
        let rules = ["ACL", "SETUSER", "lock", "on", ">pw", "~quorlock:*", "~who*", "~lock:*", "+@all"];
        fleet.tell(0..5, &rules);
        let client = crate::fleet::client(fleet.builder().credentials("lock", "pw")).await;
        let mut tasks = JoinSet::new();
        for n in 0..200 {
            let forbidden = n % 40 == 0;
            let request = client.on(if forbidden { format!("other {n}") } else { format!("lock:{n}") });
            tasks.spawn(async move {
                match request.wait(ms(if forbidden { 0 } else { 8_000 })).acquire().await {
                    Ok(guard) => {
                        assert!(!forbidden);
                        guard.extend(ms(2_900)).await.unwrap();
                        let released = guard.release().await;
                        assert!(released.is_freed(), "{released:?}");
                    }
                    Err(error) => assert!(forbidden && error.to_string().contains("NOPERM"), "{error}"),
                }
            });
        }
        tasks.join_all().await;
        fleet.nothing_left(ms(2_000)).await;
    });
}
