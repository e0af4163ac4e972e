//! One lock from hand to hand.

use std::sync::Arc;

use quorlock::Redlock;
use tokio::task::JoinSet;

use super::super::arms::Ours;
#[cfg(feature = "peers")]
use super::super::arms::Rslock;
use super::super::bound::Bounds;
use super::super::contender::{Contender, TTL};
use super::super::ear::Ear;
use super::super::report::{Row, Section};
use super::super::sums::quantile;
use super::super::{keys, stop};
use super::contention::{HOLD, Told, Turn, contend, now};
use super::process::Process;
use super::set::Set;

const NOTE: &str = "Each holds the lock for 5 ms and pauses for 20. The hand-off is the time from the begin of a release to the next \
                    holder, where somebody waited. Commands are what the clients send, heard at the masters while nobody looks \
                    at the clock. rslock asks anew every 0 to 2 ms, which keeps the processors awake. The bound is the w-th quickest of \
                    PINGs sent to all masters after a sleep of 5 ms: who is told by masters needs two such trips.";

pub(crate) async fn run(set: &mut Set) -> Result<Vec<Section>, String> {
    if set.site.masters.len() < 3 {
        set.skip("handoff", "it needs 3 masters");
        return Ok(Vec::new());
    }
    let masters: Vec<String> = set.site.masters.iter().take(5).cloned().collect();
    let peer = !set.entries(&["rslock"]).is_empty();
    let mut section = Section::new("handoff", "One lock from hand to hand", NOTE);
    let counts: &[usize] = if set.pace.quick { &[8] } else { &[2, 8, 32] };
    for in_one in [true, false] {
        for &count in counts {
            let scene = Scene { masters: &masters, row: "quorlock", in_one, count };
            section.rows.push(scene.play(set).await?);
            if peer && count == 8 {
                let scene = Scene { row: "rslock", ..scene };
                section.rows.push(scene.play(set).await?);
            }
        }
    }
    section.compare("rslock", &["hand-off p50", "commands"], &mut set.chance);
    Ok(vec![section])
}

/// Who contends where.
struct Scene<'a> {
    masters: &'a [String],
    row: &'static str,
    in_one: bool,
    count: usize,
}

impl Scene<'_> {
    async fn play(&self, set: &mut Set) -> Result<Row, String> {
        let time = set.pace.time(2.0, 0.5);
        let mut figures: [Vec<f64>; 4] = Default::default();
        let mut gaps = Vec::new();
        let mut bounds = Bounds::of([self.masters.len()]);
        for _ in 0..set.pace.blocks(3, 2) {
            if stop::is_raised() {
                break;
            }
            let crew = self.crew(set).await?;
            bounds.gather_asleep(&set.site.asked, 25, HOLD).await?;
            let mut told = self.round(set, crew, time.as_micros()).await?;
            let millis = |gaps: &mut [u32], q| {
                if gaps.is_empty() { f64::NAN } else { f64::from(quantile(gaps, q)) / 1e3 }
            };
            let (p50, p99) = (millis(&mut told.gaps, 0.5), millis(&mut told.gaps, 0.99));
            for (all, value) in figures.iter_mut().zip([p50, p99, told.fairness, told.turns as f64]) {
                all.push(value);
            }
            gaps.append(&mut told.gaps);
        }
        let mut commands = f64::NAN;
        if !stop::is_raised() && set.site.is_own() {
            // Connected before anybody listens.
            let crew = self.crew(set).await?;
            // One of the masters keeps the line, and not all are asked to tell.
            let ears = set.site.listen(self.masters.len())?;
            let turns = self.round(set, crew, time.as_micros() / 2).await?.turns.max(1);
            let heard: usize = ears.into_iter().map(Ear::heard).sum::<Result<_, _>>()?;
            commands = heard as f64 / turns as f64;
        }
        let [p50, p99, fairness, turns] = figures;
        let group = format!("{} {}", self.count, if self.in_one { "in one process" } else { "processes" });
        let what =
            if self.row == "rslock" { "rslock, asking every 0 to 2 ms" } else { "quorlock, five masters" };
        let chance = &mut set.chance;
        let mut row = Row::new(group, self.row, what)
            .with("hand-off p50", "ms", p50, chance)
            .bounded(bounds.least(self.masters.len(), self.masters.len() / 2 + 1) / 1e3)
            .with("hand-off p99", "ms", p99, chance)
            .with("commands", "/turn", vec![commands], chance)
            .with("luckiest/unluckiest", "×", fairness, chance)
            .with("turns", "", vec![turns.iter().sum()], chance);
        row.curve = ecdf(gaps);
        Ok(row)
    }

    async fn crew(&self, set: &Set) -> Result<Crew, String> {
        Ok(match (self.in_one, self.row) {
            (false, _) => Crew::Processes(Process::start(self.masters, self.count).await?),
            #[cfg(feature = "peers")]
            (true, "rslock") => Crew::Polling(Rslock::polling(self.masters)),
            (true, _) => Crew::Tasks(connect(set, self.masters).await?),
        })
    }

    async fn round(&self, set: &mut Set, crew: Crew, micros: u128) -> Result<Told, String> {
        let until = now() + u64::try_from(micros).unwrap_or(0);
        let key = format!("{}contended:{until}", keys::prefix());
        let told = Told::by(&crew.contend(self, &key, until).await?);
        set.overlaps += told.overlaps;
        Ok(told)
    }
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

enum Crew {
    Tasks(Redlock),
    #[cfg(feature = "peers")]
    Polling(Rslock),
    Processes(Vec<Process>),
}

impl Crew {
    async fn contend(self, scene: &Scene<'_>, key: &str, until: u64) -> Result<Vec<Vec<Turn>>, String> {
        match self {
            Self::Tasks(client) => {
                let turns = at_once(Ours::of(client.clone(), TTL, true), scene.count, key, until).await;
                let _ = client.close().await;
                turns
            }
            #[cfg(feature = "peers")]
            Self::Polling(peer) => at_once(peer, scene.count, key, until).await,
            Self::Processes(mut processes) => {
                for process in &mut processes {
                    process.tell(&format!("contend {} {until} {key}", scene.row)).await?;
                }
                let mut all = Vec::new();
                for process in processes {
                    all.push(process.told::<Turn>().await?);
                }
                Ok(all)
            }
        }
    }
}

/// So many tasks with one client.
async fn at_once<C: Contender>(
    client: C,
    count: usize,
    key: &str,
    until: u64,
) -> Result<Vec<Vec<Turn>>, String> {
    let client = Arc::new(client);
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (client, key) = (client.clone(), key.to_owned());
        tasks.spawn(async move { contend(&*client, &key, until).await });
    }
    let mut all = Vec::new();
    while let Some(turns) = tasks.join_next().await {
        all.push(turns.map_err(|error| error.to_string())?);
    }
    Ok(all)
}
