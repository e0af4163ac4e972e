//! Pitfall 5: a replica that takes over knows nothing of the last writes.

use std::time::Duration;

use quorlock::{AcquireError, Admission, Redlock};

use crate::bed::{Bed, bounded, client, docker_ok, eventually, policy};

const TTL: Duration = Duration::from_secs(4);

async fn on_one_master(bed: &Bed) -> Redlock {
    Redlock::builder()
        .masters(&bed.urls[..1])
        .policy(policy())
        .admission(Admission::Off)
        .connect()
        .await
        .unwrap()
}

/// Replication is late: what is written from now on does not reach the replica.
fn cut_replication(bed: &Bed) {
    docker_ok(&["network", "disconnect", &bed.name("lock"), &bed.name("r1")]);
}

async fn replica_is_in_step(bed: &Bed) {
    eventually("the replica is in step", Duration::from_secs(30), async || {
        let info = bed.ask(1, &["INFO", "replication"]).text().unwrap();
        info.contains("state=online")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_promoted_replica_loses_the_lock_of_a_single_master_and_not_that_of_five() {
    bounded(async {
        let bed = Bed::fresh().await;
        replica_is_in_step(&bed).await;
        cut_replication(&bed);
        let (alone, other_alone) = (on_one_master(&bed).await, on_one_master(&bed).await);
        let (five, other_five) = (client(&bed.urls).await, client(&bed.urls).await);
        let single = alone.lock("on-one").ttl(TTL).no_renewal().acquire().await.unwrap();
        let quorum = five.lock("on-five").ttl(TTL).acquire().await.unwrap();

        let promoted = bed.broken(1, "promote-replica");
        let second = other_alone.lock("on-one").ttl(TTL).wait(Duration::from_secs(3)).acquire().await;
        // This is what the test is about: on a single master with a replica, two hold one lock.
        assert!(second.is_ok() && single.is_valid(), "the failover was too slow to show it: {second:?}");

        assert!(quorum.is_valid());
        let refused = other_five.lock("on-five").ttl(TTL).wait(Duration::from_secs(1)).acquire().await;
        assert!(matches!(refused, Err(AcquireError::Contended(_))), "{refused:?}");
        tokio::time::sleep(TTL).await;
        assert!(quorum.is_valid(), "four masters remember");
        assert!(quorum.release().await.is_freed());
        promoted.undone();
        replica_is_in_step(&bed).await;
    })
    .await;
}
