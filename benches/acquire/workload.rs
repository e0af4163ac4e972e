//! What happens to locks while masters are frozen.

use std::time::{Duration, Instant};

use quorlock::testbed::{Fault, Testbed};

use crate::arms::{Arm, Kind};
use crate::blocks::{Measured, Plan};
use crate::chance::Chance;
use crate::contender::Contender as _;
use crate::slice::{self, Figures, Until};

/// How long the client may take to have all masters back after a thaw.
const RECOVERY: Duration = Duration::from_secs(10);

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
    Ok(Measured { rows, acquires: Vec::new() })
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
