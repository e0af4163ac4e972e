//! What was seen in the runs, so that a search of nothing does not pass.

macro_rules! sights {
    ($($name:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Sight { $($name),* }
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

sights! {
    // Faults.
    SlowRoute, Blocked, Cut, Frozen, RestartedWithData, RestartedEmpty, RestartedOld, Paused, Suspended, Stalled,
    DeletedByHand, Refused, LostOnTheWay, AnswerLost, LateExecution, ReadLate, TimedOut, Withdrawn, ChangeTold, ChangeUntold, AnyChangeTold,
    // Outcomes.
    Won, Contended, NoQuorum, TooLate, HeldToTheEnd, Lost, LostWhileStalled, AtRisk, Renewed, Healed, Extended, NotExtended, KeyLost,
    InQuarantine, Admitted, ToldOfRestart, Freed, Lingering, AlreadyLost, DroppedAmidClaim, DroppedAmidRelease,
    GuardDropped, ExtendedAs, ReleasedAs, ClosedAmidWork, RefusedWhenClosed, Several, Fenced, CountersRecovered, Used, UseCancelled, MaxHoldOver, HandedOn, LateGrant, GhostsLookedFor, Closed,
    LoneWin, EverybodyWon,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sights(Vec<u64>);

impl Default for Sights {
    fn default() -> Self {
        Self(vec![0; NAMES.len()])
    }
}

impl Sights {
    pub(crate) fn saw(&mut self, sight: Sight) {
        self.0[sight as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(total, times)| *total += times);
    }

    /// What was seen less than `least` times.
    pub(crate) fn missing(&self, least: u64) -> Vec<&'static str> {
        NAMES.iter().zip(&self.0).filter(|(_, times)| **times < least).map(|(name, _)| *name).collect()
    }
}

impl std::fmt::Display for Sights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        NAMES.iter().zip(&self.0).try_for_each(|(name, times)| write!(f, "{name} {times}  "))
    }
}
