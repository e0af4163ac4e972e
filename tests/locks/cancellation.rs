//! Futures dropped, guards dropped anywhere, runtimes ended, processes stopped and killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorlock::{AcquireError, Guard, Released, UsingError, Why};
use tokio::task::JoinSet;

use crate::fleet::{
    Fleet, Lock, Monitor, SOON, client, contended, eventually, ms, pause, policy, run, timed,
};
use crate::proxy::Paths;

// B82, rule 6; issue 2: "after any … cancelled acquire no reachable master keeps the key"
#[test]
fn a_dropped_acquire_leaves_no_key_and_no_renewal() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(30_000)).with_master_timeout(ms(500))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        paths.0.iter().for_each(|path| path.delay_replies(ms(3)));
        paths.0.iter().for_each(|path| path.delay_requests(ms(2)));
        let mut tasks = JoinSet::new();
        for n in 0..400_u64 {
            let request = client.lock(format!("r{n}")).ttl(ms(30_000));
            let patience = Duration::from_micros(n * 37 % 12_000);
            match n % 3 {
                0 => drop(
                    tasks.spawn(async move { drop(tokio::time::timeout(patience, request.acquire()).await) }),
                ),
                1 => drop(tasks.spawn(async move {
                    tokio::select! {
                        _ = request.acquire() => {}
                        () = pause(patience) => {}
                    }
                })),
                _ => {
                    let task = tokio::spawn(async move { request.acquire().await });
                    drop(tasks.spawn(async move {
                        pause(patience).await;
                        task.abort();
                        let _ = task.await;
                    }));
                }
            }
        }
        tasks.join_all().await;
        fleet.nothing_left(ms(3_000)).await;
        paths.0.iter().for_each(|path| path.delay_replies(ms(0)));
        paths.0.iter().for_each(|path| path.delay_requests(ms(0)));
        let mut monitor = Monitor::on(&fleet[0]);
        pause(ms(300)).await;
        let heard = monitor.commands();
        assert!(!heard.iter().any(|heard| heard.is("SET") || heard.is("PEXPIRE")), "{heard:?}");
        for n in 0..400 {
            drop(client.lock(format!("r{n}")).ttl(ms(30_000)).try_acquire().await.unwrap());
        }
        fleet.nothing_left(SOON).await;
    });
}

// B82, rule 6: also of masters that were silent when it was dropped
#[test]
fn an_acquire_dropped_over_slow_masters_is_undone_when_they_answer() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(20_000))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        paths.0.iter().for_each(|path| path.delay_replies(ms(150)));
        for n in 0..20 {
            let request = client.lock(format!("r{n}")).ttl(ms(20_000));
            assert!(tokio::time::timeout(ms(10), request.acquire()).await.is_err());
        }
        fleet.nothing_left(ms(3_000)).await;
    });
}

async fn five(fleet: &Fleet, guard: &Guard) {
    eventually("five keys", SOON, || fleet.backing(guard) == 5).await;
}

// B84, rule 12; issue 2: "dropping a `Guard` outside a runtime does not panic"
#[test]
fn a_guard_may_be_dropped_anywhere_while_the_runtime_lives() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("thread").acquire().await.unwrap();
        five(&fleet, &guard).await;
        std::thread::spawn(move || drop(guard)).join().unwrap();
        fleet.nothing_left(ms(1_000)).await;

        let guard = client.on("blocking").acquire().await.unwrap();
        tokio::task::spawn_blocking(move || drop(guard)).await.unwrap();
        fleet.nothing_left(ms(1_000)).await;

        let guard = client.on("unwinding").acquire().await.unwrap();
        let unwound = std::thread::spawn(move || {
            let _guard = guard;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(unwound.join().is_err());
        fleet.nothing_left(ms(1_000)).await;

        let guard = client.on("task").acquire().await.unwrap();
        let task = tokio::spawn(async move {
            let _guard = guard;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(task.await.is_err());
        fleet.nothing_left(ms(1_000)).await;

        let guard = client.on("other runtime").acquire().await.unwrap();
        std::thread::spawn(move || {
            let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            other.block_on(async { drop(guard) });
        })
        .join()
        .unwrap();
        fleet.nothing_left(ms(1_000)).await;
    });
}

// B84, B85, rule 12; issue 2
#[test]
fn a_guard_may_be_dropped_after_its_runtime_and_the_ttl_ends_the_lock() {
    run(async {
        let fleet = Fleet::start().await;
        std::thread::scope(|scope| {
            for way in 0..4 {
                let fleet = &fleet;
                scope.spawn(move || {
                    let builder = if way % 2 == 0 {
                        tokio::runtime::Builder::new_current_thread().enable_all().build()
                    } else {
                        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
                    };
                    let runtime = builder.unwrap();
                    let (guard, client) = runtime.block_on(async {
                        let client = fleet.client().await;
                        let guard = client.on(format!("r{way}")).ttl(ms(900)).acquire().await.unwrap();
                        five(fleet, &guard).await;
                        (guard, client)
                    });
                    if way == 0 {
                        // Inside the ending runtime's block_on it is dropped last of all.
                        drop(runtime);
                    } else if way == 1 {
                        runtime.shutdown_timeout(ms(100));
                    } else {
                        runtime.shutdown_background();
                    }
                    assert!(guard.remaining() <= ms(900));
                    let hold = guard.hold();
                    if way == 3 {
                        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                            let _guard = guard;
                            std::panic::resume_unwind(Box::new("on purpose"));
                        }));
                        assert!(unwound.is_err());
                    } else {
                        drop(guard);
                    }
                    assert!(!hold.is_valid());
                    drop(client);
                });
            }
        });
        // Nobody renews it.
        fleet.nothing_left(ms(1_500)).await;
    });
}

// B85
#[test]
fn a_runtime_ends_at_once_with_locks_held_and_a_master_frozen() {
    run(async {
        let fleet = Fleet::start().await;
        fleet.freeze([0]);
        let (took, hold) = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let runtime = tokio::runtime::Runtime::new().unwrap();
                    let hold = runtime.block_on(async {
                        let client = fleet.builder().connect().await.unwrap();
                        let guard = client.on("r").ttl(ms(900)).wait(SOON).acquire().await.unwrap();
                        let hold = guard.hold();
                        std::mem::forget(guard);
                        hold
                    });
                    let began = Instant::now();
                    runtime.shutdown_timeout(ms(100));
                    (began.elapsed(), hold)
                })
                .join()
                .unwrap()
        });
        assert!(took < ms(1_000), "{took:?}");
        pause(ms(1_000)).await;
        assert!(!hold.is_valid());
        fleet.thaw([0]);
        fleet.nothing_left(ms(2_000)).await;
    });
}

/// The urls of the masters, for a holder in a process of its own.
const HOLDER_OF: &str = "QUORLOCK_TEST_HOLDER_OF";

/// A holder in another process: this test binary, which finds the urls in its environment.
struct Holder {
    child: Child,
    said: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Holder {
    fn start(fleet: &Fleet, test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(HOLDER_OF, fleet.urls().join(","))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    /// The next line with this word.
    fn says(&mut self, word: &str) -> String {
        self.said.by_ref().map(Result::unwrap).find(|line| line.contains(word)).expect("it says so")
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a holder does: takes the lock, renews it, and as soon as it is not his, tells what he finds.
async fn hold(urls: String) {
    let builder = quorlock::Redlock::builder().masters(urls.split(',')).policy(policy());
    let client = client(builder).await;
    let guard = client.on("r").ttl(ms(1_000)).acquire().await.unwrap();
    println!("\nholds {}", guard.holder());
    let mut last = Instant::now();
    loop {
        // A blocking sleep: no timer of the runtime helps the look that follows it.
        std::thread::sleep(ms(5));
        let valid = guard.is_valid();
        if last.elapsed() > ms(1_500) {
            let (lost, took) = timed(guard.lost()).await;
            println!("\nlooked: valid {valid}, {:?}, told after {} ms", lost.why(), took.as_millis());
            println!("\nreleased: {:?}", matches!(guard.release().await, Released::AlreadyLost(_)));
            pause(ms(500)).await;
            println!("\ndone");
            return;
        }
        last = Instant::now();
        tokio::task::yield_now().await;
    }
}

// B43; issue 2: "a frozen holder sees its loss at its first look"
#[test]
fn a_frozen_holder_sees_its_loss_at_its_first_look_and_harms_nobody() {
    if let Ok(urls) = std::env::var(HOLDER_OF) {
        return run(hold(urls));
    }
    run(async {
        let fleet = Fleet::start().await;
        let rival = fleet.client().await;
        let test = "cancellation::a_frozen_holder_sees_its_loss_at_its_first_look_and_harms_nobody";
        let mut holder = Holder::start(&fleet, test);
        holder.says("holds");
        // It is renewed.
        pause(ms(1_500)).await;
        contended(rival.on("r").try_acquire().await.unwrap_err());
        holder.signal("-STOP");
        let began = Instant::now();
        let next = rival.on("r").ttl(ms(2_900)).wait(SOON).acquire().await.unwrap();
        pause(ms(2_000).saturating_sub(began.elapsed())).await;
        eventually("five keys", SOON, || fleet.backing(&next) == 5).await;
        holder.signal("-CONT");
        let looked = holder.says("looked");
        assert!(looked.contains("valid false, Expired"), "{looked}");
        let told: u64 = looked.split(' ').rev().nth(1).unwrap().parse().unwrap();
        assert!(told < 100, "{looked}");
        assert!(holder.says("released").contains("true"));
        holder.says("done");
        assert!(next.is_valid());
        assert_eq!(fleet.backing(&next), 5);
    });
}

// B86
#[test]
fn a_killed_holders_lock_ends_with_its_ttl() {
    if let Ok(urls) = std::env::var(HOLDER_OF) {
        return run(hold(urls));
    }
    run(async {
        let fleet = Fleet::start().await;
        let rival = fleet.client().await;
        for _ in 0..2 {
            let test = "cancellation::a_killed_holders_lock_ends_with_its_ttl";
            let mut holder = Holder::start(&fleet, test);
            holder.says("holds");
            pause(ms(700)).await;
            holder.signal("-KILL");
            let (next, took) = timed(rival.on("r").wait(SOON).acquire()).await;
            // The ttl of 1 s, and the longest pause between claims.
            assert!(took > ms(300) && took < ms(2_500), "{took:?}");
            assert!(next.unwrap().release().await.is_freed());
            fleet.nothing_left(SOON).await;
        }
    });
}

// B87
#[test]
fn closing_gives_back_what_is_held_and_ends_all_waits() {
    run(async {
        // Waiters sleep long, unless they are told.
        let fleet = Fleet::with(policy().with_backoff(ms(8_000), ms(8_000))).await;
        let client = fleet.client().await;
        let mut guards = Vec::new();
        for n in 0..10 {
            guards.push(client.on(format!("r{n}")).acquire().await.unwrap());
        }
        let mut waiting = JoinSet::new();
        for n in 0..100 {
            let request = client.on(format!("r{}", n % 10)).wait(ms(30_000));
            waiting.spawn(async move { request.acquire().await });
        }
        pause(ms(200)).await;
        fleet.freeze([0]);
        let (report, took) = timed(client.close()).await;
        assert_eq!((report.released, report.lingering, report.lost), (10, 0, 0));
        assert!(took < ms(1_500), "{took:?}");
        let (ended, took) = timed(waiting.join_all()).await;
        assert!(took < ms(1_000), "{took:?}");
        assert!(ended.iter().all(|end| matches!(end, Err(AcquireError::Closed))), "{:?}", ended[0]);
        for guard in &guards {
            assert!(!guard.is_valid());
            assert_eq!(guard.lost().await.why(), Why::Released);
            assert!(guard.extend(ms(2_000)).await.is_err());
        }
        assert!(matches!(client.on("new").acquire().await, Err(AcquireError::Closed)));
        drop(guards);
        fleet.thaw([0]);
        fleet.nothing_left(SOON).await;
        let again = fleet.client().await;
        drop(again.on("r1").try_acquire().await.unwrap());
    });
}

// B87: claims on their way while the client closes end as closed, or as locks that still can be given back
#[test]
fn closing_amid_claims_leaves_no_key() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(20_000))).await;
        for round in 0..10_u64 {
            let client = fleet.client().await;
            let mut tasks = JoinSet::new();
            for n in 0..60 {
                let request = client.lock(format!("r{n}")).ttl(ms(20_000));
                tasks.spawn(async move {
                    loop {
                        match request.acquire().await {
                            Ok(guard) => drop(guard),
                            Err(AcquireError::Closed) => return,
                            Err(AcquireError::NoQuorum(_) | AcquireError::Contended(_)) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                });
            }
            pause(ms(20 + round)).await;
            let _ = client.close().await;
            let (_, took) = timed(tasks.join_all()).await;
            assert!(took < ms(2_000), "{took:?}");
            eventually("no key after closing", ms(1_000), || fleet.keys().is_empty()).await;
        }
    });
}

// B89, rule 10
#[test]
fn using_cancels_the_work_when_the_lock_is_lost_and_tells_the_cases_apart() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let request = client.on("r").ttl(ms(900));
        let done = request.using(async |hold| (hold.is_valid(), 7)).await;
        assert!(matches!(done, Ok((true, 7))));
        fleet.nothing_left(SOON).await;

        fleet.occupy(0..5, "r");
        let busy = request.clone().wait(ms(0)).using(async |_| panic!("it began")).await;
        assert!(matches!(busy, Err(UsingError::NotAcquired(AcquireError::Contended(_)))));
        fleet.tell(0..5, &["FLUSHDB"]);

        let lose = || {
            for index in 0..5 {
                fleet.ask(index, &["DEL", "r"]);
            }
        };
        let cancelled = request
            .using(async |_| {
                lose();
                std::future::pending::<()>().await;
            })
            .await;
        assert!(matches!(cancelled, Err(UsingError::Cancelled(lost)) if lost.why() == Why::Vanished));
        // Work that ends without looking keeps its result.
        let late = request
            .using(async |_| {
                std::thread::sleep(ms(1_000));
                lose();
                fleet.freeze(0..5);
                std::thread::sleep(ms(1_200));
                7
            })
            .await;
        fleet.thaw(0..5);
        assert!(matches!(late, Err(UsingError::LostMeanwhile { output: 7, .. })), "{late:?}");
    });
}
