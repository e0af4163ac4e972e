//! Locks extended by hand, many at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::arms::{Arm, Kind};
use super::super::blocks::there_and_back;
use super::super::contender::Renewing;
use super::super::report::Row;
use super::super::slice::cpu_time;
use super::super::{keys, stop};
use super::set::Set;
use super::side::close;

const ROWS: &[&str] = &["quorlock", "rslock"];

const TASKS: usize = 64;

/// What the acquires left on the wire may arrive.
const CALM: Duration = Duration::from_millis(3);

#[derive(Default)]
struct Spent {
    cpu: Duration,
    wall: Duration,
    renewals: usize,
}

/// A row each, which take turns as in other scenarios.
pub(super) async fn rows(set: &mut Set) -> Result<Vec<Row>, String> {
    let entries = set.entries(ROWS);
    let mut arms = Vec::new();
    for entry in &entries {
        arms.push(set.connect(entry).await?);
    }
    let time = set.pace.time(0.25, 0.05);
    for arm in &arms {
        slice(arm, time).await?;
    }
    let mut figures: Vec<[Vec<f64>; 2]> = arms.iter().map(|_| Default::default()).collect();
    for _ in 0..set.pace.blocks(6, 3) {
        if stop::is_raised() {
            break;
        }
        let mut block: Vec<Spent> = arms.iter().map(|_| Spent::default()).collect();
        for nth in there_and_back(arms.len(), &mut set.chance) {
            let Spent { cpu, wall, renewals } = slice(&arms[nth], time).await?;
            block[nth].cpu += cpu;
            block[nth].wall += wall;
            block[nth].renewals += renewals;
        }
        for ([cpu, rate], spent) in figures.iter_mut().zip(block) {
            cpu.push(spent.cpu.as_secs_f64() * 1e6 / spent.renewals as f64);
            rate.push(spent.renewals as f64 / spent.wall.as_secs_f64());
        }
    }
    close(&arms).await;
    let chance = &mut set.chance;
    let rows = entries.iter().zip(figures).map(|(entry, [cpu, rate])| {
        Row::new(
            format!("{TASKS} at once"),
            entry.name,
            "each task extends a lock of its own, again and again",
        )
        .with("client CPU", "µs/renewal", cpu, chance)
        .with("renewals", "/s", rate, chance)
    });
    Ok(rows.collect())
}

async fn slice(arm: &Arm, time: Duration) -> Result<Spent, String> {
    let spent = match &arm.kind {
        Kind::Ours(ours) => renew(ours, time).await,
        Kind::Bare(_) => Err("it has nothing to renew with".into()),
        #[cfg(feature = "peers")]
        Kind::Rslock(rslock) => renew(rslock, time).await,
    };
    spent.map_err(|error| format!("{}: {error}", arm.name))
}

async fn renew<C: Renewing>(client: &Arc<C>, time: Duration) -> Result<Spent, String> {
    let (mut key, mut locks) = (String::new(), Vec::new());
    for _ in 0..TASKS {
        keys::fresh(&mut key);
        locks.push(client.acquire(&key).await?);
    }
    sleep(CALM).await;
    let (began, cpu) = (Instant::now(), cpu_time());
    let mut tasks = JoinSet::new();
    for mut lock in locks {
        let client = client.clone();
        tasks.spawn(async move {
            let mut renewals = 0;
            while began.elapsed() < time && !stop::is_raised() {
                client.renew(&mut lock).await?;
                renewals += 1;
            }
            Ok::<_, String>((lock, renewals))
        });
    }
    let (mut locks, mut spent) = (Vec::new(), Spent::default());
    while let Some(ended) = tasks.join_next().await {
        let (lock, renewals) = ended.map_err(|error| error.to_string())??;
        locks.push(lock);
        spent.renewals += renewals;
    }
    (spent.wall, spent.cpu) = (began.elapsed(), cpu_time().saturating_sub(cpu));
    for lock in locks {
        client.release(lock).await?;
    }
    Ok(spent)
}
