//! Who runs when. The order within a block is drawn and then run backwards (A B C C B A), so that a machine that
//! becomes faster or slower in the course of a block does not favour anybody.

use std::time::{Duration, Instant};

use quorlock::testbed::{Fault, Testbed};

use crate::chance::Chance;
use crate::contender::{Arm, Contender as _, Kind};
use crate::slice::{self, Figures, Slice, Until};

/// How long the client may take to have all masters back after a thaw.
const RECOVERY: Duration = Duration::from_secs(10);

/// Figures by row, and by block within a row.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) rows: Vec<(&'static str, Vec<Figures>)>,
}

impl Measured {
    pub(crate) fn row(&self, name: &str) -> Option<&[Figures]> {
        self.rows.iter().find(|(row, _)| *row == name).map(|(_, blocks)| blocks.as_slice())
    }

    /// The quotient of two rows, block by block.
    pub(crate) fn ratios(&self, of: &str, to: &str, figure: fn(&Figures) -> f64) -> Vec<f64> {
        let (Some(of), Some(to)) = (self.row(of), self.row(to)) else { return Vec::new() };
        of.iter().zip(to).map(|(of, to)| figure(of) / figure(to)).collect()
    }
}

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) time: Duration,
    pub(crate) blocks: usize,
    pub(crate) cycles: Option<usize>,
}

impl Plan {
    fn until(&self, slices_in_block: usize) -> Until {
        let slices = u32::try_from(self.blocks * slices_in_block).unwrap_or(u32::MAX).max(1);
        self.cycles.map_or(Until::After(self.time / slices), Until::Cycles)
    }
}

/// All arms against each other.
pub(crate) async fn side_by_side(
    arms: &[Arm],
    tasks: usize,
    plan: Plan,
    chance: &mut Chance,
) -> Result<Measured, String> {
    let until = plan.until(2 * arms.len());
    for arm in arms {
        slice::run(arm, tasks, Until::Cycles(plan.cycles.unwrap_or(6_400).min(6_400) / tasks + 1)).await?;
    }
    let mut rows: Vec<_> = arms.iter().map(|arm| (arm.name, Vec::new())).collect();
    for _ in 0..plan.blocks {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        chance.shuffle(&mut order);
        let mut block: Vec<Slice> = arms.iter().map(|_| Slice::default()).collect();
        for &nth in order.iter().chain(order.iter().rev()) {
            block[nth].add(slice::run(&arms[nth], tasks, until).await?);
        }
        for (row, slice) in rows.iter_mut().zip(block) {
            row.1.push(slice.figures());
        }
    }
    Ok(Measured { rows })
}

/// One arm, with no, one and two masters frozen.
pub(crate) async fn frozen(
    arm: &Arm,
    bed: &Testbed,
    plan: Plan,
    chance: &mut Chance,
) -> Result<Measured, String> {
    const STATES: [&str; 3] = ["healthy", "one frozen", "two frozen"];
    let until = plan.until(STATES.len());
    slice::run(arm, 1, Until::Cycles(200)).await?;
    let mut rows: Vec<_> = STATES.iter().map(|state| (*state, Vec::new())).collect();
    for _ in 0..plan.blocks {
        let mut order = [0, 1, 2];
        chance.shuffle(&mut order);
        for count in order {
            let first = chance.below(5);
            let chosen = (first..first + count).map(|nth| &bed[nth % 5]);
            let faults: Vec<_> = chosen.map(|master| master.injected(Fault::Freeze)).collect();
            if let Some(fault) = faults.iter().find(|fault| !fault.outcome().is_installed()) {
                return Err(format!("a master was not frozen: {}", fault.outcome()));
            }
            let slice = slice::run(arm, 1, until).await;
            drop(faults);
            rows[count].1.push(slice?.figures());
            recover(arm).await?;
        }
    }
    Ok(Measured { rows })
}

/// Waits until a lock stands on all five again.
async fn recover(arm: &Arm) -> Result<(), String> {
    let Kind::Ours(ours) = &arm.kind else {
        return Err("only quorlock is measured on frozen masters".into());
    };
    let began = Instant::now();
    for nth in 0.. {
        let guard = ours.acquire(&format!("bench:recover:{nth}")).await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let votes = guard.votes();
        ours.release(guard).await?;
        if votes == 5 {
            break;
        }
        if began.elapsed() > RECOVERY {
            return Err(format!("{votes} of 5 masters vote {RECOVERY:?} after the thaw"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}
