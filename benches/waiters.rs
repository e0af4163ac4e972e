//! Ten thousand who wait, on one resource and on as many: what one of them weighs, and what it asks the masters.
//!
//! ```text
//! cargo bench --features testbed --bench waiters
//! ```
//!
//! How fast a lock goes from hand to hand is measured by `quorlock bench --profile handoff`.
#![allow(clippy::disallowed_methods, reason = "stopwatches and short-lived tasks; no lock rests on them")]
#![allow(clippy::cast_precision_loss, reason = "counts of some thousands")]

use std::time::{Duration, Instant};

use quorlock::Redlock;
use quorlock::testbed::Testbed;
use serde_json::json;
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const WAITERS: usize = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let bed = Testbed::start(5)?;
    Redlock::builder().masters(bed.urls()).init().await?;
    for (what, distinct) in [("one resource", false), ("10,000 resources", true)] {
        let client = Redlock::connect(bed.urls()).await?;
        let name = |nth: usize| if distinct { format!("crowd:{nth}") } else { "crowd".to_owned() };
        let names: Vec<String> = (0..if distinct { WAITERS } else { 1 }).map(name).collect();
        for master in bed.masters() {
            let mut wire = master.wire()?;
            for name in &names {
                wire.command(&["SET", name, "somebody", "PX", "600000"])?;
            }
        }
        let (before, asked) = (resident()?, commands(&bed)?);
        let mut waiters = JoinSet::new();
        for nth in 0..WAITERS {
            let request = client.lock(name(nth)).wait(Duration::from_secs(600));
            waiters.spawn(async move {
                let guard = request.acquire().await?;
                drop(guard);
                Ok::<_, quorlock::AcquireError>(())
            });
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (weight, asking) = (resident()?.saturating_sub(before), commands(&bed)? - asked);
        let began = Instant::now();
        let delete: Vec<&str> = std::iter::once("DEL").chain(names.iter().map(String::as_str)).collect();
        for master in bed.masters() {
            master.command(&delete)?;
        }
        let failed = waiters.join_all().await.into_iter().filter(Result::is_err).count();
        let row = json!({
            "waiters_on": what,
            "bytes_each": weight / WAITERS as u64,
            "commands_each_in_3_s": asking as f64 / WAITERS as f64,
            "all_served_ms": began.elapsed().as_secs_f64() * 1e3,
            "failed": failed,
        });
        println!("{row}");
        let _ = client.close().await;
    }
    Ok(())
}

/// The memory of this process that is in use.
fn resident() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = status.split(' ').nth(1).ok_or("no resident size")?.parse()?;
    Ok(pages * 4096)
}

/// SETs and scripts that the masters have run.
fn commands(bed: &Testbed) -> Result<u64, Failure> {
    let mut calls = 0;
    for master in bed.masters() {
        let info = master.info()?;
        for name in ["cmdstat_set", "cmdstat_evalsha"] {
            let text = info.get(name).map_or("calls=0", String::as_str);
            calls += text.split([',', '=']).nth(1).ok_or("no calls")?.parse::<u64>()?;
        }
    }
    Ok(calls)
}
