//! Pitfall 5: a replica that takes over knows nothing of the last writes.

use std::time::Duration;

use quorlock::AcquireError;

use crate::bed::{Bed, bounded, client, docker_ok, eventually, wire};

const TTL: Duration = Duration::from_secs(4);

/// What any lock on a single master comes to.
fn on_one_master(bed: &Bed, holder: &str) -> bool {
    let mut wire = wire(&bed.urls[0]).unwrap();
    wire.command(&["SET", "on-one", holder, "NX", "PX", "600000"]).unwrap().is_ok()
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
        let (five, other_five) = (client(&bed.urls).await, client(&bed.urls).await);
        assert!(on_one_master(&bed, "first") && !on_one_master(&bed, "second"));
        let quorum = five.lock("on-five").ttl(TTL).acquire().await.unwrap();

        let promoted = bed.broken(1, "promote-replica");
        // This is what the test is about: on a single master with a replica, two hold one lock.
        assert!(on_one_master(&bed, "second"), "the replica had the key: replication was not cut");

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
