//! Cuts between single clients and single masters: each client has proxies of its own here.

use std::time::Duration;

use quorlock::testbed::{Fault, Proxy};
use quorlock::{AcquireError, Redlock};

use crate::bed::{Bed, bounded, client, eventually};

/// As long as the fleet allows: a busy machine must not end a lock by itself.
const TTL: Duration = crate::bed::MAX_TTL;

struct Side {
    ways: Vec<Proxy>,
    redlock: Redlock,
}

impl Side {
    async fn of(bed: &Bed) -> Self {
        let mut ways = Vec::new();
        for url in &bed.direct {
            ways.push(Proxy::start(url).await.unwrap());
        }
        let urls: Vec<String> = ways.iter().map(Proxy::url).collect();
        Self { redlock: client(&urls).await, ways }
    }

    /// From these masters, counted from 1.
    async fn cut(&self, masters: impl IntoIterator<Item = usize>) {
        for master in masters {
            let _ = self.ways[master - 1].inject(Fault::Cut).await;
        }
    }

    async fn join(&self) {
        for way in &self.ways {
            let _ = way.inject(Fault::Join).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_client_cut_off_from_a_minority_locks_and_one_from_a_majority_does_not() {
    bounded(async {
        let bed = Bed::fresh().await;
        let (few, many) = (Side::of(&bed).await, Side::of(&bed).await);
        few.cut([1, 2]).await;
        many.cut([3, 4, 5]).await;

        let refused = many.redlock.lock("cut").ttl(TTL).wait(Duration::from_millis(1_500)).acquire().await;
        assert!(matches!(refused, Err(AcquireError::NoQuorum(_))), "{refused:?}");
        let guard = few.redlock.lock("cut").ttl(TTL).wait(Duration::from_secs(20)).acquire().await.unwrap();
        assert_eq!(guard.votes(), 3);
        tokio::time::sleep(TTL * 2).await;
        assert!(guard.is_valid(), "three masters renew as well as five");

        // What the other side's claims left on their way arrives now, and harms nobody. It has to connect anew first.
        many.join().await;
        eventually("the other side is told who holds it", Duration::from_secs(20), async || {
            match many.redlock.lock("cut").ttl(TTL).wait(Duration::from_millis(500)).acquire().await {
                Err(AcquireError::Contended(_)) => true,
                Err(AcquireError::NoQuorum(_)) => false,
                other => panic!("{other:?}"),
            }
        })
        .await;
        assert!(guard.is_valid());
        few.join().await;
        assert!(guard.release().await.is_freed());
        assert!(many.redlock.lock("cut").ttl(TTL).acquire().await.unwrap().release().await.is_freed());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_holder_cut_off_from_a_majority_is_told_before_the_next_one_begins() {
    bounded(async {
        let bed = Bed::fresh().await;
        let (first, second) = (Side::of(&bed).await, Side::of(&bed).await);
        let guard = first.redlock.lock("handed").ttl(TTL).acquire().await.unwrap();
        first.cut([1, 2, 3]).await;
        let hold = guard.hold();
        let request = second.redlock.lock("handed").ttl(TTL).wait(Duration::from_secs(20));
        let next = request.acquire();
        let next = async {
            let next = next.await.unwrap();
            assert!(!hold.is_valid(), "two holders at once");
            next
        };
        let (lost, next) = tokio::join!(guard.lost(), next);
        assert_eq!(guard.remaining(), Duration::ZERO, "{lost}");

        // Renewals of the first that were held up arrive now. They compare before they touch.
        first.join().await;
        tokio::time::sleep(TTL / 2).await;
        assert!(next.is_valid());
        let holder = next.holder().to_string();
        eventually("the second has its key on all masters", TTL * 4, async || {
            (1..=5)
                .all(|master| bed.ask(master, &["GET", "handed"]).text().is_some_and(|value| value == holder))
        })
        .await;
        assert!(next.release().await.is_freed());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn containers_cut_off_for_everybody_are_no_quorum_and_come_back() {
    bounded(async {
        let bed = Bed::fresh().await;
        let redlock = client(&bed.urls).await;
        let cuts = [bed.broken(1, "cut"), bed.broken(2, "cut")];
        let guard = redlock.lock("everybody").ttl(TTL).acquire().await.unwrap();
        let third = bed.broken(3, "cut");
        let _ = guard.lost().await;
        let refused = redlock.lock("everybody").ttl(TTL).wait(Duration::from_secs(1)).acquire().await;
        assert!(matches!(refused, Err(AcquireError::NoQuorum(_))), "{refused:?}");
        third.undone();
        let next = redlock.lock("everybody").ttl(TTL).wait(Duration::from_secs(30)).acquire().await.unwrap();
        cuts.into_iter().for_each(super::bed::Broken::undone);
        assert!(next.release().await.is_freed());
    })
    .await;
}
