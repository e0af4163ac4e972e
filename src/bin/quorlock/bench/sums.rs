//! Medians, and how far to trust them.

use super::chance::Chance;

const RESAMPLES: usize = 2_000;

pub(crate) fn quantile(samples: &mut [u32], q: f64) -> u32 {
    if samples.is_empty() {
        return 0;
    }
    let rank = (q * samples.len() as f64).ceil() as usize;
    let (_, value, _) = samples.select_nth_unstable(rank.clamp(1, samples.len()) - 1);
    *value
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (count, half) if count % 2 == 0 => f64::midpoint(sorted[half - 1], sorted[half]),
        (_, half) => sorted[half],
    }
}

/// A median with the interval that 95 % of the medians of resampled values fall into.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Estimate {
    pub(crate) fn of(values: &[f64], chance: &mut Chance) -> Self {
        if values.is_empty() {
            return Self { median: f64::NAN, low: f64::NAN, high: f64::NAN };
        }
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let again: Vec<f64> = values.iter().map(|_| values[chance.below(values.len())]).collect();
                median(&again)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let at = |q: f64| medians[((q * RESAMPLES as f64) as usize).min(RESAMPLES - 1)];
        Self { median: median(values), low: at(0.025), high: at(0.975) }
    }
}
