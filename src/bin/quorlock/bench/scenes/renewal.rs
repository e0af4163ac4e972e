//! Many locks held at once.

use std::fs::read_to_string;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorlock::{Guard, Redlock};
#[cfg(feature = "peers")]
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

#[cfg(feature = "peers")]
use super::super::arms::Rslock;
use super::super::arms::{Manners, Ours};
use super::super::contender::Contender as _;
use super::super::cost::Counters;
use super::super::report::{Row, Section};
use super::super::slice::cpu_time;
use super::super::{keys, stop};
use super::extension;
use super::process::Process;
use super::set::Set;

/// Renewed at every third of it.
const TTL: Duration = Duration::from_secs(3);

const TASKS: usize = 64;

/// Linux has pages of so many bytes nearly everywhere.
const PAGE: f64 = 4_096.0;

/// The rows of those that renew by themselves, and the one that ours are measured by.
pub(crate) const WATCHDOG: &str = "watchdog";
pub(crate) const PEER_WATCHDOG: &str = "rslock, 1000 locks";

/// On two cores its watchdogs lose ten thousand.
#[cfg(feature = "peers")]
const OF_RSLOCK: usize = 1_000;

const NOTE: &str = "Locks renewed each second (in a quick run each half) by the client's own watchdog. A renewal is counted for each lock and \
                    period, once they are as spread over it as they stay: ours are renewed together in sixteenths of it, rslock's as they \
                    were taken. Memory is what a process of its own grew by.";

pub(crate) async fn run(set: &mut Set) -> Result<Vec<Section>, String> {
    if set.site.masters.len() < 5 {
        let have = set.site.masters.len();
        set.skip("renewal", &format!("it needs 5 masters, {have} are given"));
        return Ok(Vec::new());
    }
    let mut section = Section::new("renewal", "Many locks held and renewed", NOTE);
    let counts: &[usize] = if set.pace.quick { &[1_000] } else { &[1_000, 10_000] };
    for &count in counts {
        if stop::is_raised() {
            break;
        }
        section.rows.push(hold(set, count).await?);
    }
    #[cfg(feature = "peers")]
    if !stop::is_raised() && set.entries(&["quorlock", "rslock"]).len() == 2 {
        section.rows.push(hold_by_rslock(set).await?);
    }
    if !stop::is_raised() {
        section.rows.append(&mut extension::rows(set).await?);
    }
    for peer in [PEER_WATCHDOG, "rslock"] {
        section.compare(peer, &["client CPU", "server CPU", "renewals"], &mut set.chance);
    }
    Ok(vec![section])
}

/// What a quick run takes instead of [`TTL`].
fn ttl(set: &Set) -> Duration {
    if set.pace.quick { TTL / 2 } else { TTL }
}

async fn hold(set: &mut Set, count: usize) -> Result<Row, String> {
    let masters = set.site.masters[..5].to_vec();
    let manners = Manners { renewing: true, ..Manners::default() };
    let ttl = ttl(set);
    let ours = Arc::new(Ours::connect(&masters, set.site.policy, ttl, manners).await?);
    let began = Instant::now();
    let guards = acquire(&ours, count).await?;
    let taken = began.elapsed();
    // The first renewals come in a few large bunches, which cost less; from the second on each lock keeps its place.
    sleep(ttl / 3 * 2).await;
    let [cpu, servers] = renewals(set, count, ttl / 3).await?;
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    release(guards).await?;
    let _ = ours.client().close().await;
    let memory = memory(&masters, count).await?;
    let chance = &mut set.chance;
    Ok(Row::new(WATCHDOG, format!("quorlock, {count} locks"), "quorlock, five masters, watchdog")
        .with("client CPU", "µs/renewal", cpu, chance)
        .with("server CPU", "µs/renewal", servers, chance)
        .with("memory", "B/lock", memory, chance)
        .with("taken at", "/s", vec![count as f64 / taken.as_secs_f64()], chance)
        .with("lost", "", vec![lost as f64], chance))
}

/// Each in its `using`, whose watchdog renews as often as ours.
#[cfg(feature = "peers")]
async fn hold_by_rslock(set: &mut Set) -> Result<Row, String> {
    let rslock = Arc::new(Rslock::new(&set.site.masters[..5]));
    let period = ttl(set) / 3;
    let (end, ended) = watch::channel(false);
    let mut tasks = JoinSet::new();
    for nth in 0..OF_RSLOCK {
        let (rslock, ended, mut key) = (rslock.clone(), ended.clone(), String::new());
        keys::fresh(&mut key);
        tasks.spawn(async move { rslock.keep(&key, period, ended).await });
        // As many at a time as ours.
        if nth % TASKS == TASKS - 1 {
            sleep(Duration::from_millis(2)).await;
        }
    }
    sleep(period).await;
    let [cpu, servers] = renewals(set, OF_RSLOCK, period).await?;
    let _ = end.send(true);
    let lost = tasks.join_all().await.into_iter().filter(|held| !held).count();
    let chance = &mut set.chance;
    Ok(Row::new(WATCHDOG, PEER_WATCHDOG, "rslock, five masters, its own watchdog")
        .with("client CPU", "µs/renewal", cpu, chance)
        .with("server CPU", "µs/renewal", servers, chance)
        .with("lost", "", vec![lost as f64], chance))
}

/// Microseconds of CPU a renewal, the client's and the servers'. A block is one period, so that each lock is renewed once.
async fn renewals(set: &Set, count: usize, period: Duration) -> Result<[Vec<f64>; 2], String> {
    let mut blocks: [Vec<f64>; 2] = Default::default();
    for _ in 0..set.pace.blocks(5, 2) {
        if stop::is_raised() {
            break;
        }
        // What is asked of the servers here is none of the client's time.
        let before = Counters::read(&set.site.asked).await?;
        let (began, cpu) = (Instant::now(), cpu_time());
        sleep(period).await;
        let renewals = count as f64 * began.elapsed().as_secs_f64() / period.as_secs_f64();
        let cpu = cpu_time().saturating_sub(cpu).as_secs_f64() * 1e6;
        let servers = Counters::read(&set.site.asked).await?.since(before);
        blocks[0].push(cpu / renewals);
        blocks[1].push(servers.cpu / renewals);
    }
    Ok(blocks)
}

/// Bytes a lock, of a process that does nothing else.
async fn memory(masters: &[String], count: usize) -> Result<Vec<f64>, String> {
    let mut processes = Process::start(masters, 1).await?;
    let mut each = Vec::new();
    for process in &mut processes {
        process.tell(&format!("hold {count}")).await?;
    }
    for process in processes {
        each.extend(process.told::<f64>().await?.into_iter().map(|bytes| bytes / count as f64));
    }
    Ok(each)
}

/// By how many bytes this process grows with so many locks held.
pub(crate) async fn grown_by(client: &Redlock, count: usize) -> Result<f64, String> {
    let before = resident();
    let guards = acquire(&Arc::new(Ours::of(client.clone(), TTL, true)), count).await?;
    let grown = resident() - before;
    release(guards).await?;
    Ok(grown)
}

async fn acquire(ours: &Arc<Ours>, count: usize) -> Result<Vec<Guard>, String> {
    let mut tasks = JoinSet::new();
    for nth in 0..TASKS {
        let (ours, share) = (ours.clone(), count / TASKS + usize::from(nth < count % TASKS));
        tasks.spawn(async move {
            let (mut key, mut guards) = (String::new(), Vec::new());
            for _ in 0..share {
                if stop::is_raised() {
                    break;
                }
                keys::fresh(&mut key);
                guards.push(ours.acquire(&key).await?);
            }
            Ok::<_, String>(guards)
        });
    }
    let mut all = Vec::new();
    while let Some(guards) = tasks.join_next().await {
        all.append(&mut guards.map_err(|error| error.to_string())??);
    }
    Ok(all)
}

async fn release(guards: Vec<Guard>) -> Result<(), String> {
    let mut tasks = JoinSet::new();
    for guard in guards {
        tasks.spawn(guard.release());
    }
    while let Some(released) = tasks.join_next().await {
        let _ = released.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Bytes of this process in memory.
fn resident() -> f64 {
    let told = read_to_string("/proc/self/statm").unwrap_or_default();
    told.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * PAGE
}
