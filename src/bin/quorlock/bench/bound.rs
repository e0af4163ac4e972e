//! What no client can beat: the w-th quickest round trip of the masters, in the same blocks.

use std::time::Duration;

use tokio::time::sleep;

use super::bare::BareFred;
use super::sums::median;

/// Round trips, gathered between the slices.
#[derive(Debug, Default)]
pub(crate) struct Bounds(Vec<(usize, Vec<Vec<f64>>)>);

impl Bounds {
    /// For rows of so many masters.
    pub(crate) fn of(masters: impl IntoIterator<Item = usize>) -> Self {
        let mut bounds = Self::default();
        for masters in masters {
            if !bounds.0.iter().any(|(known, _)| *known == masters) {
                bounds.0.push((masters, Vec::new()));
            }
        }
        bounds
    }

    pub(crate) async fn gather(&mut self, asked: &BareFred, times: usize) -> Result<(), String> {
        for (masters, rounds) in &mut self.0 {
            // The first after a pause finds everything asleep.
            asked.round_trips(*masters).await?;
            for _ in 0..times {
                rounds.push(asked.round_trips(*masters).await?);
            }
        }
        Ok(())
    }

    /// As one finds them who has slept for `pause`.
    pub(crate) async fn gather_asleep(
        &mut self,
        asked: &BareFred,
        times: usize,
        pause: Duration,
    ) -> Result<(), String> {
        for (masters, rounds) in &mut self.0 {
            for _ in 0..times {
                sleep(pause).await;
                rounds.push(asked.round_trips(*masters).await?);
            }
        }
        Ok(())
    }

    /// The median of the w-th, in microseconds.
    pub(crate) fn least(&self, masters: usize, needed: usize) -> f64 {
        let rounds = self.0.iter().find(|(known, _)| *known == masters).map_or(&[][..], |(_, rounds)| rounds);
        let nth: Vec<f64> = rounds.iter().filter_map(|round| round.get(needed - 1).copied()).collect();
        median(&nth)
    }
}
