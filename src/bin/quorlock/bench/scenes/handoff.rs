//! One lock from hand to hand.

use quorlock::Redlock;
use tokio::task::JoinSet;

use super::super::cost::Counters;
use super::super::report::{Row, Section};
use super::super::sums::quantile;
use super::super::{keys, stop};
use super::contention::{Told, Turn, contend, now};
use super::process::Process;
use super::set::Set;

const IN_ONE: &str = "one process";
const IN_SEVERAL: &str = "several processes";

pub(crate) async fn run(set: &mut Set) -> Result<Vec<Section>, String> {
    if set.site.masters.len() < 3 {
        set.skip("handoff", "it needs 3 masters");
        return Ok(Vec::new());
    }
    let masters: Vec<String> = set.site.masters.iter().take(5).cloned().collect();
    let note = "Each holds the lock for 5 ms and pauses for 20. The hand-off is the time from the begin of a release to the \
                next holder, where somebody waited. Commands count all masters.";
    let mut section = Section::new("handoff", "One lock from hand to hand", note);
    let blocks = set.pace.blocks(3, 2);
    let several: &[usize] = if set.pace.quick { &[2, 8] } else { &[2, 8, 32] };
    let rows = [2, 8, 32].iter().map(|count| (IN_ONE, *count));
    for (group, count) in rows.chain(several.iter().map(|count| (IN_SEVERAL, *count))) {
        let mut figures: [Vec<f64>; 4] = Default::default();
        let mut gaps = Vec::new();
        for _ in 0..blocks {
            if stop::is_raised() {
                break;
            }
            let crew = match group {
                IN_ONE => Crew::Tasks(connect(set, &masters).await?),
                _ => Crew::Processes(Process::start(&masters, count).await?),
            };
            let before = Counters::read(&set.site.asked).await?;
            let time = set.pace.time(2.0, 0.5).as_micros();
            let until = now() + u64::try_from(time).unwrap_or(0);
            let key = format!("{}contended:{until}", keys::prefix());
            let turns = crew.contend(&key, count, until).await?;
            let spent = Counters::read(&set.site.asked).await?.since(before);
            let mut told = Told::by(&turns);
            set.overlaps += told.overlaps;
            let turns = told.turns.max(1) as f64;
            let millis = |gaps: &mut [u32], q| {
                if gaps.is_empty() { f64::NAN } else { f64::from(quantile(gaps, q)) / 1e3 }
            };
            let p50 = millis(&mut told.gaps, 0.5);
            let p99 = millis(&mut told.gaps, 0.99);
            // INFO itself is a command a master.
            let commands = (spent.commands - set.site.masters.len() as f64).max(0.0) / turns;
            for (all, value) in figures.iter_mut().zip([p50, p99, commands, told.fairness]) {
                all.push(value);
            }
            gaps.append(&mut told.gaps);
        }
        let [p50, p99, commands, fairness] = figures;
        let chance = &mut set.chance;
        let mut row = Row::new(group, format!("{count} contenders"), "quorlock, five masters")
            .with("hand-off p50", "ms", p50, chance)
            .with("hand-off p99", "ms", p99, chance)
            .with("commands", "/turn", commands, chance)
            .with("luckiest/unluckiest", "×", fairness, chance);
        row.curve = ecdf(gaps);
        section.rows.push(row);
    }
    Ok(vec![section])
}

async fn connect(set: &Set, masters: &[String]) -> Result<Redlock, String> {
    let builder = Redlock::builder().masters(masters).policy(set.site.policy);
    builder.connect().await.map_err(|error| error.to_string())
}

/// The share of hand-offs, and within how many milliseconds they were done.
fn ecdf(mut gaps: Vec<u32>) -> Vec<(f64, f64)> {
    if gaps.is_empty() {
        return Vec::new();
    }
    let shares = (0..=20).map(|step| f64::from(step) / 20.0);
    shares.map(|share| (share, f64::from(quantile(&mut gaps, share)) / 1e3)).collect()
}

/// Who contends.
enum Crew {
    Tasks(Redlock),
    Processes(Vec<Process>),
}

impl Crew {
    async fn contend(self, key: &str, count: usize, until: u64) -> Result<Vec<Vec<Turn>>, String> {
        let mut all = Vec::new();
        match self {
            Self::Tasks(client) => {
                let mut tasks = JoinSet::new();
                for _ in 0..count {
                    tasks.spawn(contend(client.clone(), key.to_owned(), None, until));
                }
                while let Some(turns) = tasks.join_next().await {
                    all.push(turns.map_err(|error| error.to_string())?);
                }
                let _ = client.close().await;
            }
            Self::Processes(mut processes) => {
                for process in &mut processes {
                    process.tell(&format!("contend {until} {key}")).await?;
                }
                for process in processes {
                    all.push(process.told::<Turn>().await?);
                }
            }
        }
        Ok(all)
    }
}
