//! Masters that break, refuse, or go away for a while.

use std::time::{Duration, Instant};

use quorlock::testbed::{Data, Fault, Reply, Testbed};
use quorlock::{AcquireError, Admission, Redlock, Released};
use tokio::task::JoinSet;

use crate::fleet::{
    Fleet, Lock, SOON, client, contended, eventually, forgiving, ms, no_quorum, pause, policy, run, timed,
    voters,
};
use crate::proxy::Paths;
use crate::renewal::keep_busy;

/// Claims and gives back `rounds` times, each with just the masters that are left.
async fn works(client: &Redlock, rounds: usize) {
    for _ in 0..rounds {
        let guard = client.lock("does it work?").ttl(ms(1_450)).wait(ms(5_000)).acquire().await.unwrap();
        let released = guard.release().await;
        assert!(released.is_freed(), "{released:?}");
    }
}

/// The lines of a refusal, if it is one.
async fn refusal(client: &Redlock) -> Vec<String> {
    match client.lock("who refuses?").ttl(ms(1_450)).try_acquire().await {
        Ok(_) => Vec::new(),
        Err(error) => no_quorum(error).to_string().lines().skip(1).map(ToOwned::to_owned).collect(),
    }
}

/// Waits until these masters, and they alone, tell this.
async fn refused_with(client: &Redlock, which: std::ops::Range<usize>, words: &str) {
    let limit = Instant::now() + SOON;
    loop {
        let lines = refusal(client).await;
        let said = |(index, line): (usize, &String)| line.contains(words) == which.contains(&index);
        if lines.len() == 5 && lines.iter().enumerate().all(said) {
            return;
        }
        assert!(Instant::now() < limit, "never {words}: {lines:#?}");
        pause(ms(50)).await;
    }
}

// B59, rule 13: scripts have a time limit too
#[test]
fn extending_and_releasing_do_not_wait_for_a_frozen_master() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_000))).await;
        let client = fleet.client().await;
        let guard = client.on("r").ttl(ms(3_000)).acquire().await.unwrap();
        fleet.freeze([0]);
        for _ in 0..5 {
            let (extended, took) = timed(guard.extend(ms(3_000))).await;
            extended.unwrap();
            assert!(took < ms(500), "{took:?}");
        }
        let (released, took) = timed(guard.release()).await;
        assert!(released.is_freed() && took < ms(500), "{released:?} {took:?}");
    });
}

// B60, rules 7 and 13
#[test]
fn a_master_frozen_under_load_delays_nobody_and_votes_again_after_the_thaw() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.freeze([0]);
        let began = Instant::now();
        let mut slowest = Duration::ZERO;
        let mut done = 0;
        while began.elapsed() < ms(2_500) {
            let mut tasks = JoinSet::new();
            for n in 0..20 {
                let request = client.on(format!("{done} {n}"));
                tasks.spawn(async move {
                    let (guard, took) = timed(request.acquire()).await;
                    assert!(guard.unwrap().release().await.is_freed());
                    took
                });
            }
            slowest = slowest.max(tasks.join_all().await.into_iter().max().unwrap());
            done += 20;
        }
        assert!(done > 200 && slowest < ms(600), "{done} in all, {slowest:?}");
        fleet.thaw([0]);
        voters(&client, 5).await;
        fleet.nothing_left(SOON).await;
        // What was asked of the frozen one before the connection was given up, and nothing since.
        assert!(fleet.calls(0, "set") < done / 2, "{} of {done}", fleet.calls(0, "set"));
    });
}

// B61
#[test]
fn a_connection_that_went_silent_is_given_up_and_made_anew() {
    run(async {
        let fleet = Fleet::start().await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        paths[0].be_silent(true);
        let began = Instant::now();
        loop {
            drop(client.on("r").acquire().await.unwrap());
            let lines = {
                fleet.occupy(1..5, "busy");
                contended(client.on("busy").try_acquire().await.unwrap_err()).to_string()
            };
            if lines.contains("m1 ") && lines.contains("unreachable") {
                break;
            }
            assert!(began.elapsed() < ms(5_000), "never given up: {lines}");
            pause(ms(100)).await;
        }
        paths[0].be_silent(false);
        voters(&client, 5).await;
    });
}

// B62, rule 13
#[test]
fn a_client_can_be_made_while_masters_are_down_and_finds_them_later() {
    run(async {
        let fleet = Fleet::with(forgiving()).await;
        fleet.kill([0]);
        fleet.freeze([1]);
        let (client, took) = timed(fleet.builder().connect()).await;
        assert!(took < ms(2_000), "{took:?}");
        let client = client.unwrap();
        works(&client, 5).await;
        fleet.thaw([1]);
        voters(&client, 4).await;
        fleet[0].restart(Data::Empty).unwrap();
        voters(&client, 5).await;
    });
}

// B62
#[test]
fn a_client_can_be_made_while_all_masters_are_down() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.kill(0..5);
        let (client, took) = timed(fleet.builder().admission(Admission::Off).connect()).await;
        assert!(took < ms(2_000), "{took:?}");
        let client = client.unwrap();
        refused_with(&client, 0..5, "Connection refused").await;
        (0..5).for_each(|index| fleet[index].restart(Data::Empty).unwrap());
        voters(&client, 5).await;
        works(&client, 5).await;
    });
}

// B79
#[test]
fn a_host_that_no_name_service_knows_is_a_master_that_is_down() {
    run(async {
        let fleet = Fleet::start().await;
        let mut urls = fleet.urls();
        urls[0] = "redis://quorlock.invalid".to_owned();
        let (client, took) = timed(fleet.builder().masters(urls).connect()).await;
        assert!(took < ms(3_000), "{took:?}");
        let client = client.unwrap();
        works(&client, 5).await;
        fleet.tell(0..3, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
        let lines = refusal(&client).await;
        assert!(lines[0].contains("quorlock.invalid") && lines[0].contains("unreachable"), "{lines:#?}");
    });
}

// B63, rule 13
#[test]
fn a_master_that_comes_back_is_found_again_and_again() {
    run(async {
        let fleet = Fleet::start().await;
        let client = client(fleet.builder().admission(Admission::Off)).await;
        for down in [0, 200, 1_500] {
            fleet.kill([0]);
            works(&client, 5).await;
            pause(ms(down)).await;
            works(&client, 5).await;
            let before = Instant::now();
            fleet[0].restart(Data::Empty).unwrap();
            voters(&client, 5).await;
            assert!(before.elapsed() < ms(4_000), "{:?}", before.elapsed());
        }
    });
}

// B63, rule 6
#[test]
fn connections_that_masters_close_are_made_anew_and_leave_no_key() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(20_000))).await;
        let client = fleet.client().await;
        let worker = {
            let client = client.clone();
            tokio::spawn(async move {
                for n in 0..300 {
                    let request = client.on(format!("r{n}")).ttl(ms(20_000)).wait(SOON);
                    let guard = request.acquire().await.unwrap();
                    // Whose connections all break meanwhile cannot know, and says so.
                    let _ = guard.release().await;
                }
            })
        };
        for _ in 0..4 {
            fleet.hang_up(0..5);
            pause(ms(200)).await;
        }
        worker.await.unwrap();
        voters(&client, 5).await;
        // Long before the ttl.
        fleet.nothing_left(ms(4_000)).await;
    });
}

// B64, rule 18
#[test]
fn a_forgotten_script_is_mended_on_the_spot() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").no_renewal().acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        fleet.tell(0..5, &["SCRIPT", "FLUSH"]);
        guard.extend(ms(25_000)).await.unwrap();
        eventually("all extended", SOON, || (0..5).all(|index| fleet[index].pttl("r").unwrap() > 20_000))
            .await;
        fleet.tell(0..5, &["SCRIPT", "FLUSH"]);
        assert!(guard.release().await.is_freed());
        eventually("all free", SOON, || fleet.occupied("r") == 0).await;
        // A whole batch at once.
        let before: u64 = (0..5).map(|index| fleet.stat(index, "total_connections_received")).sum();
        fleet.tell(0..5, &["SCRIPT", "FLUSH"]);
        let mut tasks = JoinSet::new();
        for n in 0..100 {
            let request = client.on(format!("r{n}"));
            tasks.spawn(async move { request.try_acquire().await.unwrap().release().await.is_freed() });
        }
        assert!(tasks.join_all().await.into_iter().all(|freed| freed));
        fleet.nothing_left(SOON).await;
        let after: u64 = (0..5).map(|index| fleet.stat(index, "total_connections_received")).sum();
        assert_eq!(before, after, "mended by reconnecting");
    });
}

// B64, B72: the ACL without SCRIPT LOAD
#[test]
fn a_client_that_may_not_load_scripts_sends_them() {
    run(async {
        let fleet = Fleet::start().await;
        let rules =
            "on >pw ~* +set +get +del +pttl +pexpire +eval +evalsha +hmget +hset +exists +info +hello +ping";
        let user: Vec<_> = ["ACL", "SETUSER", "lock"].into_iter().chain(rules.split(' ')).collect();
        fleet.tell(0..5, &user);
        let client = client(fleet.builder().credentials("lock", "pw")).await;
        let guard = client.on("r").acquire().await.unwrap();
        guard.extend(ms(2_900)).await.unwrap();
        assert!(guard.release().await.is_freed());
        fleet.nothing_left(SOON).await;
    });
}

// B65, rule 14
#[test]
fn a_master_that_became_a_replica_is_a_missing_vote() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let held = client.on("held").acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&held) == 5).await;
        fleet.tell([0, 1], &["REPLICAOF", "127.0.0.1", "1"]);
        let before = fleet.stat(0, "total_connections_received");
        let (_, took) = timed(works(&client, 50)).await;
        assert!(took < ms(3_000), "{took:?}");
        held.extend(ms(2_900)).await.unwrap();
        let made = fleet.stat(0, "total_connections_received") - before;
        // Back-off: 50 ms, 100 ms, and so on to a second; not one a command.
        assert!(made < 15, "{made} connections");
        assert!(held.release().await.is_freed());
        fleet.tell([2], &["REPLICAOF", "127.0.0.1", "1"]);
        // Its refusals close the connection; the next one finds what it is.
        refused_with(&client, 0..3, "role is \"slave\"").await;
        fleet.tell(0..3, &["REPLICAOF", "NO", "ONE"]);
        voters(&client, 5).await;
    });
}

// Rule 14: also where nothing but a script tells
#[test]
fn a_replica_is_noticed_by_renewals_alone() {
    run(async {
        let fleet = Fleet::start().await;
        let guard = fleet.client().await.on("r").ttl(ms(600)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        fleet.tell([0], &["REPLICAOF", "127.0.0.1", "1"]);
        let before = fleet.stat(0, "total_connections_received");
        eventually("another connection", SOON, || fleet.stat(0, "total_connections_received") > before).await;
        assert!(guard.is_valid());
    });
}

// B66, rule 14
#[test]
fn a_master_that_loads_its_data_votes_when_it_is_done() {
    run(async {
        let arguments = [
            "--save",
            "3600 1",
            "--key-load-delay",
            "2000",
            "--loading-process-events-interval-bytes",
            "1024",
        ];
        let fleet = Fleet::with_arguments(policy().with_max_ttl(ms(1_500)), &arguments).await;
        let rules = ["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all"];
        fleet.tell(0..5, &rules);
        let urls = fleet.urls().into_iter().map(|url| url.replace("redis://", "redis://lock:pw@") + "/2");
        let client = fleet.builder().masters(urls).admission(Admission::Off).connect().await.unwrap();
        voters(&client, 5).await;
        fleet.ask(0, &["EVAL", "for i = 1, 1000 do redis.call('SET', 'ballast' .. i, 'x') end", "0"]);
        fleet.tell([0], &["SAVE"]);
        fleet.kill([0]);
        std::thread::scope(|scope| {
            // Returns once the master has read its data.
            let restarted = scope.spawn(|| fleet[0].restart(Data::Kept));
            let began = Instant::now();
            while !restarted.is_finished() {
                futures_block(works_with(&client, ms(1_400)));
            }
            assert!(began.elapsed() > ms(1_000), "it loaded too fast to show anything");
            restarted.join().unwrap().unwrap();
        });
        fleet.tell([0], &rules);
        voters(&client, 5).await;
        let guard = client.lock("r").ttl(ms(1_400)).acquire().await.unwrap();
        let value = || {
            let mut wire = fleet[0].wire().unwrap();
            assert!(wire.command(&["SELECT", "2"]).unwrap().is_ok());
            wire.command(&["GET", "r"]).unwrap()
        };
        let wanted = Reply::Bulk(guard.holder().as_bytes().to_vec());
        eventually("the key in db 2", SOON, || value() == wanted).await;
        assert_eq!(fleet[0].get("r").unwrap(), None);
    });
}

async fn works_with(client: &Redlock, ttl: Duration) {
    let guard = client.lock("does it work?").ttl(ttl).acquire().await.unwrap();
    assert!(guard.release().await.is_freed());
}

/// Waits inside a scope of threads.
fn futures_block(work: impl Future<Output = ()>) {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work));
}

// B67
#[test]
fn a_password_set_later_is_a_missing_vote_until_it_is_taken_back() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let lock_out = |index: usize| {
            fleet.tell([index], &["CONFIG", "SET", "requirepass", "x"]);
            fleet.hang_up([index]);
        };
        lock_out(0);
        works(&client, 10).await;
        lock_out(1);
        lock_out(2);
        refused_with(&client, 0..3, "NOAUTH").await;
        refused_with(&client, 0..3, "give a password in the URL").await;
        pause(ms(1_500)).await;
        for index in 0..3 {
            assert!(fleet.ask(index, &["AUTH", "x"]).is_ok());
            let made = fleet.stat(index, "total_connections_received");
            assert!(made < 25, "{made} connections");
            fleet.tell([index], &["CONFIG", "SET", "requirepass", ""]);
        }
        voters(&client, 5).await;
    });
}

// B67
#[test]
fn a_wrong_password_is_told_for_each_master() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell(0..3, &["ACL", "SETUSER", "lock", "on", ">right", "~*", "+@all"]);
        fleet.tell(3..5, &["ACL", "SETUSER", "lock", "on", ">wrong", "~*", "+@all"]);
        let client = fleet.builder().credentials("lock", "wrong").connect().await.unwrap();
        refused_with(&client, 0..3, "WRONGPASS").await;
        fleet.tell(0..3, &["ACL", "SETUSER", "lock", ">wrong"]);
        voters(&client, 5).await;
    });
}

// B69
#[test]
fn busy_masters_are_missing_votes() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let busy = keep_busy(&fleet, 2);
        works(&client, 5).await;
        drop(busy);
        let busy = keep_busy(&fleet, 3);
        refused_with(&client, 0..3, "BUSY").await;
        drop(busy);
        voters(&client, 5).await;
        fleet.nothing_left(SOON).await;
    });
}

// B69, rule 6
#[test]
fn after_a_pause_each_key_is_its_holders_or_nobodys() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        (0..5).for_each(|index| assert!(fleet[index].inject(Fault::PauseWrites(ms(600))).is_installed()));
        let mut tasks = JoinSet::new();
        for n in 0..20 {
            let request = client.on(format!("r{n}")).wait(ms(400));
            tasks.spawn(async move { request.acquire().await });
        }
        let guards: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        pause(ms(1_500)).await;
        voters(&client, 5).await;
        assert!(guards.iter().all(|guard| fleet.backing(guard) >= 3 && guard.is_valid()));
        eventually("no orphan", ms(1_000), || {
            fleet.keys().len() == guards.len()
                && guards.iter().all(|guard| fleet.backing(guard) == fleet.occupied(guard.resource()))
        })
        .await;
    });
}

// B71
#[test]
fn one_connection_a_master_serves_any_number_of_locks() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell(0..5, &["CONFIG", "SET", "maxclients", "20"]);
        let client = fleet.client().await;
        let before: Vec<_> = (0..5).map(|index| fleet.stat(index, "total_connections_received")).collect();
        let mut tasks = JoinSet::new();
        for task in 0..100 {
            let client = client.clone();
            tasks.spawn(async move {
                for n in 0..5 {
                    drop(client.on(format!("{task} {n}")).acquire().await.unwrap());
                }
            });
        }
        tasks.join_all().await;
        for (index, before) in before.into_iter().enumerate() {
            // One for the client, one for this test's looks.
            assert!(fleet.stat(index, "connected_clients") <= 2);
            assert_eq!(fleet.stat(index, "total_connections_received"), before);
        }
        // Others take every place before the client is back.
        fleet.hang_up([0]);
        let others: Vec<_> = (0..25).map(|_| fleet[0].wire()).collect();
        works(&client, 10).await;
        voters(&client, 4).await;
        drop(others);
        voters(&client, 5).await;
    });
}

// B72, rule 14
#[test]
fn missing_rights_are_told_with_the_acl_line_before_any_lock_is_taken() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell(
            0..5,
            &["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+set", "+get", "+ping", "+info", "+hello"],
        );
        let client = fleet.builder().credentials("lock", "pw").connect().await.unwrap();
        refused_with(&client, 0..5, "NOPERM").await;
        let lines = refusal(&client).await;
        assert!(
            lines.iter().all(|line| line.contains("ACL SETUSER <user>") && line.contains("+evalsha")),
            "{lines:#?}"
        );
        assert!(fleet.keys().is_empty());
        assert!((0..5).all(|index| fleet.calls(index, "set") == 0));
    });
}

/// Five masters without these commands, and a client of them.
async fn without(commands: &[&str]) -> (Testbed, Redlock) {
    let renamed = commands.iter().flat_map(|command| ["--rename-command", command, ""]);
    let bed = Testbed::builder().arguments(renamed).start().unwrap();
    let client = Redlock::builder().masters(bed.urls()).policy(policy()).connect().await.unwrap();
    (bed, client)
}

// B72: commands that were renamed away
#[test]
fn masters_without_scripts_are_told_before_any_lock_is_taken() {
    run(async {
        let (bed, client) = without(&["EVAL", "EVALSHA"]).await;
        refused_with(&client, 0..5, "unknown command").await;
        assert!(bed.masters().iter().all(|master| master.keys().unwrap().is_empty()));
    });
}

// B73: RESP2 alone
#[test]
fn masters_without_resp3_are_told_in_their_own_words() {
    run(async {
        let (bed, client) = without(&["HELLO"]).await;
        refused_with(&client, 0..5, "HELLO").await;
        assert!(bed.masters().iter().all(|master| master.keys().unwrap().is_empty()));
    });
}

// B72: rights that go away later
#[test]
fn a_minority_that_withdraws_rights_is_a_missing_vote() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell(0..5, &["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all"]);
        let client = client(fleet.builder().credentials("lock", "pw")).await;
        let guard = client.on("r").ttl(ms(2_900)).no_renewal().acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        fleet.tell(0..2, &["ACL", "SETUSER", "lock", "-set", "-eval", "-evalsha"]);
        works(&client, 10).await;
        guard.extend(ms(2_900)).await.unwrap();
        fleet.tell([2], &["ACL", "SETUSER", "lock", "-set", "-eval", "-evalsha"]);
        refused_with(&client, 0..3, "NOPERM").await;
        let Released::Lingering { on, .. } = guard.release().await else { panic!("three cannot delete") };
        assert!(on.len() == 3 && on.iter().all(|(_, answer)| answer.contains("NOPERM")), "{on:?}");
        fleet.tell(0..3, &["ACL", "SETUSER", "lock", "+@all"]);
        fleet.nothing_left(ms(2_000)).await;
    });
}

// Issue 2: OOM on some masters
#[test]
fn masters_without_memory_are_missing_votes() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let held = client.on("held").acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&held) == 5).await;
        (0..2).for_each(|index| assert!(fleet[index].inject(Fault::OutOfMemory).is_installed()));
        works(&client, 10).await;
        assert!(fleet[2].inject(Fault::OutOfMemory).is_installed());
        refused_with(&client, 0..3, "OOM").await;
        // What needs no memory goes on.
        held.extend(ms(2_900)).await.unwrap();
        assert!(held.release().await.is_freed());
        fleet.nothing_left(SOON).await;
        (0..3).for_each(|index| assert!(fleet[index].undo(Fault::OutOfMemory).is_installed()));
        voters(&client, 5).await;
    });
}

// Issue 2: MISCONF on some masters; B48
#[test]
fn masters_that_cannot_save_are_missing_votes() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let cannot_save = |index: usize| {
            fleet.tell([index], &["CONFIG", "SET", "save", "3600 1"]);
            std::fs::remove_dir_all(fleet[index].directory()).unwrap();
            fleet.ask(index, &["BGSAVE"]);
        };
        cannot_save(0);
        cannot_save(1);
        works(&client, 10).await;
        eventually("the save failed", SOON, || {
            (0..2).all(|index| fleet[index].info().unwrap()["rdb_last_bgsave_status"] == "err")
        })
        .await;
        works(&client, 10).await;
        cannot_save(2);
        refused_with(&client, 0..3, "MISCONF").await;
        fleet.tell(0..3, &["CONFIG", "SET", "save", ""]);
        voters(&client, 5).await;
        for index in 0..3 {
            std::fs::create_dir_all(fleet[index].directory()).unwrap();
        }
    });
}

// Rule 7: NOREPLICAS
#[test]
fn masters_that_miss_their_replicas_are_missing_votes() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.tell(0..2, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
        works(&client, 10).await;
        fleet.tell([2], &["CONFIG", "SET", "min-replicas-to-write", "1"]);
        refused_with(&client, 0..3, "NOREPLICAS").await;
        fleet.tell(0..3, &["CONFIG", "SET", "min-replicas-to-write", "0"]);
        voters(&client, 5).await;
    });
}

// Issue 2: "a key of another type (held, never deleted)"; DESIGN section 9
#[test]
fn a_key_of_another_type_is_held_and_never_touched() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for index in 0..3 {
            assert_eq!(fleet.ask(index, &["HSET", "r", "field", "1"]).integer(), Some(1));
        }
        contended(client.on("r").try_acquire().await.unwrap_err());
        let refusal = contended(client.on("r").wait(ms(400)).acquire().await.unwrap_err());
        assert!(refusal.to_string().contains("held by another without a ttl"), "{refusal}");
        eventually("rolled back", SOON, || fleet.occupied("r") == 0).await;
        // A `GET` of a hash is an error, so it counts as no key above.
        for index in 0..3 {
            assert_eq!(fleet.ask(index, &["TYPE", "r"]).text().as_deref(), Some("hash"));
            assert_eq!(fleet.ask(index, &["HLEN", "r"]).integer(), Some(1));
        }
        // On two masters it is in nobody's way, when renewing and releasing either.
        assert_eq!(fleet.ask(2, &["DEL", "r"]).integer(), Some(1));
        let guard = client.on("r").ttl(ms(900)).wait(ms(3_000)).acquire().await.unwrap();
        pause(ms(1_200)).await;
        assert!(guard.is_valid());
        assert!(guard.release().await.is_freed());
        pause(ms(50)).await;
        assert!((0..2).all(|index| fleet.ask(index, &["HLEN", "r"]).integer() == Some(1)));
    });
}

// Issue 2: "a foreign key without ttl (held, said so in the error)"; rule 16
#[test]
fn a_foreign_key_without_a_ttl_is_named_and_not_hammered() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.tell(0..5, &["SET", "r", "web-7:1"]);
        let refusal = contended(client.on("r").wait(ms(1_500)).acquire().await.unwrap_err());
        let text = refusal.to_string();
        assert!(text.contains("held by web-7:1 without a ttl"), "{text}");
        assert!(refusal.claims() <= 20, "{} claims in 1.5 s", refusal.claims());
        assert_eq!(fleet.holding("r", "web-7:1"), 5);
        fleet.tell(0..5, &["SET", "s", "web-7:1", "PX", "60000"]);
        let text = contended(client.on("s").wait(ms(300)).acquire().await.unwrap_err()).to_string();
        assert!(text.contains("held by web-7:1 for 5") || text.contains("held by web-7:1 for 60"), "{text}");
    });
}

// B88: what is away is not what is busy, whatever the wait.
#[test]
fn a_lock_held_where_it_counts_is_busy_also_with_two_masters_down() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.kill([3, 4]);
        fleet.occupy(0..3, "r");
        pause(ms(200)).await;
        let error = client.on("r").try_acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Contended(_)), "{error}");
    });
}

// B53
#[test]
fn masters_that_refuse_everything_are_not_hammered() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        fleet.tell(0..5, &["REPLICAOF", "127.0.0.1", "1"]);
        let before = fleet.stat(0, "total_connections_received");
        let refusal = no_quorum(client.on("r").wait(ms(2_000)).acquire().await.unwrap_err());
        // Pauses from a quarter of 25 ms to half a second.
        assert!((3..=60).contains(&refusal.claims()), "{} claims", refusal.claims());
        assert!(fleet.stat(0, "total_connections_received") - before < 15);
        fleet.kill(0..5);
        let (error, took) = timed(client.on("r").wait(ms(2_000)).acquire()).await;
        let refusal = no_quorum(error.unwrap_err());
        assert!((3..=60).contains(&refusal.claims()), "{} claims", refusal.claims());
        assert!(took < ms(3_500), "{took:?}");
    });
}
