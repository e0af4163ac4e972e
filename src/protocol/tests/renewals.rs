//! Renewal, loss and healing: what raises the deadline, what lowers it, and what comes too late.

use std::time::Duration;

use super::scene::*;
use crate::protocol::attempt::{Attempt, Loss, Stage};
use crate::protocol::fanout::Act;
use crate::protocol::renewal::Extension;
use crate::protocol::votes::{Fault, Vote};

const FIRST: u64 = PERIOD * MS;

fn renewing() -> Scene {
    let mut scene = Scene::watched();
    assert_eq!(scene.next(), Some(FIRST));
    assert_eq!(scene.time(FIRST).sent(), "Renew m1 m2 m3 m4 m5");
    scene
}

#[test]
fn the_third_confirmation_raises_the_deadline_from_the_send_stamp() {
    let mut scene = renewing();
    scene.at(FIRST + 50 * MS).all_hear(&[1, 2], &Vote::Granted);
    assert_eq!((scene.deadline(), scene.news().renewed), (Some(VALIDITY), false));
    scene.hears(3, Vote::Granted);
    assert_eq!(scene.deadline(), Some(FIRST + VALIDITY));
    let news = scene.news();
    assert!(news.renewed && news.deadline && !news.recovered);
    assert_eq!(scene.next(), Some(2 * FIRST), "back to the habit");
}

#[test]
fn a_straggler_of_the_claim_counts_from_the_claims_stamp() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    scene.attempt.watch_over(after(50 * MS), Duration::from_millis(PERIOD));
    assert_eq!(scene.time(50 * MS).sent(), "Renew m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.all_hear(&[4, 5], &Vote::Granted);
    assert_eq!(scene.deadline(), Some(VALIDITY), "two of the renewal and two of the claim");
    scene.hears(4, Vote::Granted);
    assert_eq!(scene.deadline(), Some(50 * MS + VALIDITY));
}

#[test]
fn a_partial_renewal_raises_the_masters_that_gave_it() {
    let mut scene = renewing();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.all_hear(&[3, 4, 5], &unreachable());
    assert_eq!((scene.deadline(), scene.next()), (Some(VALIDITY), Some(FIRST + 75 * MS)));
    assert_eq!(scene.time(FIRST + 75 * MS).sent(), "Renew m1 m2 m3 m4 m5");
    assert!(scene.news().renewal_failed);
    scene.all_hear(&[1, 2, 4, 5], &unreachable());
    scene.hears(3, Vote::Granted);
    assert_eq!(scene.deadline(), Some(FIRST + VALIDITY), "the third largest is that of the first try");
}

#[test]
fn a_renewal_without_w_leaves_the_deadline_and_is_tried_until_it_passes() {
    let mut scene = renewing();
    let mut tries = vec![FIRST];
    while scene.is_held() {
        scene.all_hear(&[1, 2, 3, 4, 5], &unreachable());
        assert_eq!(scene.deadline(), Some(VALIDITY));
        let next = scene.next().unwrap();
        scene.time(next);
        match scene.sent().as_str() {
            "Renew m1 m2 m3 m4 m5" => tries.push(next),
            nothing => {
                assert_eq!(nothing, "");
                if scene.is_held() {
                    let dispatch_due = scene.next().unwrap();
                    assert_eq!(scene.time(dispatch_due).sent(), "Renew m1 m2 m3 m4 m5");
                    tries.push(dispatch_due);
                }
            }
        }
    }
    let every_75_ms: Vec<u64> = (4..=13).map(|nth| nth * 75 * MS).collect();
    assert_eq!(tries, every_75_ms);
    assert!(scene.is_lost(Loss::Expired) && scene.now() == after(VALIDITY) && scene.news().lost);
}

#[test]
fn the_holder_is_warned_one_period_before_the_loss_and_once() {
    let mut scene = renewing();
    let warning = VALIDITY - PERIOD * MS;
    let mut warned = Vec::new();
    while scene.is_held() {
        scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Failed(Fault::Overloaded));
        while scene.sent().is_empty() && scene.is_held() {
            let next = scene.next().unwrap();
            scene.time(next);
            warned.extend(scene.news().at_risk.then_some(next));
        }
    }
    assert_eq!(warned, [warning]);
}

#[test]
pub(super) fn absent_lowers_the_deadline_and_too_many_of_them_lose_the_lease_early() {
    let mut scene = renewing();
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    assert_eq!(scene.deadline(), Some(FIRST + VALIDITY));
    assert_eq!(scene.time(2 * FIRST).sent(), "Renew m1 m2 m3 m4 m5");
    scene.hears(1, Vote::Absent);
    assert_eq!(scene.deadline(), Some(VALIDITY), "m4 and m5 still stand on the claim");
    scene.hears(4, held());
    assert_eq!((scene.deadline(), scene.is_held()), (Some(VALIDITY), true));
    assert!(scene.news().key_lost);
    scene.hears(5, Vote::Absent);
    assert!(scene.is_lost(Loss::Vanished) && scene.deadline().is_none());
}

#[test]
fn loss_is_for_good_one_nanosecond_after_and_at_the_deadline() {
    for late in [0, 1] {
        let mut scene = renewing();
        scene.at(VALIDITY + late).all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
        assert!(scene.is_lost(Loss::Expired), "+{late} ns");
        assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
        assert_eq!(scene.attempt.extend(ttl(TTL), scene.now()), None);
    }
    let mut scene = renewing();
    scene.at(VALIDITY - 1).all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
    assert_eq!((scene.deadline(), scene.is_held()), (Some(FIRST + VALIDITY), true));
}

#[test]
pub(super) fn only_w_confirmations_heal_and_the_healed_key_counts_from_the_next_round() {
    let mut scene = renewing();
    scene.all_hear(&[1, 2], &Vote::Absent);
    scene.all_hear(&[3, 4], &Vote::Granted);
    assert_eq!(scene.sent(), "");
    scene.hears(5, Vote::Granted);
    assert_eq!(scene.sent(), "Heal m1 m2");
    scene.all_hear(&[1, 2], &Vote::Granted);
    assert!(scene.news().healed);
    assert_eq!(scene.attempt.backing(), masters(&[3, 4, 5]));
    assert_eq!(scene.time(2 * FIRST).sent(), "Renew m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2], &Vote::Granted);
    assert_eq!(scene.attempt.backing(), masters(&[1, 2, 3, 4, 5]));
}

#[test]
pub(super) fn a_heal_after_the_loss_or_the_release_is_deleted_and_none_is_sent() {
    let mut scene = renewing();
    scene.hears(1, Vote::Absent);
    scene.all_hear(&[2, 3, 4, 5], &Vote::Granted);
    let heal = scene.attempt.clone().next_dispatch().unwrap();
    assert!(heal.act == Act::Heal && scene.attempt.wants(&heal, after(FIRST + VALIDITY - 1)));
    assert!(!scene.attempt.wants(&heal, after(FIRST + VALIDITY)));
    let unsent = scene.attempt.clone();
    assert_eq!(scene.sent(), "Heal m1");
    scene.time(FIRST + VALIDITY);
    scene.hears(1, Vote::Granted);
    assert_eq!(scene.sent(), "Release m1");

    let mut lost = Scene::of(unsent.clone());
    assert_eq!(lost.time(FIRST + VALIDITY).sent(), "");
    let mut given_back = Scene::of(unsent);
    assert_eq!(given_back.at(FIRST).released(), "Release m1 m2 m3 m4 m5");
}

#[test]
pub(super) fn a_restarted_master_loses_its_vote_and_its_old_answers() {
    let mut scene = renewing();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.connected(4, true);
    scene.connected(5, false);
    assert!(scene.news().key_lost);
    scene.hears(4, Vote::Granted);
    assert_eq!(scene.attempt.backing(), masters(&[1, 2, 3, 5]), "m4's answer is from before");
    scene.connected(3, true);
    assert_eq!((scene.deadline(), scene.is_held()), (Some(VALIDITY), true));
    scene.connected(5, true);
    assert!(scene.is_lost(Loss::Vanished));
}

#[test]
fn the_longest_hold_ends_the_lease_whatever_is_confirmed() {
    let mut scene = Scene::watched();
    scene.attempt.end_hold_at(after(VALIDITY + 5), scene.now());
    assert_eq!(scene.time(FIRST).sent(), "Renew m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
    assert_eq!(scene.deadline(), Some(VALIDITY + 5));
    scene.at(VALIDITY + 5).attempt.on_time(after(VALIDITY + 5));
    assert!(scene.is_lost(Loss::MaxHold) && !scene.news().at_risk);
}

#[test]
fn a_longer_longest_hold_does_not_revive_what_the_shorter_one_ended() {
    let mut scene = Scene::won();
    scene.attempt.end_hold_at(after(10 * MS), scene.now());
    scene.at(10 * MS).attempt.end_hold_at(after(20 * MS), after(10 * MS));
    assert!(scene.is_lost(Loss::MaxHold));
}

#[test]
fn an_answer_that_comes_before_the_next_command_is_handed_over_ends_no_round() {
    let mut scene = Scene::won();
    scene.attempt.extend(ttl(TTL), scene.now());
    let first = scene.attempt.next_dispatch().unwrap();
    let reply = crate::protocol::votes::Reply::unsent(Fault::Overloaded);
    scene.attempt.on_reply(&first, reply, scene.now());
    assert!(!scene.news().renewed);
}

#[test]
fn an_extension_is_pending_until_decided() {
    let mut scene = Scene::won();
    let round = scene.attempt.extend(ttl(2 * TTL), scene.now()).unwrap();
    let state = |scene: &Scene| scene.attempt.extension(round, scene.now());
    assert_eq!(state(&scene), Extension::Pending, "also before it is handed over");
    assert_eq!(scene.sent(), "Renew m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2], &Vote::Granted);
    assert_eq!(state(&scene), Extension::Pending);
    let mut other = Scene::of(scene.attempt.clone());
    other.at(100 * MS);
    assert_eq!(state(&other), Extension::Unconfirmed, "after the time limit of one master");
    scene.hears(3, Vote::Granted);
    assert_eq!((state(&scene), scene.deadline()), (Extension::Confirmed, Some(1_978 * MS)));
    assert_eq!(scene.released(), "Release m1 m2 m3 m4 m5");
    assert_eq!((scene.attempt.stage(), state(&scene)), (Stage::Released, Extension::Lost));
}

#[test]
fn far_masters_that_answer_after_the_retry_still_confirm_the_renewal() {
    let mut scene = renewing();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.time(FIRST + 75 * MS);
    assert_eq!(
        scene.sent(),
        "",
        "two have answered, and the others would get nothing new from a second command"
    );
    scene.at(FIRST + 90 * MS).hears(3, Vote::Absent);
    scene.all_hear(&[4, 5], &Vote::Granted);
    let news = scene.news();
    assert!(news.renewed && !news.renewal_failed, "four masters confirmed in their own time");
    assert_eq!((scene.deadline(), scene.next()), (Some(FIRST + VALIDITY), Some(2 * FIRST)));
    assert_eq!(scene.sent(), "Heal m3");
}

#[test]
fn a_shorter_ttl_is_renewed_more_often() {
    let mut scene = Scene::of(Attempt::claim(five(), ttl(30_000), MASTER_TIMEOUT, after(0)));
    scene.sent();
    scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
    scene.attempt.watch_over(after(10 * S), Duration::from_secs(10));
    scene.at(9 * S).attempt.extend(ttl(3_000), after(9 * S));
    while scene.is_held() && scene.now() < after(60 * S) {
        scene.sent();
        scene.all_answer(&Vote::Granted);
        let next = scene.next().unwrap();
        scene.time(next);
    }
    assert!(scene.is_held(), "{:?}: all five confirm all the time", scene.attempt.stage());
}

#[test]
fn a_renewal_that_waits_unsent_is_of_use_for_as_long_as_a_master_may_take() {
    let mut scene = Scene::watched();
    scene.time(FIRST);
    let renewals: Vec<_> = std::iter::from_fn(|| scene.attempt.next_dispatch()).collect();
    let limit = FIRST + 100 * MS;
    assert!(renewals.iter().all(|renewal| scene.attempt.wants(renewal, after(limit - 1))));
    assert!(!renewals.iter().any(|renewal| scene.attempt.wants(renewal, after(limit))));
    scene.attempt.release(after(FIRST + MS));
    assert!(!scene.attempt.wants(&renewals[0], after(FIRST + MS)));
}
