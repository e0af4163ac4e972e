//! Rules whose breach costs no safety as long as the others hold: the scenes find them.
//!
//! What a master forgot is covered by its quarantine, so that a deadline it still backs is sound (rule 3 makes the
//! loss known earlier). A healed key lives as long as its stamp says (rule 9 is careful). A delete follows each claim
//! on its own connection, so that a late grant finds it under way (rule 6 sends one more where it is not).

use super::{claims, renewals, sweeps};
use crate::protocol::mutant::{self, Mutant};

/// Whether `scene` fails with one rule broken, and holds without.
fn finds(mutant: Mutant, scene: fn()) {
    scene();
    let failed = std::panic::catch_unwind(|| {
        mutant::set(Some(mutant));
        scene();
    });
    mutant::set(None);
    assert!(failed.is_err(), "{mutant:?} is not caught");
}

#[test]
fn scenes_find_what_costs_no_safety() {
    let lowered = renewals::absent_lowers_the_deadline_and_too_many_of_them_lose_the_lease_early;
    let restarted = renewals::a_restarted_master_loses_its_vote_and_its_old_answers;
    let healed = renewals::only_w_confirmations_heal_and_the_healed_key_counts_from_the_next_round;
    let late_heal = renewals::a_heal_after_the_loss_or_the_release_is_deleted_and_none_is_sent;
    let split = claims::split_votes_are_deleted_on_every_master_refusals_included;
    let late_grant = sweeps::a_grant_that_comes_after_its_delete_failed_is_deleted_at_once;
    finds(Mutant::AbsentIgnored, lowered);
    finds(Mutant::OldAnswersCount, restarted);
    finds(Mutant::RestartIgnored, restarted);
    finds(Mutant::HealCountsAtOnce, healed);
    finds(Mutant::HealWithoutQuorum, healed);
    finds(Mutant::LateHealKept, late_heal);
    finds(Mutant::RefusalsNotDeleted, split);
    finds(Mutant::LateGrantsKept, late_grant);
}
