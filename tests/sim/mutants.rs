//! Each rule, broken on purpose: the first seeds find it, by the promise that rests on it.

use quorlock::protocol::mutant::{self, Mutant};

use crate::plan::Plan;
use crate::promise::Promise;
use crate::run;
use crate::trace::Trace;

/// How many seeds are tried if the first one does not find it any more, since runs have changed.
const MOST: usize = 800;

/// Whether the run of `seed` breaks a promise that is heeded.
fn breaks(mutant: Mutant, heeds: fn(Promise) -> bool, seed: u64) -> bool {
    mutant::set(Some(mutant));
    let breach = run(seed, heeds, Trace::default()).breach;
    mutant::set(None);
    if let Some(breach) = &breach {
        println!("{mutant:?}: seed {seed}: {breach}");
    }
    breach.is_some()
}

/// Seed `first` finds it, or else one of those whose plan can; and never without the mutant.
fn is_caught(mutant: Mutant, heeds: fn(Promise) -> bool, fits: fn(&Plan) -> bool, first: u64) {
    assert!(run(first, heeds, Trace::default()).breach.is_none(), "also with every rule kept");
    if breaks(mutant, heeds, first) {
        return;
    }
    let fitting = (0..).filter(|seed| fits(&Plan::new(*seed, false))).take(MOST);
    let (mut tried, mut last) = (0, 0);
    for seed in fitting {
        (tried, last) = (tried + 1, seed);
        if breaks(mutant, heeds, seed) {
            return println!("{mutant:?}: found by seed {seed}, the {tried}th that fits, and not by {first}");
        }
    }
    panic!("{mutant:?} is not caught by {tried} seeds up to {last}");
}

const fn any(_: &Plan) -> bool {
    true
}

macro_rules! mutants {
    ($($name:ident: $mutant:ident breaks $promise:ident where $fits:expr, by $first:literal;)*) => {$(
        #[test]
        fn $name() {
            is_caught(Mutant::$mutant, |promise| promise == Promise::$promise, $fits, $first);
        }
    )*};
}

mutants! {
    no_drift: DriftDropped breaks Exclusion where any, by 10;
    stamped_at_the_answer: StampedAtAnswer breaks Exclusion where |plan| plan.stalls > 0, by 60;
    one_confirmation: OneConfirmationIsEnough breaks Exclusion where any, by 155;
    refusals_count: RefusalsCount breaks Exclusion where any, by 0;
    silence_counts: SilenceCounts breaks Exclusion where any, by 11;
    half_is_enough: HalfIsEnough breaks Exclusion where any, by 2;
    the_quarantine_is_short: QuarantineTooShort breaks Exclusion where |plan| plan.masters.len() == 3, by 155;
    a_failed_renewal_releases: FailedRenewalReleases breaks Exclusion where any, by 9;
    loss_is_not_for_good: LossNotSticky breaks StickyLoss where |plan| plan.stalls > 0, by 31;
    absence_is_ignored: AbsentIgnored breaks Deadline where any, by 15;
    old_answers_count: OldAnswersCount breaks Deadline where |plan| plan.reads_late, by 2956;
    a_restart_is_ignored: RestartIgnored breaks Deadline where any, by 7;
    a_claim_is_not_told_of_a_restart: ClaimsNotTold breaks Deadline where any, by 74;
    a_heal_counts_at_once: HealCountsAtOnce breaks Deadline where any, by 18;
    a_heal_without_quorum: HealWithoutQuorum breaks Heal where any, by 0;
    late_grants_are_kept: LateGrantsKept breaks LateGrant where |plan| plan.overload > 0, by 45;
    a_late_heal_is_kept: LateHealKept breaks LateGrant where any, by 42;
    refusals_are_not_deleted: RefusalsNotDeleted breaks RollBack where any, by 0;
    no_roll_back: RollBackSkipped breaks RollBack where any, by 0;
    the_doubtful_are_not_released: ReleaseSkipsDoubtful breaks RollBack where any, by 0;
    nothing_is_released: ReleaseForgotten breaks Ghost where Plan::looks_for_ghosts, by 0;
    links_are_not_swept: LinksNotSwept breaks Ghost where Plan::looks_for_ghosts, by 542;
    links_are_swept_once: SweptOnce breaks Ghost where Plan::looks_for_ghosts, by 710;
    doubt_ends_anywhere: DoubtEndsAnywhere breaks Ghost where Plan::looks_for_ghosts, by 710;
    the_greatest_is_the_token: GreatestIsToken breaks Tokens where any, by 103;
    the_least_is_the_token: LeastIsToken breaks Tokens where any, by 31;
    raising_is_not_awaited: RaiseNotAwaited breaks Tokens where any, by 341;
    any_counter_is_raised: RaisedAnywhere breaks Tokens where any, by 31;
    counters_are_not_recovered: RecoverySkipped breaks Tokens where any, by 13;
    too_few_counters_are_read: RecoveryReadsTooFew breaks Tokens where |plan| plan.masters.len() == 3, by 3749;
    the_clock_is_read_late: ClockReadLate breaks Exclusion where |plan| plan.stalls > 0, by 48;
    a_dropped_claim_is_not_undone: DropNotUndone breaks RollBack where any, by 59;
    a_loss_that_was_seen_is_forgotten: SeenLossForgotten breaks StickyLoss where |plan| plan.stalls > 0, by 189;
    a_dropped_guard_is_not_told: DropNotTold breaks Silence where any, by 8;
}
