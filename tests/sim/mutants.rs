//! Each rule, broken on purpose: the first seeds find it, by the promise that rests on it.

use quorlock::protocol::mutant::{self, Mutant};

use crate::plan::Plan;
use crate::promise::Promise;
use crate::run;
use crate::trace::Trace;

/// The seeds of one rule, at most.
const MOST: usize = 300;

/// The first seed that breaks the promise.
fn found(mutant: Mutant, heeds: fn(Promise) -> bool) -> Option<u64> {
    mutant::set(Some(mutant));
    // Only where keys are looked for that should not be there.
    let ghosts = heeds(Promise::Ghost);
    let mut seeds = (0..).filter(|seed| !ghosts || Plan::new(*seed, false).looks_for_ghosts()).take(MOST);
    let seed = seeds.find(|seed| match run(*seed, heeds, Trace::default()).breach {
        Some(breach) => {
            println!("{mutant:?}: seed {seed}: {breach}");
            true
        }
        None => false,
    });
    mutant::set(None);
    seed
}

macro_rules! mutants {
    ($($name:ident: $mutant:ident breaks $promise:ident;)*) => {$(
        #[test]
        fn $name() {
            let seed = found(Mutant::$mutant, |promise| promise == Promise::$promise);
            assert!(seed.is_some(), "not caught by {MOST} seeds");
        }
    )*};
}

mutants! {
    no_drift: DriftDropped breaks Exclusion;
    stamped_at_the_answer: StampedAtAnswer breaks Exclusion;
    one_confirmation: OneConfirmationIsEnough breaks Exclusion;
    refusals_count: RefusalsCount breaks Exclusion;
    silence_counts: SilenceCounts breaks Exclusion;
    half_is_enough: HalfIsEnough breaks Exclusion;
    the_quarantine_is_short: QuarantineTooShort breaks Exclusion;
    a_failed_renewal_releases: FailedRenewalReleases breaks Exclusion;
    loss_is_not_for_good: LossNotSticky breaks StickyLoss;
    absence_is_ignored: AbsentIgnored breaks Deadline;
    old_answers_count: OldAnswersCount breaks Deadline;
    a_restart_is_ignored: RestartIgnored breaks Deadline;
    a_heal_counts_at_once: HealCountsAtOnce breaks Deadline;
    a_heal_without_quorum: HealWithoutQuorum breaks Heal;
    late_grants_are_kept: LateGrantsKept breaks LateGrant;
    a_late_heal_is_kept: LateHealKept breaks LateGrant;
    refusals_are_not_deleted: RefusalsNotDeleted breaks RollBack;
    no_roll_back: RollBackSkipped breaks RollBack;
    the_doubtful_are_not_released: ReleaseSkipsDoubtful breaks RollBack;
    nothing_is_released: ReleaseForgotten breaks Ghost;
    links_are_not_swept: LinksNotSwept breaks Ghost;
    links_are_swept_once: SweptOnce breaks Ghost;
    doubt_ends_anywhere: DoubtEndsAnywhere breaks Ghost;
    the_clock_is_read_late: ClockReadLate breaks Exclusion;
    a_dropped_claim_is_not_undone: DropNotUndone breaks RollBack;
    a_loss_that_was_seen_is_forgotten: SeenLossForgotten breaks StickyLoss;
    a_dropped_guard_is_not_told: DropNotTold breaks Silence;
}
