//! Other languages' clients on the same five masters (DESIGN section 8 and 9).
//!
//! They need Python with the packages of `mixed/requirements.txt`, named by `QUORLOCK_PYTHON`; ignored unless asked for.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use quorlock::Released;

use crate::fleet::{Fleet, Lock, SOON, contended, eventually, ms, pause, run};

/// The libraries that lock as we do.
const LIBRARIES: [&str; 2] = ["redlock-py", "pottery"];
/// Pottery puts `redlock:` before each name; the others do not mind.
const KEY: &str = "redlock:order";

/// A process that locks by another library.
struct Other {
    child: Child,
    ear: ChildStdin,
    mouth: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(fleet: &Fleet, library: &str) -> Self {
        let python = std::env::var_os("QUORLOCK_PYTHON")
            .expect("QUORLOCK_PYTHON: a Python that has the packages of tests/locks/mixed/requirements.txt");
        let mut child = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/locks/mixed/contender.py"))
            .arg(library)
            .args(fleet.urls())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (ear, mouth) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut other = Self { child, ear, mouth: BufReader::new(mouth).lines() };
        assert_eq!(other.says(), "ready");
        other
    }

    fn hears(&mut self, order: &str) {
        writeln!(self.ear, "{order}").unwrap();
    }

    fn says(&mut self) -> String {
        self.mouth.next().expect("it ended, and its last words are above").unwrap()
    }

    fn answers(&mut self, order: &str) -> String {
        self.hears(order);
        self.says()
    }

    fn acquires(&mut self, ttl_ms: u64) -> bool {
        match self.answers(&format!("acquire {KEY} {ttl_ms}")).as_str() {
            "won" => true,
            "refused" => false,
            other => panic!("{other}"),
        }
    }

    fn releases(&mut self) {
        assert_eq!(self.answers("release"), "released");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs Python with redlock-py and pottery: QUORLOCK_PYTHON"]
fn others_and_ours_exclude_each_other() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for library in LIBRARIES {
            let mut other = Other::start(&fleet, library);
            let ours = client.on(KEY).acquire().await.unwrap();
            eventually("five keys", SOON, || fleet.backing(&ours) == 5).await;
            assert!(!other.acquires(20_000), "{library} entered while we hold it");
            // Its clean-up after the refusal compares, too.
            assert_eq!(fleet.backing(&ours), 5, "{library} deleted our keys");
            assert!(ours.release().await.is_freed());
            eventually("released", SOON, || fleet.occupied(KEY) == 0).await;

            assert!(other.acquires(20_000), "{library} finds no quorum after our release");
            eventually("five keys", SOON, || fleet.occupied(KEY) == 5).await;
            let value = fleet[0].get(KEY).unwrap().unwrap();
            let refusal = contended(client.on(KEY).try_acquire().await.unwrap_err());
            assert!(refusal.tally().held().len() >= 3, "{refusal}");
            // After a refusal claims read who holds it; whatever that value is, it is shown.
            let refusal = contended(client.on(KEY).wait(ms(400)).acquire().await.unwrap_err());
            assert!(refusal.to_string().contains(std::str::from_utf8(&value).unwrap()), "{refusal}");
            assert_eq!(fleet.holding(KEY, &value), 5, "we deleted the keys of {library}");
            other.releases();
            drop(client.on(KEY).wait(SOON).acquire().await.unwrap());
            fleet.nothing_left(SOON).await;
        }
    });
}

#[test]
#[ignore = "needs Python with redlock-py and pottery: QUORLOCK_PYTHON"]
fn who_expired_deletes_no_lock_of_the_next_whichever_library_that_is() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for library in LIBRARIES {
            let mut other = Other::start(&fleet, library);
            assert!(other.acquires(500));
            let ours = client.on(KEY).wait(SOON).acquire().await.unwrap();
            eventually("the old keys are gone", SOON, || fleet.backing(&ours) == fleet.occupied(KEY)).await;
            let had = fleet.backing(&ours);
            other.releases();
            assert_eq!(fleet.backing(&ours), had, "{library} deleted our keys");
            assert!(ours.is_valid() && ours.release().await.is_freed());
            eventually("released", SOON, || fleet.occupied(KEY) == 0).await;

            let ours = client.on(KEY).ttl(ms(600)).no_renewal().acquire().await.unwrap();
            pause(ms(700)).await;
            assert!(other.acquires(20_000), "{library} finds no quorum after our expiry");
            eventually("five keys", SOON, || fleet.occupied(KEY) == 5).await;
            let value = fleet[0].get(KEY).unwrap().unwrap();
            assert!(matches!(ours.release().await, Released::AlreadyLost(_)));
            pause(ms(200)).await;
            assert_eq!(fleet.holding(KEY, &value), 5, "we deleted the keys of {library}");
            other.releases();
            fleet.nothing_left(SOON).await;
        }
    });
}

#[test]
#[ignore = "needs Python with redlock-py and pottery: QUORLOCK_PYTHON"]
fn a_crowd_of_three_libraries_never_has_two_inside() {
    const TURNS: usize = 15;
    run(async {
        let fleet = Fleet::start().await;
        let directory = tempfile::tempdir().unwrap();
        let flag = directory.path().join("inside");
        let mut others: Vec<_> = LIBRARIES.iter().map(|library| Other::start(&fleet, library)).collect();
        for other in &mut others {
            other.hears(&format!("crowd {KEY} {} {TURNS}", flag.display()));
        }
        let mut ours = Vec::new();
        for _ in 0..2 {
            let (client, flag) = (fleet.client().await, flag.clone());
            ours.push(tokio::spawn(async move {
                for _ in 0..TURNS {
                    let guard = client.on(KEY).wait(ms(50_000)).acquire().await.unwrap();
                    std::fs::File::create_new(&flag).expect("somebody else is inside");
                    pause(ms(3)).await;
                    std::fs::remove_file(&flag).unwrap();
                    let _ = guard.release().await;
                    // The others do not wait in a queue: they need a moment in which it is free.
                    pause(ms(30)).await;
                }
            }));
        }
        for task in ours {
            task.await.unwrap();
        }
        for (other, library) in others.iter_mut().zip(LIBRARIES) {
            assert_eq!(other.says(), "done", "{library}");
        }
        fleet.nothing_left(SOON).await;
    });
}
