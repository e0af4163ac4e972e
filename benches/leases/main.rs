//! Many leases of one client, held and renewed for as long as you like, on five masters of this machine: whether one is lost,
//! what a lease weighs, what a renewal costs, and for how long a call holds a master.
//!
//! ```text
//! cargo bench --features testbed --bench leases -- [--locks 10000] [--ttl 30] [--seconds 60] [--frozen 1] [--key-bytes 16]
//! cargo bench --features testbed,peers --bench leases -- --rslock [--locks 1000]
//! ```
//!
//! `--frozen` stops so many masters for the whole time. `--rslock` has that library hold them, each in its `using`, and
//! renew as often. It ends with 1 if a lease was lost.
#![allow(clippy::disallowed_methods, reason = "stopwatches and short-lived tasks; no lock rests on them")]
#![allow(clippy::cast_precision_loss, reason = "counts of some millions")]

mod masters;
#[cfg(feature = "peers")]
mod peer;

use std::fs::read_to_string;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quorlock::testbed::Testbed;
use quorlock::{Guard, Redlock};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use masters::Count;

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Options {
    locks: usize,
    ttl: Duration,
    time: Duration,
    frozen: usize,
    key_bytes: usize,
    rslock: bool,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let row = runtime
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(async { run(&Options::parse(&words)?).await }));
    match row {
        Ok(row) => {
            println!("{row}");
            ExitCode::from(u8::from(row["lost"] != 0))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

impl Options {
    fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut options = Self {
            locks: 10_000,
            ttl: Duration::from_secs(30),
            time: Duration::from_secs(60),
            frozen: 0,
            key_bytes: 16,
            rslock: false,
        };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let mut number = || words.next().ok_or(format!("{word} needs a number"));
            match word {
                "--locks" => options.locks = number()?.parse()?,
                "--ttl" => options.ttl = Duration::from_secs_f64(number()?.parse()?),
                "--seconds" => options.time = Duration::from_secs_f64(number()?.parse()?),
                "--frozen" => options.frozen = number()?.parse()?,
                "--key-bytes" => options.key_bytes = number()?.parse()?,
                "--rslock" => options.rslock = true,
                // cargo adds it.
                "--bench" => {}
                other => {
                    return Err(
                        format!("{other} is not known; the file's first lines have the options").into()
                    );
                }
            }
        }
        Ok(options)
    }

    fn name(&self, nth: usize) -> String {
        format!("lease:{nth:0width$}", width = self.key_bytes.saturating_sub(6))
    }
}

async fn run(options: &Options) -> Result<Value, Failure> {
    let bed = Testbed::start(5)?;
    Redlock::builder().masters(bed.urls()).init().await?;
    #[cfg(feature = "peers")]
    if options.rslock {
        return peer::row(&bed, options).await;
    }
    let client = Redlock::connect(bed.urls()).await?;
    let warm = client.lock("warm").acquire().await?;
    let _ = warm.release().await;
    let (weight, began) = (resident()?, Instant::now());
    let guards = acquire(&client, options).await?;
    let (taken, weight) = (began.elapsed(), resident()?.saturating_sub(weight));
    for master in bed.masters().iter().rev().take(options.frozen) {
        master.freeze()?;
    }
    let counted = Count::while_(&bed, async {
        // One by one, so that a loss is seen when it happens and not at the end.
        let end = Instant::now() + options.time;
        while Instant::now() < end && guards.iter().all(Guard::is_valid) {
            sleep(Duration::from_secs(1).min(end.saturating_duration_since(Instant::now()))).await;
        }
    })
    .await?;
    let grown = resident()?;
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    let began = Instant::now();
    let report = client.close().await;
    let mut row = json!({
        "locks": options.locks,
        "ttl_s": options.ttl.as_secs_f64(),
        "frozen": options.frozen,
        "key_bytes": options.key_bytes,
        "taken_ms": millis(taken),
        "bytes_each": weight / options.locks as u64,
        "resident_mb_at_end": grown >> 20,
        "lost": lost,
        "closed_ms": millis(began.elapsed()),
        "released": report.released,
        "lingering": report.lingering,
    });
    counted.tell(&mut row);
    Ok(row)
}

async fn acquire(client: &Redlock, options: &Options) -> Result<Vec<Guard>, Failure> {
    let (mut tasks, mut guards) = (JoinSet::new(), Vec::with_capacity(options.locks));
    for nth in 0..options.locks {
        let request = client.lock(options.name(nth)).ttl(options.ttl);
        tasks.spawn(async move { request.acquire().await });
        if tasks.len() == 64
            && let Some(guard) = tasks.join_next().await
        {
            guards.push(guard??);
        }
    }
    while let Some(guard) = tasks.join_next().await {
        guards.push(guard??);
    }
    Ok(guards)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The memory of this process that is in use.
fn resident() -> Result<u64, Failure> {
    let status = read_to_string("/proc/self/statm")?;
    let pages: u64 = status.split(' ').nth(1).ok_or("no resident size")?.parse()?;
    Ok(pages * 4096)
}
