//! Which masters may vote, and from when on (rule 14).

use std::net::TcpListener;
use std::time::Instant;

use quorlock::testbed::{Data, LocalMaster, ServerBinary};
use quorlock::{Abstention, Admission, ConnectError, Finding, HolderId, KeyState, Policy, Released};

use crate::fleet::{
    Fleet, Lock, Monitor, SOON, client, eventually, forgiving, ms, no_quorum, pause, policy, run, timed,
    voters,
};
use crate::proxy::Paths;
use crate::secrets::log;

const HASH: &str = "quorlock:admitted";
const QUARANTINE: &str = "quorlock:quarantine";

// Issue 2: "five fresh masters (the quarantine named, with `quorlock init`)"
#[test]
fn fresh_masters_abstain_and_the_error_says_until_when_and_what_to_do() {
    run(async {
        let fleet = Fleet::fresh(policy());
        let client = fleet.builder().connect().await.unwrap();
        let refusal = no_quorum(client.on("r").try_acquire().await.unwrap_err());
        let text = refusal.to_string();
        assert_eq!(text.matches("abstains for").count(), 5, "{text}");
        assert!(text.contains("quorlock init") && text.contains("5 of 5 reachable"), "{text}");
        assert!(!text.contains("busy"), "{text}");
        assert!(fleet.keys().is_empty());
        assert_eq!(fleet.calls_of_all("setnx"), 0);
        // Nothing was asked of them, least of all a vote.
        for index in 0..5 {
            assert_eq!(fleet.ask(index, &["EXISTS", "r"]).integer(), Some(0));
        }
    });
}

// Rule 14: it ends by itself, and one is enough for all
#[test]
fn a_quarantine_ends_by_itself_and_is_shared() {
    run(async {
        let fleet = Fleet::fresh(forgiving());
        let began = Instant::now();
        let first = fleet.builder().connect().await.unwrap();
        pause(ms(1_200)).await;
        let second = fleet.builder().connect().await.unwrap();
        for index in 0..5 {
            let left = fleet[index].pttl(QUARANTINE).unwrap();
            assert!(left < 900, "it began again: {left} ms");
        }
        no_quorum(second.lock("r").ttl(ms(1_000)).try_acquire().await.unwrap_err());
        for client in [&second, &first] {
            let guard = client.lock("r").ttl(ms(1_000)).wait(SOON).acquire().await.unwrap();
            let waited = began.elapsed();
            assert!(waited >= ms(2_022), "voted {waited:?} after the start");
            assert!(waited < ms(3_500), "{waited:?}");
            let _ = guard.release().await;
        }
        voters(&first, 5).await;
        for index in 0..5 {
            let run = fleet.ask(index, &["HGET", HASH, "run"]).text().unwrap();
            assert_eq!(run, fleet[index].run_id().unwrap());
        }
    });
}

// Rule 14, H15; B106
#[test]
fn a_master_that_restarted_abstains_for_the_longest_ttl_and_its_drift() {
    run(async {
        let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
        let fleet = Fleet::with_arguments(forgiving(), &arguments).await;
        let client = fleet.client().await;
        for with in [Data::Empty, Data::Kept] {
            let began = Instant::now();
            fleet[0].restart(with).unwrap();
            // It is back, takes deletes, and does not vote.
            eventually("it is in quarantine", SOON, || fleet[0].pttl(QUARANTINE).unwrap() > 0).await;
            while fleet[0].pttl(QUARANTINE).unwrap() > 100 {
                let guard = client.lock("r").ttl(ms(1_000)).wait(SOON).acquire().await.unwrap();
                pause(ms(10)).await;
                assert!(guard.votes() <= 4 && fleet[0].get("r").unwrap().is_none());
                let _ = guard.release().await;
            }
            voters(&client, 5).await;
            assert!(began.elapsed() >= ms(2_022), "{with:?}: {:?}", began.elapsed());
        }
    });
}

// B106, rule 14: the vote that a restarted master forgot is not given a second time while it counts
#[test]
fn a_restarted_voter_does_not_give_the_lock_away_again() {
    run(async {
        let fleet = Fleet::with(forgiving()).await;
        let paths = Paths::to(&fleet).await;
        let (holder, rival) = (client(fleet.builder().masters(paths.urls())).await, fleet.client().await);
        paths[3].be_silent(true);
        paths[4].be_silent(true);
        let guard = holder.lock("r").ttl(ms(2_000)).no_renewal().acquire().await.unwrap();
        eventually("three keys", SOON, || fleet.backing(&guard) == 3).await;
        // The holder hears nothing of it.
        paths[2].be_silent(true);
        fleet[2].restart(Data::Empty).unwrap();
        assert!(guard.is_valid(), "too slow to show anything");
        let request = rival.lock("r").ttl(ms(1_000));
        let mut tries = 0;
        let next = loop {
            tries += 1;
            match request.try_acquire().await {
                Ok(next) => break next,
                Err(_) => pause(ms(10)).await,
            }
        };
        assert!(!guard.is_valid(), "two holders at once, after {tries} tries");
        assert!(tries > 3);
        drop(next);
    });
}

// Rule 14: "in quarantine a master takes releases"
#[test]
fn a_master_in_quarantine_takes_releases() {
    run(async {
        let fleet = Fleet::fresh(policy());
        fleet.tell(0..5, &["SET", "r", "some:1/id", "PX", "60000"]);
        let client = fleet.builder().connect().await.unwrap();
        let id = HolderId::parse("some:1/id").unwrap();
        let released = client.release_as("r", &id).await.unwrap();
        assert!(matches!(released, Released::Freed { .. }), "{released:?}");
        fleet.nothing_left(SOON).await;
        assert!(fleet[0].pttl(QUARANTINE).unwrap() > 0, "the quarantine is over too soon");
    });
}

// Rule 14: a known process of a master votes at once, for a client that comes later too
#[test]
fn an_admitted_master_votes_at_once_for_every_client() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(20_000))).await;
        for _ in 0..3 {
            let (_, took) = timed(fleet.client()).await;
            assert!(took < ms(5_000), "{took:?}");
        }
        // Also after connections were lost.
        let client = fleet.client().await;
        fleet.hang_up(0..5);
        let (_, took) = timed(voters(&client, 5)).await;
        assert!(took < ms(5_000), "{took:?}");
    });
}

// Rule 14
#[test]
fn admission_off_lets_fresh_masters_vote_and_writes_no_hash() {
    run(async {
        let fleet = Fleet::fresh(policy());
        let client = client(fleet.builder().admission(Admission::Off)).await;
        let guard = client.on("r").try_acquire().await.unwrap();
        assert!(guard.release().await.is_freed());
        fleet.nothing_left(SOON).await;
        for master in fleet.masters() {
            assert!(!master.keys().unwrap().iter().any(|key| key.starts_with(b"quorlock:")));
        }
    });
}

// Rule 14: "Only claimers JOIN"
#[test]
fn a_client_for_releases_writes_nothing_but_deletes() {
    run(async {
        let fleet = Fleet::fresh(policy());
        fleet.tell(0..5, &["SET", "r", "some:1/id", "PX", "60000"]);
        let mut monitors: Vec<_> = fleet.masters().iter().map(Monitor::on).collect();
        let client = fleet.builder().releases_only().connect().await.unwrap();
        no_quorum(client.on("s").try_acquire().await.unwrap_err());
        let id = HolderId::parse("some:1/id").unwrap();
        assert!(matches!(client.release_as("r", &id).await.unwrap(), Released::Freed { deleted: 3.., .. }));
        fleet.nothing_left(SOON).await;
        for (monitor, master) in monitors.iter_mut().zip(fleet.masters()) {
            let writes = ["SET", "HSET", "PEXPIRE", "EXPIRE"];
            let heard = monitor.commands();
            assert!(!heard.iter().any(|heard| writes.iter().any(|write| heard.is(write))), "{heard:?}");
            assert!(master.keys().unwrap().is_empty());
        }
    });
}

// Rule 14: "`inspect` … never writes"
#[test]
fn an_inspection_tells_and_writes_nothing() {
    run(async {
        let fleet = Fleet::fresh(forgiving());
        let builder = fleet.builder();
        let seen = builder.inspect("r").await.unwrap();
        assert_eq!(seen.finding(&forgiving()), Finding::Free);
        assert!(seen.sightings.iter().all(|one| one.abstains == Some(Abstention::NeverAdmitted)), "{seen:?}");
        assert!(fleet.masters().iter().all(|master| master.keys().unwrap().is_empty()));
        let held = fleet.builder().connect().await.unwrap();
        let seen = builder.inspect("r").await.unwrap();
        let waits = |one: &quorlock::Sighting| matches!(one.abstains, Some(Abstention::Quarantined(_)));
        assert!(seen.sightings.iter().all(waits), "{seen:?}");
        let guard = held.lock("r").ttl(ms(1_900)).wait(SOON).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        fleet.kill([4]);
        let seen = builder.inspect("r").await.unwrap();
        let Finding::Held { holder, votes: 4, at_least: Some(left), .. } = seen.finding(&forgiving()) else {
            panic!("{seen:?}")
        };
        assert!(holder == guard.holder().as_bytes() && left <= ms(1_900) && left > ms(500));
        assert!(seen.sightings[4].key.is_err());
        fleet.ask(0, &["DEL", "r"]);
        fleet.ask(0, &["HSET", "r", "a", "b"]);
        let seen = builder.inspect("r").await.unwrap();
        assert!(matches!(seen.sightings[0].key, Ok(KeyState::OtherType { .. })), "{seen:?}");
    });
}

// Rule 14
#[test]
fn init_refuses_masters_that_are_known_or_away_and_changes_none() {
    run(async {
        let fleet = Fleet::fresh(policy());
        let init = || async {
            match fleet.builder().init().await {
                Ok(admitted) => Ok(admitted.len()),
                Err(ConnectError::Init(error)) => Err(error.to_string()),
                Err(other) => panic!("{other}"),
            }
        };
        let hashes = || {
            (0..5).filter(|index| matches!(fleet[*index].command(&["EXISTS", HASH]), Ok(reply) if reply.integer() == Some(1))).count()
        };
        fleet.kill([2]);
        let error = init().await.unwrap_err();
        assert!(
            error.contains(&fleet[2].address().to_string()) && error.contains("no master was admitted"),
            "{error}"
        );
        assert_eq!(hashes(), 0);
        fleet[2].restart(Data::Empty).unwrap();
        assert_eq!(fleet.ask(3, &["HSET", HASH, "run", "of old"]).integer(), Some(1));
        let error = init().await.unwrap_err();
        assert!(error.contains(&fleet[3].address().to_string()) && error.contains(HASH), "{error}");
        assert_eq!(error.lines().count(), 2, "{error}");
        assert_eq!(hashes(), 1);
        assert_eq!(fleet.ask(3, &["DEL", HASH]).integer(), Some(1));
        assert_eq!(init().await, Ok(5));
        let error = init().await.unwrap_err();
        assert_eq!(error.lines().count(), 6, "{error}");
        voters(&fleet.client().await, 5).await;
    });
}

// Rule 14: one longest ttl a fleet
#[test]
fn a_client_with_another_max_ttl_is_refused_with_both_numbers() {
    run(async {
        let fleet = Fleet::start().await;
        let odd = fleet.builder().policy(policy().with_max_ttl(ms(40_000))).connect().await.unwrap();
        let text = no_quorum(odd.on("r").try_acquire().await.unwrap_err()).to_string();
        assert_eq!(text.matches("30000 ms").count(), 5, "{text}");
        assert_eq!(text.matches("40000 ms").count(), 5, "{text}");
        assert!(fleet.keys().is_empty());
        voters(&fleet.client().await, 5).await;
    });
}

// Rule 14: role, cluster
#[test]
fn replicas_and_members_of_clusters_do_not_vote() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell([0], &["REPLICAOF", "127.0.0.1", &fleet[1].port().to_string()]);
        // By default its second port lies 10,000 above, where there may be none.
        let second = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let arguments = ["--cluster-enabled", "yes", "--cluster-port", &second];
        let cluster = LocalMaster::start(&ServerBinary::find().unwrap(), &arguments).unwrap();
        let mut urls = fleet.urls();
        urls[2] = cluster.url();
        urls[3] = "redis://127.0.0.1:1".to_owned();
        let client = fleet.builder().masters(urls).connect().await.unwrap();
        let mut text = String::new();
        // Until the client has seen them all.
        for _ in 0..100 {
            text = no_quorum(client.on("r").try_acquire().await.unwrap_err()).to_string();
            if text.contains("not master: a replica forgets") && text.contains("part of a cluster") {
                break;
            }
            pause(ms(50)).await;
        }
        assert!(text.contains("not master: a replica forgets"), "{text}");
        assert!(text.contains("part of a cluster"), "{text}");
        eventually("the replica follows", SOON, || fleet[0].info().unwrap()["role"] == "slave").await;
        assert!(cluster.keys().unwrap().is_empty());
    });
}

// Rule 14, B108: eviction is warned of
#[test]
fn a_master_that_may_evict_locks_votes_with_a_warning() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.tell([1], &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        let log = log();
        let client = fleet.client().await;
        let address = fleet[1].address().to_string();
        let warned =
            |line: &&str| line.contains("WARN") && line.contains(&address) && line.contains("noeviction");
        let text = log.since(0);
        let lines: Vec<_> = text.lines().filter(warned).collect();
        assert!(lines.len() == 1 && lines[0].contains("allkeys-lru"), "{lines:?}");
        voters(&client, 5).await;
    });
}

// B15, rule 14: one server under two names
#[test]
fn one_server_under_two_names_is_refused_with_both() {
    run(async {
        let fleet = Fleet::start().await;
        let paths = Paths::to(&fleet).await;
        let by_name = fleet.urls()[1].replace("127.0.0.1", "localhost");
        for twin in [by_name, paths[1].url(), format!("{}/3", paths[1].url())] {
            let mut urls = fleet.urls();
            urls[3] = twin;
            let error = fleet.builder().masters(&urls).connect().await.unwrap_err();
            let ConnectError::Twins { first, second, first_name, second_name } = &error else {
                panic!("{error}")
            };
            let mut both = [*first, *second];
            both.sort_unstable();
            assert_eq!(both, [2, 4]);
            let text = error.to_string();
            assert!(text.contains(first_name) && text.contains(second_name), "{text}");
            assert!(text.contains("one vote") && text.contains(&fleet[1].address().to_string()), "{text}");
        }
        let mut urls = fleet.urls();
        urls[0] = paths[4].url();
        let fresh = Fleet::fresh(policy());
        let mut list = fresh.urls();
        list.truncate(2);
        list.push(Paths::to(&fresh).await[0].url());
        let error = fresh.builder().masters(list).init().await.unwrap_err();
        assert!(matches!(error, ConnectError::Init(_)), "{error}");
    });
}

// B15: a twin that comes later
#[test]
fn a_server_that_turns_up_under_a_second_name_never_votes_twice() {
    run(async {
        let fleet = Fleet::start().await;
        let paths = Paths::to(&fleet).await;
        paths[0].be_silent(true);
        // One server under two names, and another: two servers must not make three votes.
        let urls = [
            fleet.urls()[0].clone(),
            paths[0].url(),
            fleet.urls()[1].clone(),
            "redis://127.0.0.1:1".to_owned(),
            "redis://127.0.0.1:2".to_owned(),
        ];
        let client = fleet.builder().masters(urls).connect().await.unwrap();
        no_quorum(client.on("r").try_acquire().await.unwrap_err());
        paths[0].be_silent(false);
        let mut told = false;
        for _ in 0..60 {
            let text = no_quorum(client.on("r").try_acquire().await.unwrap_err()).to_string();
            told |= text.contains("same server as m");
            pause(ms(50)).await;
        }
        assert!(told, "the twin was never named");
        fleet.nothing_left(SOON).await;
    });
}

// Rule 14: a reserved prefix on the masters is left alone by locks
#[test]
fn the_fleets_own_keys_survive_locks_of_all_kinds() {
    run(async {
        let fleet = Fleet::with(Policy::new().with_master_timeout(ms(300))).await;
        let client = fleet.client().await;
        for n in 0..20 {
            drop(client.lock(format!("quorlock {n}")).acquire().await.unwrap());
        }
        fleet.nothing_left(SOON).await;
        for index in 0..5 {
            let mut keys = fleet[index].keys().unwrap();
            keys.sort_unstable();
            assert_eq!(keys, [HASH.as_bytes(), b"quorlock:fence"]);
            assert_eq!(fleet[index].pttl(HASH).unwrap(), -1);
            assert_eq!(fleet.ask(index, &["HGET", HASH, "max_ttl"]).text().unwrap(), "60000");
        }
    });
}
