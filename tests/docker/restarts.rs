//! A rolling restart of everything under a held lock.

use std::time::Duration;

use crate::bed::{Bed, MAX_TTL, bounded, client, eventually};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "on containers: sh docker/run.sh test"]
async fn a_rolling_restart_of_all_five_leaves_a_held_lock_held() {
    bounded(async {
        let bed = Bed::fresh().await;
        let redlock = client(&bed.urls).await;
        let other = client(&bed.urls).await;
        let guard = redlock.lock("rolling").ttl(MAX_TTL).acquire().await.unwrap();
        let holder = guard.holder().to_string();
        for master in 1..=5 {
            // With nothing of what it had, which is the worst.
            bed.done(master, "restart-empty");
            assert!(guard.is_valid(), "lost when m{master} restarted");
            // The next one only when this one votes again and has the key again: that is what rolling means.
            eventually("the key is healed", MAX_TTL * 4, async || {
                bed.ask(master, &["GET", "rolling"]).text().is_some_and(|value| value == holder)
            })
            .await;
            let refused = other.lock("rolling").ttl(Duration::from_secs(2)).try_acquire().await;
            assert!(refused.is_err(), "two holders after the restart of m{master}");
        }
        assert!(guard.is_valid());
        assert_eq!(bed.copies("rolling"), 5);
        assert!(guard.release().await.is_freed());
        eventually("all copies are gone", MAX_TTL * 2, async || bed.copies("rolling") == 0).await;
        assert!(other.lock("rolling").ttl(MAX_TTL).acquire().await.unwrap().release().await.is_freed());
    })
    .await;
}
