//! Many leases of one client: renewed together, harmed by no other, and ended together.

use std::time::Instant;

use futures::future::join_all;
use quorlock::testbed::{Data, Reply};
use quorlock::{Admission, Guard, LockRequest, Redlock, Why};
use tokio::task::JoinSet;

use crate::fleet::{Fleet, SOON, client, eventually, ms, pause, policy, run, timed};
use crate::secrets::log;

/// As many as a debug build on a busy machine takes in a second or two. `benches/leases` has ten thousand for ten minutes.
const MANY: usize = 2_000;

/// Locks on `name(0)` and so on, some at a time.
async fn take(client: &Redlock, count: usize, ttl: u64, name: impl Fn(usize) -> String) -> Vec<Guard> {
    take_all(count, |nth| client.lock(name(nth)).ttl(ms(ttl))).await
}

async fn take_all(count: usize, request: impl Fn(usize) -> LockRequest) -> Vec<Guard> {
    let mut tasks = JoinSet::new();
    let mut guards = Vec::new();
    for nth in 0..count {
        let request = request(nth);
        tasks.spawn(async move { request.acquire().await.unwrap() });
        if tasks.len() == 64 {
            guards.push(tasks.join_next().await.unwrap().unwrap());
        }
    }
    guards.extend(tasks.join_all().await);
    guards
}

/// How many are valid.
fn valid(guards: &[Guard]) -> usize {
    guards.iter().filter(|guard| guard.is_valid()).count()
}

/// Of this process, in bytes.
fn resident() -> usize {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap();
    told.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

/// Of each script's call that a master noted: microseconds, the number of keys, the first key's bytes.
fn calls(fleet: &Fleet, index: usize) -> Vec<(i64, usize, usize)> {
    let Reply::Array(entries) = fleet.ask(index, &["SLOWLOG", "GET", "-1"]) else { panic!("no log") };
    let call = |entry: &Reply| {
        let Reply::Array(fields) = entry else { panic!("no entry") };
        let Reply::Array(words) = &fields[3] else { panic!("no words") };
        let words: Vec<String> = words.iter().map(|word| word.text().unwrap()).collect();
        // "xxx… (372 more bytes)"
        let bytes = |word: &str| match word.rsplit_once("... (") {
            Some((begin, more)) => begin.len() + more.split(' ').next().unwrap().parse::<usize>().unwrap(),
            None => word.len(),
        };
        let is_call = words[0].eq_ignore_ascii_case("EVALSHA");
        is_call.then(|| (fields[2].integer().unwrap(), words[2].parse().unwrap(), bytes(&words[3])))
    };
    entries.iter().filter_map(call).collect()
}

// Rule 18: a call is bounded by keys and by bytes
#[test]
fn no_call_holds_a_master_for_a_millisecond_however_long_the_names_are() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for (bytes, most) in [(24, 64), (700, 44), (4_000, 8)] {
            let name = |nth: usize| format!("{nth:0bytes$}");
            let guards = take(&client, 400, 4_500, name).await;
            fleet.tell(0..5, &["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
            fleet.tell(0..5, &["CONFIG", "SET", "slowlog-max-len", "100000"]);
            fleet.tell(0..5, &["SLOWLOG", "RESET"]);
            pause(ms(3_200)).await;
            for index in 0..5 {
                let mut calls = calls(&fleet, index);
                calls.retain(|(_, _, first)| *first == bytes);
                let renewed: usize = calls.iter().map(|(_, keys, _)| keys).sum();
                assert!(renewed >= 400, "{renewed} renewals");
                let largest = *calls.iter().map(|(_, keys, _)| keys).max().unwrap();
                assert!(largest <= most && largest * 2 > most, "{largest} of {bytes} bytes in one call");
                // A single one may be interrupted by whatever else this machine does; most are not.
                calls.sort_unstable();
                let micros = calls[calls.len() / 2].0;
                println!(
                    "m{}: {} calls of {bytes} bytes a key, half of them within {micros} µs",
                    index + 1,
                    calls.len()
                );
                assert!(micros < 1_000, "{micros} µs a call");
            }
            assert_eq!(valid(&guards), 400);
            drop(guards);
            fleet.nothing_left(SOON).await;
        }
    });
}

// Rule 18: each key is judged by itself, also among renewals
#[test]
fn one_bad_lease_among_many_spoils_no_other() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(1_000))).await;
        fleet.tell(0..5, &["ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all"]);
        let client = client(fleet.builder().credentials("lock", "pw")).await;
        let guards = take(&client, 256, 4_500, |nth| format!("lease:{nth}")).await;
        let bad = take(&client, 3, 4_500, |nth| ["a-hash", "forbidden", "no-room"][nth].to_owned()).await;
        let of = |name: &str| bad.iter().find(|guard| guard.resource() == name.as_bytes()).unwrap();
        // One is another type's on all masters; of one the user loses the right; and one is to be healed where
        // nothing new may be written.
        for index in 0..5 {
            fleet.ask(index, &["DEL", "a-hash"]);
            fleet.ask(index, &["HSET", "a-hash", "field", "1"]);
        }
        for index in [0, 1] {
            // First, lest it is healed in between.
            fleet.tell([index], &["CONFIG", "SET", "maxmemory", "1"]);
            fleet.ask(index, &["DEL", "no-room"]);
        }
        let rules = ["ACL", "SETUSER", "lock", "resetkeys", "~quorlock:*", "~lease:*", "~a-hash", "~no-room"];
        fleet.tell(0..5, &rules);
        let before = (fleet.calls(4, "evalsha"), fleet.calls(4, "pexpire"));
        assert_eq!(of("a-hash").lost().await.why(), Why::Vanished);
        assert_eq!(of("forbidden").lost().await.why(), Why::Expired);
        // Two of the old deadlines have passed.
        pause(ms(5_000)).await;
        assert_eq!(valid(&guards), 256);
        assert!(guards.iter().all(|guard| guard.votes() == 5), "all five masters confirmed");
        let room = of("no-room");
        assert_eq!((room.is_valid(), room.votes(), fleet.backing(room)), (true, 3, 3));
        let (calls, renewed) = (fleet.calls(4, "evalsha") - before.0, fleet.calls(4, "pexpire") - before.1);
        assert!(renewed >= 3 * 256 && calls < renewed, "{renewed} renewals in {calls} calls");
        fleet.tell([0, 1], &["CONFIG", "SET", "maxmemory", "0"]);
        eventually("it is created anew", SOON, || fleet.backing(room) == 5).await;
    });
}

// B25
#[test]
fn many_leases_outlive_a_frozen_and_a_dead_master() {
    run(async {
        let fleet = Fleet::start().await;
        let client = client(fleet.builder().admission(Admission::Off)).await;
        let guards = take(&client, MANY, 4_500, |nth| format!("lease:{nth}")).await;
        let frozen = fleet.calls(0, "evalsha");
        fleet.freeze([0]);
        fleet.kill([1]);
        // The connection to the frozen one is given up, and the first backlog with it.
        pause(ms(3_000)).await;
        let (weight, renewed) = (resident(), fleet.calls(2, "pexpire"));
        pause(ms(8_000)).await;
        let renewed = fleet.calls(2, "pexpire") - renewed;
        assert!(renewed >= 4 * MANY as u64, "{renewed} renewals in more than five periods");
        let grown = resident().saturating_sub(weight);
        println!("{grown} bytes more after {renewed} renewals");
        assert!(grown < 4 << 20, "{grown} bytes more");
        assert_eq!(valid(&guards), MANY);
        // What it finds in its sockets when it thaws is what was sent before, and not what was due since.
        fleet.thaw([0]);
        pause(ms(50)).await;
        assert!(guards.iter().all(Guard::is_valid));
        eventually("it has the leases again", SOON, || fleet.calls(0, "evalsha") > frozen + 30).await;
        assert_eq!(valid(&guards), MANY);
    });
}

// B25, rule 18: without a connection nothing queues
#[test]
fn no_renewal_asked_of_an_absent_master_reaches_it_when_it_is_back() {
    run(async {
        // Long enough for whatever queued in its absence to be of use after it.
        let policy = policy().with_master_timeout(ms(15_000));
        let fleet = Fleet::with_arguments(policy, &["--appendonly", "yes"]).await;
        let client = fleet.builder().admission(Admission::Off).connect().await.unwrap();
        let request = |nth: usize| client.lock(format!("lease:{nth}")).ttl(ms(30_000)).no_renewal();
        let guards = take_all(MANY, request).await;
        fleet.kill([1]);
        // What is under way on a connection that ends is lost with it; then there is none.
        pause(ms(500)).await;
        let extended = join_all(guards.iter().map(|guard| guard.extend(ms(30_000)))).await;
        assert!(extended.iter().all(Result::is_ok));
        for index in [0, 2, 3, 4] {
            eventually("it has them all", SOON, || fleet.calls(index, "pexpire") == MANY as u64).await;
        }
        fleet[1].restart(Data::Kept).unwrap();
        let back = fleet.calls(1, "set");
        // A claim that arrives has gone behind all that waited.
        for nth in MANY.. {
            let guard = request(nth).try_acquire().await.unwrap();
            pause(ms(20)).await;
            drop(guard);
            if fleet.calls(1, "set") > back {
                break;
            }
        }
        assert_eq!(fleet.calls(1, "pexpire"), 0);
        assert_eq!(valid(&guards), MANY);
    });
}

// B82 with many, rule 12
#[test]
fn many_guards_dropped_at_once_leave_nothing_and_travel_together() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guards = take(&client, MANY, 30_000, |nth| format!("lease:{nth}")).await;
        let before = fleet.calls_of_all("evalsha");
        let began = Instant::now();
        drop(guards);
        let dropped = began.elapsed();
        fleet.nothing_left(SOON).await;
        let calls = fleet.calls_of_all("evalsha") - before;
        println!("dropped in {dropped:?}, {calls} calls");
        assert!(calls < 5 * MANY as u64 / 16, "{calls} calls");
        assert!(client.lock("lease:0").try_acquire().await.is_ok());
    });
}

// B87 with many
#[test]
fn closing_gives_many_leases_back_also_with_a_frozen_master() {
    run(async {
        let fleet = Fleet::start().await;
        for frozen in [false, true] {
            let client = fleet.client().await;
            let guards = take(&client, MANY, 30_000, |nth| format!("lease:{nth}")).await;
            eventually("all have them", SOON, || {
                fleet.keys().len() == MANY && guards.iter().all(|g| g.votes() == 5)
            })
            .await;
            if frozen {
                fleet.freeze([2]);
            }
            let (report, took) = timed(client.close()).await;
            println!("{report:?} in {took:?}");
            assert_eq!(report.released + report.lingering, MANY);
            assert!(took < SOON, "{took:?}");
            fleet.thaw([2]);
            // The frozen one finds some deletes in its sockets; the others are left to the ttl, as told.
            let stay = |index: usize| {
                let keys = fleet[index].keys().unwrap();
                keys.iter().filter(|key| key.starts_with(b"lease:")).count()
            };
            for index in [0, 1, 3, 4] {
                assert!(frozen || stay(index) == 0);
                eventually("no lease is left", SOON, || stay(index) == 0).await;
            }
            assert!(guards.iter().all(|guard| !guard.is_valid()));
        }
    });
}

// B95, B96 with many: three masters are gone
#[test]
fn many_losses_at_once_are_told_to_each_holder_and_do_not_flood_the_log() {
    run(async {
        let log = log();
        let fleet = Fleet::start().await;
        let client = client(fleet.builder().admission(Admission::Off)).await;
        let guards = take(&client, MANY, 4_500, |nth| format!("b96-many-{nth}")).await;
        let mark = log.len();
        fleet.freeze(0..3);
        let mut tasks = JoinSet::new();
        for guard in guards {
            tasks.spawn(async move {
                let why = guard.lost().await.why();
                drop(guard);
                why
            });
        }
        let told = tasks.join_all().await;
        assert!(told.len() == MANY && told.iter().all(|why| *why == Why::Expired));
        // At most ten seconds until they are summed up.
        let lines = |level: &str, word: &str| {
            let log = log.since(mark);
            log.lines().filter(|line| line.contains(level) && line.contains(word)).count()
        };
        eventually("the sum", ms(14_000), || lines("ERROR", "more locks than were named") == 1).await;
        assert_eq!(lines("ERROR", "b96-many-"), 100);
        assert!(lines("WARN", "b96-many-") <= 100);
        assert_eq!(lines("DEBUG", "why=Expired"), MANY - 100, "the others for whoever wants to know");
        fleet.thaw(0..3);
        fleet.nothing_left(SOON).await;
    });
}
