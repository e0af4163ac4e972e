//! Each rule, broken on purpose: the first seeds find it, by the promise that rests on it.

use quorlock::protocol::mutant::{self, Mutant};

use crate::plan::Plan;
use crate::promise::Promise;
use crate::run;
use crate::trace::Trace;

/// The seeds of one rule, at most.
const MOST: usize = 500;

/// The first seed that breaks the promise, of those whose plan can.
fn found(mutant: Mutant, heeds: fn(Promise) -> bool, fits: fn(&Plan) -> bool) -> Option<u64> {
    mutant::set(Some(mutant));
    let mut seeds = (0..).filter(|seed| fits(&Plan::new(*seed, false))).take(MOST);
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

const fn any(_: &Plan) -> bool {
    true
}

macro_rules! mutants {
    ($($name:ident: $mutant:ident breaks $promise:ident where $fits:expr;)*) => {$(
        #[test]
        fn $name() {
            let seed = found(Mutant::$mutant, |promise| promise == Promise::$promise, $fits);
            assert!(seed.is_some(), "not caught by {MOST} seeds");
        }
    )*};
}

mutants! {
    no_drift: DriftDropped breaks Exclusion where any;
    stamped_at_the_answer: StampedAtAnswer breaks Exclusion where |plan| plan.stalls > 0;
    one_confirmation: OneConfirmationIsEnough breaks Exclusion where any;
    refusals_count: RefusalsCount breaks Exclusion where any;
    silence_counts: SilenceCounts breaks Exclusion where any;
    half_is_enough: HalfIsEnough breaks Exclusion where any;
    the_quarantine_is_short: QuarantineTooShort breaks Exclusion where |plan| plan.masters.len() == 3;
    a_failed_renewal_releases: FailedRenewalReleases breaks Exclusion where any;
    loss_is_not_for_good: LossNotSticky breaks StickyLoss where |plan| plan.stalls > 0;
    absence_is_ignored: AbsentIgnored breaks Deadline where any;
    old_answers_count: OldAnswersCount breaks Deadline where |plan| plan.reads_late && plan.masters.len() == 3;
    a_restart_is_ignored: RestartIgnored breaks Deadline where any;
    a_heal_counts_at_once: HealCountsAtOnce breaks Deadline where any;
    a_heal_without_quorum: HealWithoutQuorum breaks Heal where any;
    late_grants_are_kept: LateGrantsKept breaks LateGrant where |plan| plan.overload > 0;
    a_late_heal_is_kept: LateHealKept breaks LateGrant where |plan| plan.min_votes == Some(4);
    refusals_are_not_deleted: RefusalsNotDeleted breaks RollBack where any;
    no_roll_back: RollBackSkipped breaks RollBack where any;
    the_doubtful_are_not_released: ReleaseSkipsDoubtful breaks RollBack where any;
    nothing_is_released: ReleaseForgotten breaks Ghost where Plan::looks_for_ghosts;
    links_are_not_swept: LinksNotSwept breaks Ghost where Plan::looks_for_ghosts;
    links_are_swept_once: SweptOnce breaks Ghost where Plan::looks_for_ghosts;
    doubt_ends_anywhere: DoubtEndsAnywhere breaks Ghost where Plan::looks_for_ghosts;
    the_clock_is_read_late: ClockReadLate breaks Exclusion where |plan| plan.stalls > 0;
    a_dropped_claim_is_not_undone: DropNotUndone breaks RollBack where any;
    a_loss_that_was_seen_is_forgotten: SeenLossForgotten breaks StickyLoss where |plan| plan.stalls > 0;
    a_dropped_guard_is_not_told: DropNotTold breaks Silence where any;
}
