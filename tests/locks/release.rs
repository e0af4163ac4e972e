//! Giving a lock back.

use quorlock::{ExtendError, HolderId, Released, Why};

use crate::fleet::{Fleet, Lock, SOON, client, contended, eventually, ms, pause, policy, run, timed};
use crate::proxy::Paths;

// Rule 12
#[test]
fn a_release_frees_the_lock_on_all_masters_and_for_all() {
    run(async {
        let fleet = Fleet::start().await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        for n in 0..50 {
            let guard = client.on("r").acquire().await.unwrap();
            let released = guard.release().await;
            assert!(released.is_freed(), "round {n}: {released:?}");
            // At once, and by somebody else: no key of ours stands in the way on w masters.
            drop(rival.on("r").wait(ms(500)).acquire().await.unwrap());
            eventually("released", SOON, || fleet.occupied("r") == 0).await;
        }
    });
}

// B44
#[test]
fn an_expired_holder_does_not_release_the_next_one() {
    run(async {
        let fleet = Fleet::start().await;
        let (client, rival) = (fleet.client().await, fleet.client().await);
        for n in 0..4 {
            let key = format!("r{n}");
            let old = client.on(&key).ttl(ms(400)).no_renewal().acquire().await.unwrap();
            pause(ms(395 + 10 * n)).await;
            let new = rival.on(&key).wait(ms(2_000)).acquire().await.unwrap();
            assert!(!old.is_valid());
            let hold = old.hold();
            let Released::AlreadyLost(lost) = old.release().await else { panic!("it was not lost") };
            assert_eq!(lost.why(), Why::Expired);
            assert_eq!(hold.lost().await.why(), Why::Expired);
            pause(ms(50)).await;
            assert!(fleet.backing(&new) >= 3);
            contended(client.on(&key).try_acquire().await.unwrap_err());
            assert!(new.release().await.is_freed());
        }
    });
}

// B45: a second release is impossible by move; what another process could do under the same id is this.
#[test]
fn releasing_again_finds_nothing_and_harms_nobody() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").acquire().await.unwrap();
        let id = guard.holder().clone();
        assert!(guard.release().await.is_freed());
        eventually("released", SOON, || fleet.occupied("r") == 0).await;
        assert!(matches!(client.release_as("r", &id).await, Ok(Released::Freed { deleted: 0, .. })));
        let next = client.on("r").acquire().await.unwrap();
        assert!(matches!(client.release_as("r", &id).await, Ok(Released::Freed { deleted: 0, .. })));
        pause(ms(50)).await;
        assert_eq!(fleet.backing(&next), 5);
    });
}

// B46
#[test]
fn releasing_an_expired_lock_takes_no_retries() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(350))).await;
        let client = fleet.client().await;
        for frozen in [false, true] {
            let guard = client.on("r").ttl(ms(500)).no_renewal().acquire().await.unwrap();
            if frozen {
                fleet.freeze([0, 1]);
            }
            pause(ms(600)).await;
            let (released, took) = timed(guard.release()).await;
            assert!(matches!(released, Released::AlreadyLost(_)), "{released:?}");
            assert!(took < ms(700), "{took:?}");
        }
    });
}

// B48
#[test]
fn a_refused_release_names_the_masters_that_keep_the_key() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").acquire().await.unwrap();
        let id = guard.holder().to_string();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        fleet.tell(0..3, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
        let (released, took) = timed(guard.release()).await;
        let Released::Lingering { on, up_to } = released else { panic!("{released:?}") };
        assert!(took < ms(800), "{took:?}");
        assert!(up_to > ms(5_000) && up_to <= ms(16_000), "{up_to:?}");
        let named: Vec<_> = on.iter().map(|(master, _)| master.clone()).collect();
        assert_eq!(named, client.masters()[..3]);
        assert!(on.iter().all(|(_, answer)| answer.contains("NOREPLICAS")), "{on:?}");
        // The others are free, nothing is renewed, and the client goes on until all are.
        eventually("two are free", SOON, || fleet.holding("r", &id) <= 3).await;
        fleet.tell(0..3, &["CONFIG", "SET", "min-replicas-to-write", "0"]);
        fleet.nothing_left(SOON).await;
    });
}

// B49, rule 12
#[test]
fn silent_masters_get_the_delete_when_they_come_back() {
    run(async {
        let fleet = Fleet::with(policy().with_max_ttl(ms(20_000))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        let guard = client.on("r").ttl(ms(20_000)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        fleet.freeze([0]);
        paths[1].be_silent(true);
        let (released, took) = timed(guard.release()).await;
        let Released::Freed { deleted: 3, pending } = released else { panic!("{released:?}") };
        assert_eq!(pending, client.masters()[..2]);
        assert!(took < ms(300), "{took:?}");
        drop(client.on("r").ttl(ms(900)).try_acquire().await.unwrap());
        fleet.thaw([0]);
        paths[1].be_silent(false);
        fleet.nothing_left(SOON).await;
    });
}

// B50, rule 18
#[test]
fn a_set_still_on_its_way_does_not_outlive_the_release() {
    run(async {
        let fleet = Fleet::with(policy().with_master_timeout(ms(900))).await;
        let paths = Paths::to(&fleet).await;
        let client = client(fleet.builder().masters(paths.urls())).await;
        paths[3].delay_requests(ms(200));
        paths[4].delay_requests(ms(200));
        for n in 0..60 {
            let guard = client.on(format!("r{n}")).ttl(ms(3_000)).acquire().await.unwrap();
            assert!(guard.release().await.is_freed());
        }
        pause(ms(500)).await;
        // Long before the ttl could end them.
        fleet.nothing_left(ms(1_500)).await;
    });
}

// Rule 12: one lease's renewing, releasing and vanishing cannot race.
#[test]
fn a_guard_of_a_vanished_lock_says_so_when_released() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        let guard = client.on("r").ttl(ms(900)).acquire().await.unwrap();
        eventually("five keys", SOON, || fleet.backing(&guard) == 5).await;
        (0..5).for_each(|index| assert_eq!(fleet.ask(index, &["DEL", "r"]).integer(), Some(1)));
        assert_eq!(guard.lost().await.why(), Why::Vanished);
        let hold = guard.hold();
        assert!(
            matches!(guard.extend(ms(900)).await, Err(ExtendError::Lost(lost)) if lost.why() == Why::Vanished)
        );
        let Released::AlreadyLost(lost) = guard.release().await else { panic!("it was lost") };
        assert_eq!(lost.why(), Why::Vanished);
        // Nor does a worker hear of it as of a lock given back.
        assert_eq!(hold.lost().await.why(), Why::Vanished);
        fleet.nothing_left(SOON).await;
    });
}

#[test]
fn another_client_extends_and_releases_under_the_holders_id() {
    run(async {
        let fleet = Fleet::start().await;
        let id = {
            let client = fleet.client().await;
            let guard = client.on("r").ttl(ms(1_500)).acquire().await.unwrap();
            eventually("five votes", SOON, || guard.votes() == 5).await;
            guard.abandon()
        };
        let other = fleet.client().await;
        let taken = other.extend_as("r", &id, ms(2_900)).await.unwrap();
        assert!(taken.is_valid() && taken.remaining() > ms(1_500));
        assert_eq!(fleet.backing(&taken), 5);
        taken.abandon();
        let wrong = HolderId::parse("somebody else").unwrap();
        let error = other.extend_as("r", &wrong, ms(2_900)).await.unwrap_err();
        assert!(matches!(error, ExtendError::Unconfirmed { .. } | ExtendError::Lost(_)), "{error:?}");
        assert!(other.extend_as("absent", &id, ms(2_900)).await.is_err());
        assert_eq!(fleet.occupied("absent"), 0, "an extension creates no key");
        let _ = other.release_as("r", &wrong).await.unwrap();
        assert_eq!(fleet.holding("r", id.as_bytes()), 5);
        let released = other.release_as("r", &id).await.unwrap();
        assert!(matches!(released, Released::Freed { deleted: 3.., .. }), "{released:?}");
        fleet.nothing_left(SOON).await;
    });
}

// Rule 12, B87
#[test]
fn a_wait_for_a_release_that_is_dropped_releases_all_the_same() {
    run(async {
        let fleet = Fleet::start().await;
        let client = fleet.client().await;
        for n in 0..30 {
            let guard = client.on(format!("r{n}")).acquire().await.unwrap();
            let release = guard.release();
            if n % 3 == 0 {
                drop(release);
            } else {
                let _ = tokio::time::timeout(ms(n % 3 - 1), release).await;
            }
        }
        fleet.nothing_left(ms(1_500)).await;
    });
}
