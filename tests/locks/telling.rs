//! What the log and the guards tell, and how often.

use std::time::Instant;

use quorlock::testbed::Data;
use quorlock::{Admission, Why};
use tokio::task::JoinSet;

use crate::fleet::{Fleet, Lock, client, ms, pause, run, voters};
use crate::secrets::log;

/// The lines that an operator sees, fred's among them, with this word.
fn loud(text: &str, word: &str) -> Vec<String> {
    // The level comes first, or after the time.
    let is_loud =
        |line: &&str| line.split_whitespace().take(2).any(|at| matches!(at, "INFO" | "WARN" | "ERROR"));
    text.lines().filter(|line| line.contains(word)).filter(is_loud).map(ToOwned::to_owned).collect()
}

// B95
#[test]
fn a_master_that_is_down_is_told_once_and_once_more_when_it_is_back() {
    run(async {
        let log = log();
        let fleet = Fleet::start().await;
        let client = client(fleet.builder().admission(Admission::Off)).await;
        let mut guards = Vec::new();
        for n in 0..20 {
            guards.push(client.on(format!("b95-{n}")).ttl(ms(900)).acquire().await.unwrap());
        }
        let address = fleet[0].address().to_string();
        let mark = log.len();
        fleet.kill([0]);
        let began = Instant::now();
        while began.elapsed() < ms(4_000) {
            for n in 0..20 {
                drop(client.on(format!("passing {n}")).acquire().await.unwrap());
            }
            pause(ms(100)).await;
        }
        let told = log.since(mark);
        assert!((1..=3).contains(&loud(&told, &address).len()), "{:#?}", loud(&told, &address));
        // Each lock once at most, and not once in each of thirteen rounds.
        let locks = loud(&told, "b95-");
        assert!(locks.len() <= 20, "{locks:#?}");
        assert_eq!(loud(&told, "passing").len(), 0, "what succeeds is no news");

        let mark = log.len();
        fleet[0].restart(Data::Empty).unwrap();
        voters(&client, 5).await;
        let back = loud(&log.since(mark), &address);
        assert!(back.len() == 1 && back[0].contains("down_ms="), "{back:#?}");
        assert!(guards.iter().all(|guard| guard.is_valid()));
    });
}

// B96
#[test]
fn a_loss_is_told_once_and_of_no_lock_that_was_given_back() {
    run(async {
        let log = log();
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let mark = log.len();
        let (mut released, mut dropped, mut lost, mut racing) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for n in 0..160 {
            let guard = client.on(format!("b96-{n}.")).ttl(ms(1_500)).acquire().await.unwrap();
            [&mut released, &mut dropped, &mut lost, &mut racing][n % 4].push(guard);
        }
        let holds = |guards: &[quorlock::Guard]| guards.iter().map(|guard| guard.hold()).collect::<Vec<_>>();
        let given_back: Vec<_> = holds(&released).into_iter().chain(holds(&dropped)).collect();
        let raced = holds(&racing);
        for guard in released {
            let _ = guard.release().await;
        }
        drop(dropped);
        let gone: Vec<_> = lost.iter().chain(&racing).map(|guard| guard.resource().to_vec()).collect();
        for index in 0..5 {
            let mut command = vec!["DEL"];
            command.extend(gone.iter().map(|key| std::str::from_utf8(key).unwrap()));
            fleet.ask(index, &command);
        }
        let mut releases = JoinSet::new();
        for (n, guard) in racing.into_iter().enumerate() {
            releases.spawn(async move {
                pause(ms(10 * n as u64)).await;
                guard.release().await
            });
        }
        for guard in &lost {
            assert_eq!(guard.lost().await.why(), Why::Vanished);
            // Who asks later hears it at once.
            let again = tokio::time::timeout(ms(200), guard.hold().lost()).await;
            assert_eq!(again.unwrap().why(), Why::Vanished);
        }
        releases.join_all().await;
        for hold in &given_back {
            assert_eq!(hold.lost().await.why(), Why::Released);
        }
        // What is told is told before a holder can hear of it.
        let errors: Vec<_> =
            log.since(mark).lines().filter(|line| line.contains("ERROR")).map(ToOwned::to_owned).collect();
        let told = |resource: &[u8]| {
            let name = std::str::from_utf8(resource).unwrap();
            errors.iter().filter(|line| line.contains(name)).count()
        };
        assert!(lost.iter().all(|guard| told(guard.resource()) == 1), "{errors:#?}");
        assert!(given_back.iter().all(|hold| told(hold.resource()) == 0), "{errors:#?}");
        for hold in &raced {
            let times = usize::from(hold.lost().await.why() != Why::Released);
            assert_eq!(told(hold.resource()), times, "{hold:?}");
        }
    });
}
