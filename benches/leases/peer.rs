//! The same by `rslock`: a task a lock, which renews it while its work goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorlock::testbed::Testbed;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::masters::Count;
use crate::{Failure, Options, millis, resident};

/// It renews so long before the validity ends.
const AHEAD: Duration = Duration::from_millis(500);

pub(crate) async fn row(bed: &Testbed, options: &Options) -> Result<Value, Failure> {
    let urls = bed.urls();
    let manager = Arc::new(rslock::LockManager::new(urls.iter().map(String::as_str).collect()));
    // A ttl with which it renews as often as we do, drift and a round trip added.
    let period = options.ttl / 3;
    let ttl = period + AHEAD + (period + AHEAD).mul_f64(0.0102) + Duration::from_millis(3);
    let (end, ended) = watch::channel(false);
    let (weight, began) = (resident()?, Instant::now());
    let mut tasks = JoinSet::new();
    for nth in 0..options.locks {
        let (manager, mut ended, name) = (manager.clone(), ended.clone(), options.name(nth));
        tasks.spawn(async move {
            let work = async || ended.wait_for(|ended| *ended).await.is_ok();
            manager.using(name.as_bytes(), ttl, work).await.unwrap_or(false)
        });
        // Some at a time, as many as ours.
        if nth % 64 == 63 {
            sleep(Duration::from_millis(2)).await;
        }
    }
    sleep(period).await;
    let (taken, weight) = (began.elapsed(), resident()?.saturating_sub(weight));
    for master in bed.masters().iter().rev().take(options.frozen) {
        master.freeze()?;
    }
    let counted = Count::while_(bed, sleep(options.time)).await?;
    end.send(true)?;
    let lost = tasks.join_all().await.into_iter().filter(|held| !held).count();
    let mut row = json!({
        "rslock": true,
        "locks": options.locks,
        "ttl_s": ttl.as_secs_f64(),
        "frozen": options.frozen,
        "taken_ms": millis(taken),
        "bytes_each": weight / options.locks as u64,
        "lost": lost,
    });
    counted.tell(&mut row);
    Ok(row)
}
