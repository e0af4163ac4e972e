//! Each fault with its own outcome; and with any one of them in force at one master, locks are had.

use std::time::Duration;

use tokio::time::Instant;

use quorlock::Redlock;
use quorlock::testbed::{Fault, Outcome, Reply};

use crate::bed::{Bed, bounded, client, docker, eventually, wire};

const TTL: Duration = Duration::from_secs(4);

async fn a_lock_is_had(redlock: &Redlock, under: &str) {
    let guard = redlock
        .lock("under-fault")
        .ttl(TTL)
        .acquire()
        .await
        .unwrap_or_else(|error| panic!("{under}: {error}"));
    let released = guard.release().await;
    assert!(released.is_freed(), "{under}: {released:?}");
}

/// The remaining ttl of the key that `set` made.
fn pttl(bed: &Bed, master: usize) -> i64 {
    bed.ask(master, &["PTTL", "a"]).integer().unwrap()
}

fn set(bed: &Bed, master: usize, key: &str) {
    assert!(bed.ask(master, &["SET", key, "1", "PX", "600000"]).is_ok());
}

fn has(bed: &Bed, master: usize, key: &str) -> bool {
    bed.ask(master, &["EXISTS", key]) == Reply::Integer(1)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn one_master_broken_in_any_way_is_one_vote_less() {
    bounded(async {
        let bed = Bed::fresh().await;
        let redlock = client(&bed.urls).await;
        a_lock_is_had(&redlock, "nothing").await;
        for word in [
            "kill",
            "freeze",
            "cut",
            "slow=300",
            "lose-replies",
            "lose-requests",
            "blackhole",
            "refuse",
            "clock-step=3600000",
            "clock-slew=100000",
            "pause-writes",
            "out-of-memory",
        ] {
            let broken = bed.broken(2, word);
            for _ in 0..3 {
                a_lock_is_had(&redlock, word).await;
            }
            broken.undone();
        }
        for word in
            ["reset", "flush", "snapshot", "restart-empty", "restart-with-data", "restart-old-snapshot"]
        {
            bed.done(2, word);
            a_lock_is_had(&redlock, word).await;
        }
        eventually("all five vote again, and nothing is left", Duration::from_secs(20), async || {
            let guard = redlock.lock("after").ttl(TTL).acquire().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            let votes = guard.votes();
            assert!(guard.release().await.is_freed());
            votes == 5
        })
        .await;
        eventually("no key is left", TTL * 2, async || bed.copies("under-fault") == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_process_that_dies_comes_back_with_what_was_asked_for() {
    bounded(async {
        let bed = Bed::fresh().await;
        let run = || bed.ask(3, &["INFO", "server"]).text().unwrap();
        set(&bed, 3, "old");
        bed.done(3, "snapshot");
        set(&bed, 3, "new");

        let before = run();
        let down = bed.broken(3, "kill");
        assert!(bed.wire(3).is_err());
        assert!(matches!(bed.containers.inject(3, Fault::Kill), Outcome::Skipped { .. }));
        assert!(matches!(bed.containers.inject(3, Fault::Flush), Outcome::Skipped { .. }));
        down.undone();
        assert!(has(&bed, 3, "old") && has(&bed, 3, "new"));
        assert_ne!(run(), before);

        bed.done(3, "restart-with-data");
        assert!(has(&bed, 3, "old") && has(&bed, 3, "new"));
        bed.done(3, "restart-old-snapshot");
        assert!(has(&bed, 3, "old") && !has(&bed, 3, "new"));
        bed.done(3, "restart-empty");
        assert!(!has(&bed, 3, "old") && !has(&bed, 3, "new"));
        // A frozen one, too.
        set(&bed, 3, "old");
        let frozen = bed.broken(3, "freeze");
        bed.done(3, "restart-empty");
        assert!(!has(&bed, 3, "old"));
        frozen.undone();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn what_happens_on_the_way_happens_there_alone() {
    bounded(async {
        let bed = Bed::fresh().await;
        let through = |command: &'static [&'static str]| {
            let mut wire = wire(&bed.urls[3]).unwrap();
            wire.set_patience(Duration::from_millis(500)).unwrap();
            let asked = Instant::now();
            (wire.command(command), asked.elapsed())
        };
        let slow = bed.broken(4, "slow=60");
        let (pong, took) = through(&["PING"]);
        assert!(pong.is_ok() && took >= Duration::from_millis(120), "{took:?}");
        slow.undone();

        let lost = bed.broken(4, "lose-replies");
        assert!(through(&["SET", "applied", "1"]).0.is_err());
        assert!(has(&bed, 4, "applied"));
        lost.undone();
        let lost = bed.broken(4, "lose-requests");
        assert!(through(&["SET", "never", "1"]).0.is_err());
        assert!(!has(&bed, 4, "never"));
        lost.undone();
        let hole = bed.broken(4, "blackhole");
        assert!(through(&["PING"]).0.is_err());
        hole.undone();

        let mut open = wire(&bed.urls[3]).unwrap();
        assert!(open.command(&["PING"]).is_ok());
        let refuse = bed.broken(4, "refuse");
        // Where a port is published by a process of the engine's, that accepts before it is refused itself.
        assert!(wire(&bed.urls[3]).and_then(|mut wire| wire.command(&["PING"])).is_err());
        assert!(open.command(&["PING"]).is_ok(), "what was open stays open");
        refuse.undone();
        bed.done(4, "reset");
        assert!(open.command(&["PING"]).is_err());
        assert!(through(&["PING"]).0.is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn clocks_memory_and_writes_fail_as_told() {
    bounded(async {
        let bed = Bed::fresh().await;
        let settle = || std::thread::sleep(Duration::from_millis(20));
        set(&bed, 5, "a");
        let clock = bed.broken(5, "clock-step=300000");
        settle();
        assert!((200_000..=300_000).contains(&pttl(&bed, 5)), "{}", pttl(&bed, 5));
        clock.undone();
        settle();
        assert!((500_000..=600_000).contains(&pttl(&bed, 5)), "{}", pttl(&bed, 5));
        let clock = bed.broken(5, "clock-slew=900000");
        let before = pttl(&bed, 5);
        std::thread::sleep(Duration::from_secs(2));
        let ran = before - pttl(&bed, 5);
        assert!(ran > 3_500, "the clock ran {ran} ms in two seconds");
        clock.undone();

        let full = bed.broken(5, "out-of-memory");
        assert!(matches!(bed.ask(5, &["SET", "b", "1"]), Reply::Error(error) if error.starts_with("OOM")));
        full.undone();
        let paused = bed.broken(5, "pause-writes=60000");
        let mut wire = bed.wire(5).unwrap();
        wire.set_patience(Duration::from_millis(300)).unwrap();
        assert!(wire.command(&["SET", "b", "1"]).is_err());
        paused.undone();
        set(&bed, 5, "b");
        bed.done(5, "flush");
        assert!(!has(&bed, 5, "b"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn status_shows_all_and_a_fault_ends_with_its_command() {
    bounded(async {
        let bed = Bed::fresh().await;
        let frozen = bed.broken(1, "freeze");
        let slow = bed.broken(2, "slow=50");
        let status = bed.containers.status().unwrap();
        let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("m1").contains("frozen") && line("m2").contains("slow=50"), "{status}");
        assert!(line("m3").contains("master") && line("r1").contains("slave"), "{status}");
        slow.undone();
        frozen.undone();

        let state = |nth: &str| {
            let output = docker(&["inspect", "-f", "{{.State.Status}}", &bed.name(nth)]);
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/docker/faults.sh");
        let mut held = std::process::Command::new("sh")
            .args([script, "m3", "freeze"])
            .env("QUORLOCK_PROJECT", bed.containers.project())
            .spawn()
            .unwrap();
        eventually("m3 is frozen", Duration::from_secs(20), async || state("m3") == "paused").await;
        let interrupt = format!("kill -TERM {}", held.id());
        assert!(std::process::Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        assert_eq!(held.wait().unwrap().code(), Some(143));
        assert_eq!(state("m3"), "running");
    })
    .await;
}
