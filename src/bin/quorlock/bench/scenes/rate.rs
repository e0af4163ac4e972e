//! Arrivals that do not wait for each other: latency counts from when a request should have begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::arms::{Arm, Kind};
use super::super::contender::Contender;
use super::super::report::{Row, Section};
use super::super::slice::{self, Until};
use super::super::sums::quantile;
use super::super::{keys, stop};
use super::set::Set;

const ROWS: &[&str] = &["quorlock", "single", "rslock"];

/// Of what 64 tasks in a closed loop reach.
const SHARES: &[f64] = &[0.1, 0.25, 0.5, 0.75, 0.9, 1.1];

/// More at once would measure the memory.
const MOST: usize = 4_096;

pub(crate) async fn run(set: &mut Set) -> Result<Vec<Section>, String> {
    let note = "Requests begin at fixed moments, whether or not those before have ended; the latency counts from that moment. \
                The knee is where it leaves the floor. Rates in proportion to what 64 tasks reached in a closed loop.";
    let mut section = Section::new("rate", "Arrivals at a fixed rate", note);
    for entry in set.entries(ROWS) {
        let arm = set.connect(entry).await?;
        let until = Until::After(set.pace.time(1.0, 0.15));
        slice::run(&arm, 64, Until::Cycles(4)).await?;
        let capacity = slice::run(&arm, 64, until).await?.figures().rate;
        for share in SHARES {
            if stop::is_raised() {
                break;
            }
            let rate = capacity * share;
            let arrivals = arrive(&arm, rate, set.pace.time(1.5, 0.15)).await?;
            let chance = &mut set.chance;
            let mut latencies = arrivals.latencies;
            let mut micros = |q| vec![f64::from(quantile(&mut latencies, q)) / 1e3];
            section.rows.push(
                Row::new(entry.name, format!("{:.0} %", share * 100.0), entry.what)
                    .with("arrivals", "/s", vec![rate], chance)
                    .with("done", "/s", vec![arrivals.done], chance)
                    .with("acquire p50", "µs", micros(0.5), chance)
                    .with("acquire p99", "µs", micros(0.99), chance)
                    .with("turned away", "", vec![arrivals.turned_away], chance),
            );
        }
        arm.close().await;
    }
    Ok(vec![section])
}

struct Arrivals {
    latencies: Vec<u32>,
    done: f64,
    turned_away: f64,
}

async fn arrive(arm: &Arm, rate: f64, time: Duration) -> Result<Arrivals, String> {
    match &arm.kind {
        Kind::Ours(ours) => serve(ours, rate, time).await,
        Kind::Bare(bare) => serve(bare, rate, time).await,
        #[cfg(feature = "peers")]
        Kind::Rslock(rslock) => serve(rslock, rate, time).await,
    }
}

async fn serve<C: Contender>(contender: &Arc<C>, rate: f64, time: Duration) -> Result<Arrivals, String> {
    let began = Instant::now();
    let mut moments = moments(began, rate, time);
    let under_way = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    let mut turned_away = 0.0;
    while let Some(moment) = moments.recv().await {
        if under_way.load(Ordering::Relaxed) >= MOST {
            turned_away += 1.0;
            continue;
        }
        under_way.fetch_add(1, Ordering::Relaxed);
        let (contender, under_way) = (contender.clone(), under_way.clone());
        tasks.spawn(async move {
            let mut key = String::new();
            keys::fresh(&mut key);
            let lock = contender.acquire(&key).await?;
            let latency = u32::try_from(moment.elapsed().as_nanos()).unwrap_or(u32::MAX);
            contender.release(lock).await?;
            under_way.fetch_sub(1, Ordering::Relaxed);
            Ok::<_, String>(latency)
        });
    }
    let mut latencies = Vec::new();
    while let Some(latency) = tasks.join_next().await {
        latencies.push(latency.map_err(|error| error.to_string())??);
    }
    let done = latencies.len() as f64 / began.elapsed().as_secs_f64();
    Ok(Arrivals { latencies, done, turned_away })
}

/// The moments, each as it comes: from a thread that sleeps more exactly than a timer wheel of milliseconds.
fn moments(began: Instant, rate: f64, time: Duration) -> mpsc::UnboundedReceiver<Instant> {
    let (tell, moments) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for nth in 0u32.. {
            let after = Duration::from_secs_f64(f64::from(nth) / rate);
            if after >= time || stop::is_raised() {
                return;
            }
            let moment = began + after;
            std::thread::sleep(moment.saturating_duration_since(Instant::now()));
            if tell.send(moment).is_err() {
                return;
            }
        }
    });
    moments
}
