//! All rows side by side on loopback, and what a cycle of each costs.

use super::super::arms::{Arm, Entry};
use super::super::blocks::{self, Measured};
use super::super::bound::Bounds;
use super::super::cost::Counters;
use super::super::report::{Row, Section};
use super::super::slice::{self, Figures, Until};
use super::super::stop;
use super::super::sums::quantile;
use super::set::Set;

const ROWS: &[&str] = &[
    "quorlock",
    "quorlock-renew",
    "quorlock-3",
    "quorlock-7",
    "min-votes-4",
    "quorlock-fenced",
    "quorlock-1",
    "single",
    "single-wait",
    "fred",
    "fred-resp3",
    "rslock",
];

const CROWD: &[&str] = &["quorlock", "quorlock-renew", "quorlock-fenced", "single", "fred", "rslock"];

/// Cycles that are listened to. A lone cycle's commands are always the same.
const LISTENED: usize = 20;

const COMPARED: &[&str] = &["acquire p50", "acquire p99", "release p50", "cycles", "client CPU"];

/// One task.
pub(crate) async fn one_task(set: &mut Set) -> Result<Vec<Section>, String> {
    let (entries, arms, connections) = connect(set, ROWS).await?;
    let plan = set.pace.plan(arms.len(), (8, 4), (0.4, 0.06));
    let mut bounds = Bounds::of(entries.iter().map(|entry| entry.masters));
    let asked = &set.site.asked;
    let chance = &mut set.chance;
    let measured =
        blocks::side_by_side(&arms, 1, plan, chance, async || bounds.gather(asked, 25).await).await?;
    let note = "One task, a fresh key each cycle, masters on this machine. The bound is the w-th quickest of PINGs sent to \
                as many masters at once between the slices.";
    let mut section = Section::new("loopback", "Acquire and release, one task", note);
    section.rows = rows(set, "", &entries, &measured, Some(&bounds));
    section.compare("single", COMPARED, &mut set.chance);
    let costs = costs(set, &entries, &arms, &connections).await?;
    close(&arms).await;
    Ok(vec![section, costs])
}

/// Many tasks.
pub(crate) async fn crowd(set: &mut Set) -> Result<Vec<Section>, String> {
    let (entries, arms, _) = connect(set, CROWD).await?;
    let plan = set.pace.plan(arms.len(), (6, 3), (0.5, 0.12));
    let measured = blocks::side_by_side(&arms, 64, plan, &mut set.chance, async || Ok(())).await?;
    let note = "64 tasks in one thread, each with a fresh key a cycle.";
    let mut section = Section::new("tasks", "64 tasks at once", note);
    section.rows = rows(set, "", &entries, &measured, None);
    let base = if entries.iter().any(|entry| entry.name == "rslock") { "rslock" } else { "fred" };
    section.compare(base, COMPARED, &mut set.chance);
    close(&arms).await;
    Ok(vec![section])
}

async fn connect(set: &mut Set, names: &[&str]) -> Result<(Vec<&'static Entry>, Vec<Arm>, Vec<f64>), String> {
    let entries = set.entries(names);
    let (mut able, mut arms, mut connections) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let before = Counters::read(&set.site.asked).await?;
        let up = async {
            let arm = set.connect(entry).await?;
            slice::run(&arm, 1, Until::Cycles(2)).await.map(|_| arm)
        };
        // One row that cannot be is no reason to have none.
        let arm = match up.await {
            Ok(arm) => arm,
            Err(why) => {
                set.skip(entry.name, &why);
                continue;
            }
        };
        able.push(entry);
        connections.push(Counters::read(&set.site.asked).await?.since(before).clients);
        arms.push(arm);
    }
    Ok((able, arms, connections))
}

pub(super) async fn close(arms: &[Arm]) {
    for arm in arms {
        arm.close().await;
    }
}

/// What was measured, as rows.
pub(super) fn rows(
    set: &mut Set,
    group: &str,
    entries: &[&Entry],
    measured: &Measured,
    bounds: Option<&Bounds>,
) -> Vec<Row> {
    let chance = &mut set.chance;
    let mut rows = Vec::new();
    for (((_, blocks), samples), entry) in measured.rows.iter().zip(&measured.acquires).zip(entries) {
        let all = |figure: fn(&Figures) -> f64| blocks.iter().map(figure).collect::<Vec<f64>>();
        let least = bounds.map_or(f64::NAN, |bounds| bounds.least(entry.masters, entry.needed));
        let mut row = Row::new(group, entry.name, entry.what)
            .with("acquire p50", "µs", all(|f| f.acquire_p50), chance)
            .bounded(least)
            .with("acquire p99", "µs", all(|f| f.acquire_p99), chance)
            .with("acquire p99.9", "µs", all(|f| f.acquire_p999), chance)
            .with("release p50", "µs", all(|f| f.release_p50), chance)
            .bounded(least)
            .with("release p99", "µs", all(|f| f.release_p99), chance)
            .with("cycles", "/s", all(|f| f.rate), chance)
            .with("client CPU", "µs/cycle", all(|f| f.cpu), chance)
            .with("measured", "cycles", vec![blocks.iter().map(|f| f.cycles).sum()], chance);
        row.curve = curve(samples);
        rows.push(row);
    }
    rows
}

/// Where the latency of a share of all acquires ends, ever closer to all.
fn curve(samples: &[u32]) -> Vec<(f64, f64)> {
    let mut samples = samples.to_vec();
    let mut points = Vec::new();
    let most = (samples.len() as f64).log10();
    for step in 0..=40 {
        let nines = f64::from(step) / 10.0;
        if nines <= most {
            let share = 1.0 - 10f64.powf(-nines);
            points.push((share, f64::from(quantile(&mut samples, share)) / 1e3));
        }
    }
    points
}

/// What the masters count while each row alone is at work.
async fn costs(
    set: &mut Set,
    entries: &[&'static Entry],
    arms: &[Arm],
    connections: &[f64],
) -> Result<Section, String> {
    let cycles = set.pace.blocks(1_000, 150);
    let note = format!(
        "{cycles} cycles of acquire and release of one task, all masters together. Commands are what the client sends, heard at \
         one of its masters; the rest is by the masters' own counters (INFO), where what a script calls is executed, too, and \
         others who use the masters meanwhile are counted.",
    );
    let mut section = Section::new("cost", "What a cycle costs", note);
    let asked = &set.site.asked;
    let still = Counters::read(asked).await?;
    let still = Counters::read(asked).await?.since(still);
    for ((entry, arm), connections) in entries.iter().zip(arms).zip(connections) {
        // Its master is not among those that are asked.
        if stop::is_raised() || entry.wants_replica() {
            continue;
        }
        let before = Counters::read(asked).await?;
        let slice = slice::run(arm, 1, Until::Cycles(cycles)).await?;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let spent = Counters::read(asked).await?.since(before);
        let commands = match set.site.listen(1)?.pop() {
            Some(ear) => {
                slice::run(arm, 1, Until::Cycles(LISTENED)).await?;
                (ear.heard()? * entry.masters) as f64 / LISTENED as f64
            }
            None => f64::NAN,
        };
        let each = |value: f64, still: f64| vec![(value - still).max(0.0) / cycles as f64];
        let cpu = slice.figures().cpu;
        let chance = &mut set.chance;
        section.rows.push(
            Row::new("", entry.name, entry.what)
                .with("commands", "/cycle", vec![commands], chance)
                .with("executed", "/cycle", each(spent.commands, still.commands), chance)
                .with("sent", "B/cycle", each(spent.received, still.received), chance)
                .with("received", "B/cycle", each(spent.sent, still.sent), chance)
                .with("client CPU", "µs/cycle", vec![cpu], chance)
                .with("server CPU", "µs/cycle", each(spent.cpu, still.cpu), chance)
                .with("connections", "", vec![*connections], chance),
        );
    }
    Ok(section)
}
