//! What was measured, as it is written to a file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chance::Chance;
use super::sums::Estimate;

/// Raised whenever a field changes its meaning or goes.
pub(crate) const SCHEMA: u32 = 1;

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) schema: u32,
    pub(crate) version: String,
    /// Whether it ran to its end.
    pub(crate) complete: bool,
    pub(crate) quick: bool,
    pub(crate) seconds: f64,
    /// Two holders of one resource at once, in all contended scenarios together.
    pub(crate) overlaps: u64,
    pub(crate) environment: Value,
    pub(crate) sections: Vec<Section>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) aims: Vec<Aim>,
}

/// One scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) profile: String,
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) rows: Vec<Row>,
    /// Over time, where that is what is looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) dots: Vec<Dot>,
    /// From when to when the fault was there, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    /// What rows are compared within; empty if all are.
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) figures: Vec<Figure>,
    /// Share of the acquires, and within how many microseconds they were done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) curve: Vec<(f64, f64)>,
}

/// A number with the interval of its median, by resampled blocks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: String,
    #[serde(flatten)]
    pub(crate) estimate: Estimate,
    pub(crate) blocks: Vec<f64>,
    /// The least it could be, by the round trips of the same blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bound: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<Ratio>,
}

/// This row's figure by that of another row of its group, block by block.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ratio {
    pub(crate) to: String,
    #[serde(flatten)]
    pub(crate) estimate: Estimate,
    pub(crate) blocks: Vec<f64>,
    /// Whether the interval leaves out 1.
    pub(crate) differs: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Dot {
    pub(crate) row: u8,
    /// Seconds since the scenario began.
    pub(crate) at: f64,
    pub(crate) millis: f64,
    pub(crate) ok: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Skipped {
    pub(crate) what: String,
    pub(crate) why: String,
}

/// Something the library should reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Aim {
    pub(crate) what: String,
    pub(crate) asked: String,
    #[serde(flatten)]
    pub(crate) measured: Estimate,
    pub(crate) met: bool,
}

impl Section {
    pub(crate) fn new(profile: &str, title: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            profile: profile.into(),
            title: title.into(),
            note: note.into(),
            rows: Vec::new(),
            dots: Vec::new(),
            fault: None,
        }
    }

    pub(crate) fn row(&self, group: &str, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.group == group && row.name == name)
    }

    /// Sets these figures of all rows in proportion to those of one row of their group.
    pub(crate) fn compare(&mut self, to: &str, figures: &[&str], chance: &mut Chance) {
        let bases: Vec<Row> = self.rows.iter().filter(|row| row.name == to).cloned().collect();
        for row in self.rows.iter_mut().filter(|row| row.name != to) {
            let Some(base) = bases.iter().find(|base| base.group == row.group) else { continue };
            for figure in row.figures.iter_mut().filter(|figure| figures.contains(&figure.name.as_str())) {
                let Some(other) = base.figure(&figure.name) else { continue };
                // One block tells nothing of chance.
                if figure.blocks.len() < 2 {
                    continue;
                }
                figure.ratio = Ratio::of(to, &figure.blocks, &other.blocks, chance);
            }
        }
    }
}

impl Row {
    pub(crate) fn new(group: impl Into<String>, name: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            name: name.into(),
            what: what.into(),
            figures: Vec::new(),
            curve: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &str, unit: &str, blocks: Vec<f64>, chance: &mut Chance) -> Self {
        // Nothing measured, nothing said.
        let blocks: Vec<f64> = blocks.into_iter().filter(|value| value.is_finite()).collect();
        if !blocks.is_empty() {
            let estimate = Estimate::of(&blocks, chance);
            self.figures.push(Figure {
                name: name.into(),
                unit: unit.into(),
                estimate,
                blocks,
                bound: None,
                ratio: None,
            });
        }
        self
    }

    /// The least that the figure given last can be.
    pub(crate) fn bounded(mut self, bound: f64) -> Self {
        if let Some(figure) = self.figures.last_mut() {
            figure.bound = bound.is_finite().then_some(bound);
        }
        self
    }

    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

impl Ratio {
    pub(crate) fn of(to: &str, these: &[f64], those: &[f64], chance: &mut Chance) -> Option<Self> {
        let blocks: Vec<f64> = these.iter().zip(those).map(|(this, that)| this / that).collect();
        if blocks.is_empty() || blocks.iter().any(|ratio| !ratio.is_finite()) {
            return None;
        }
        let estimate = Estimate::of(&blocks, chance);
        let differs = estimate.low > 1.0 || estimate.high < 1.0;
        Some(Self { to: to.into(), estimate, blocks, differs })
    }
}

impl Report {
    pub(crate) fn section(&self, profile: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.profile == profile)
    }
}
