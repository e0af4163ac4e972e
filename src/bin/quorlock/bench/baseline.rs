//! Whether it became slower since another run.

use std::path::Path;

use super::chance::Chance;
use super::report::{Figure, Report, SCHEMA};
use super::sums::Estimate;
use super::terminal::interval;

/// A run that was written down.
pub(crate) fn read(file: &Path) -> Result<Report, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("--baseline {name}: {error}"))?;
    let json: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("--baseline {name} is not JSON as --json writes it: {error}"))?;
    if json["schema"] != SCHEMA {
        return Err(format!(
            "--baseline {name} has schema {}, this program reads {SCHEMA}: measure the baseline anew",
            json["schema"]
        ));
    }
    serde_json::from_value(json).map_err(|error| format!("--baseline {name}: {error}"))
}

/// Figures of ours that are worse than the baseline's by more than so many percent, and not by chance. Ratios within a run are
/// compared where there are any: those of one machine on two days are alike, its microseconds are not.
pub(crate) fn worse(now: &Report, then: &Report, percent: f64, chance: &mut Chance) -> Vec<String> {
    let mut found = Vec::new();
    for section in &now.sections {
        let Some(before) = then.section(&section.profile) else { continue };
        for row in section.rows.iter().filter(|row| row.name.starts_with("quorlock")) {
            let Some(old) = before.row(&row.group, &row.name) else { continue };
            for figure in &row.figures {
                let Some(old) = old.figure(&figure.name) else { continue };
                if let Some(change) = change(figure, old, chance)
                    && change.low > 1.0 + percent / 100.0
                {
                    let place = [section.profile.as_str(), &row.group, &row.name, &figure.name];
                    let place: Vec<&str> = place.into_iter().filter(|word| !word.is_empty()).collect();
                    found.push(format!(
                        "{}: {} (1 is the baseline)",
                        place.join(", "),
                        interval(change.median, change.low, change.high),
                    ));
                }
            }
        }
    }
    found
}

/// How many times worse.
fn change(now: &Figure, then: &Figure, chance: &mut Chance) -> Option<Estimate> {
    let (now_values, then_values) = match (&now.ratio, &then.ratio) {
        (Some(now), Some(then)) if now.to == then.to => (&now.blocks, &then.blocks),
        _ => (&now.blocks, &then.blocks),
    };
    let more_is_better = now.unit == "/s" || now.unit == "%";
    let mut changes = Vec::new();
    // Every block of one run against every block of the other.
    for now in now_values {
        for then in then_values {
            changes.push(if more_is_better { then / now } else { now / then });
        }
    }
    changes.retain(|change| change.is_finite());
    // One block tells nothing of chance.
    (now_values.len() > 1 && then_values.len() > 1 && !changes.is_empty()).then(|| {
        let estimate = Estimate::of(&changes, chance);
        // The pairs are not independent; as many as there are blocks are.
        let widen = (changes.len() as f64 / now_values.len().min(then_values.len()) as f64).sqrt();
        Estimate {
            median: estimate.median,
            low: estimate.median - (estimate.median - estimate.low) * widen,
            high: estimate.median + (estimate.high - estimate.median) * widen,
        }
    })
}
