//! Masters that are far away.

use super::super::arms::Entry;
use super::super::bare::{BareFred, Manner};
use super::super::blocks;
use super::super::bound::Bounds;
use super::super::report::Section;
use super::super::stop;
use super::super::ways::Ways;
use super::set::Set;
use super::side;

/// A name, the round trips in milliseconds, and how much longer they may be by chance.
const PLACES: &[(&str, [f64; 5], f64)] = &[
    ("proxy alone", [0.0; 5], 0.0),
    ("0.5 ms", [0.5; 5], 0.0),
    ("2 ms", [2.0; 5], 0.0),
    ("10 ms", [10.0; 5], 0.0),
    ("50 ms", [50.0; 5], 0.0),
    ("2/10/30/70/140 ms", [2.0, 10.0, 30.0, 70.0, 140.0], 0.0),
    ("10 ms ± 5", [5.0; 5], 10.0),
];

const ROWS: &[&str] = &["quorlock", "single", "fred", "rslock"];

pub(crate) async fn run(set: &mut Set) -> Result<Vec<Section>, String> {
    if set.site.masters.len() < 5 {
        let have = set.site.masters.len();
        set.skip("distance", &format!("it needs 5 masters, {have} are given"));
        return Ok(Vec::new());
    }
    let ways = Ways::to(&set.site.masters[..5]).await?;
    let urls = ways.urls();
    let entries = set.entries(ROWS);
    let mut arms = Vec::new();
    for entry in &entries {
        arms.push(entry.connect(&urls, set.site.policy).await?);
    }
    let asked = BareFred::connect(&urls, Manner::Plain).await?;
    let note = "Behind a proxy that delays both ways. The single master is the first and nearest. \"proxy alone\" is what the \
                proxy itself costs.";
    let mut section = Section::new("distance", "Masters far away", note);
    for (place, millis, jitter) in PLACES {
        if stop::is_raised() {
            break;
        }
        // Much like their neighbours, and slow to measure.
        if set.pace.quick && ["0.5 ms", "50 ms", "10 ms ± 5"].contains(place) {
            continue;
        }
        ways.stretch(millis, *jitter);
        let mut bounds = Bounds::of(entries.iter().map(|entry| entry.masters));
        let slowest = millis.iter().fold(0.0, |most: f64, millis| most.max(*millis)) + jitter;
        // At least one cycle of the slowest row each: what is begun is ended.
        let slice = (0.3 + slowest / 250.0, 0.05 + slowest / 1_000.0);
        let warm_up = set.pace.blocks(4, 2);
        let plan = blocks::Plan { warm_up, ..set.pace.plan(arms.len(), (4, 2), slice) };
        let times = if slowest > 20.0 { set.pace.blocks(3, 2) } else { 15 };
        let gather = async || bounds.gather(&asked, times).await;
        let measured = blocks::side_by_side(&arms, 1, plan, &mut set.chance, gather).await?;
        section.rows.extend(side::rows(set, place, &entries, &measured, Some(&bounds)));
    }
    ways.stretch(&PLACES[5].1, 0.0);
    far_and_many(set, &entries, &arms, &asked, &mut section).await?;
    ways.stretch(&[0.0; 5], 0.0);
    section.compare("single", &["acquire p50", "acquire p99"], &mut set.chance);
    side::close(&arms).await;
    asked.close().await;
    Ok(vec![section])
}

/// The far masters again, for 64 tasks.
async fn far_and_many(
    set: &mut Set,
    entries: &[&'static Entry],
    arms: &[super::super::arms::Arm],
    asked: &BareFred,
    section: &mut Section,
) -> Result<(), String> {
    if stop::is_raised() {
        return Ok(());
    }
    let mut bounds = Bounds::of(entries.iter().map(|entry| entry.masters));
    let plan = blocks::Plan { warm_up: 64, ..set.pace.plan(arms.len(), (3, 2), (0.6, 0.15)) };
    let gather = async || bounds.gather(asked, 3).await;
    let measured = blocks::side_by_side(arms, 64, plan, &mut set.chance, gather).await?;
    section.rows.extend(side::rows(set, "2/10/30/70/140 ms, 64 tasks", entries, &measured, Some(&bounds)));
    Ok(())
}
