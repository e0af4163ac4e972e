//! Who runs when. The order within a block is drawn and then run backwards (A B C C B A), so that a machine that
//! becomes faster or slower in the course of a block does not favour anybody.

use std::time::Duration;

use super::arms::Arm;
use super::chance::Chance;
use super::slice::{self, Figures, Slice, Until};
use super::stop;

/// Figures by row, and by block within a row.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) rows: Vec<(&'static str, Vec<Figures>)>,
    /// By row: every acquire, in nanoseconds.
    pub(crate) acquires: Vec<Vec<u32>>,
}

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) time: Duration,
    pub(crate) blocks: usize,
    pub(crate) cycles: Option<usize>,
    /// Cycles before anything counts.
    pub(crate) warm_up: usize,
}

impl Plan {
    pub(crate) fn until(&self, slices_in_block: usize) -> Until {
        let slices = u32::try_from(self.blocks * slices_in_block).unwrap_or(u32::MAX).max(1);
        self.cycles.map_or(Until::After(self.time / slices), Until::Cycles)
    }
}

/// Each of so many twice, in the order of one block.
pub(crate) fn there_and_back(count: usize, chance: &mut Chance) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    chance.shuffle(&mut order);
    order.extend_from_within(..);
    order[count..].reverse();
    order
}

/// All arms against each other; and what else is to be measured within each block.
pub(crate) async fn side_by_side(
    arms: &[Arm],
    tasks: usize,
    plan: Plan,
    chance: &mut Chance,
    mut within: impl AsyncFnMut() -> Result<(), String>,
) -> Result<Measured, String> {
    let until = plan.until(2 * arms.len());
    for arm in arms {
        let cycles = plan.cycles.unwrap_or(plan.warm_up).min(plan.warm_up);
        slice::run(arm, tasks, Until::Cycles(cycles / tasks + 1)).await?;
    }
    let mut rows: Vec<_> = arms.iter().map(|arm| (arm.name, Vec::new())).collect();
    let mut acquires: Vec<Vec<u32>> = arms.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.blocks {
        if stop::is_raised() {
            break;
        }
        let mut block: Vec<Slice> = arms.iter().map(|_| Slice::default()).collect();
        for nth in there_and_back(arms.len(), chance) {
            block[nth].add(slice::run(&arms[nth], tasks, until).await?);
        }
        within().await?;
        for ((row, all), slice) in rows.iter_mut().zip(&mut acquires).zip(block) {
            all.extend(&slice.acquire);
            row.1.push(slice.figures());
        }
    }
    Ok(Measured { rows, acquires })
}
