//! Release: when it is done, and what is said when it cannot be.

use super::scene::*;
use crate::protocol::attempt::{Loss, Stage};
use crate::protocol::release::Released;
use crate::protocol::votes::Vote;

#[test]
fn the_third_deletion_frees_and_the_others_are_pending() {
    let mut scene = Scene::won();
    assert_eq!(scene.released(), "Release m1 m2 m3 m4 m5");
    assert_eq!((scene.attempt.stage(), scene.deadline()), (Stage::Released, None));
    scene.all_hear(&[1, 2], &Vote::Granted);
    assert_eq!(scene.attempt.released(), None);
    scene.hears(3, Vote::Absent);
    let freed = Released::Freed { deleted: masters(&[1, 2]), pending: masters(&[4, 5]) };
    assert_eq!((scene.attempt.released(), scene.news().released), (Some(freed), true));
    scene.all_hear(&[4, 5], &Vote::Granted);
    assert_eq!((scene.next(), scene.attempt.strays()), (None, masters(&[])));
    assert_eq!(scene.released(), "", "a second release does nothing");
}

#[test]
fn when_all_answered_and_too_few_deleted_it_lingers_at_once() {
    let mut scene = Scene::won();
    scene.at(MS).released();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.all_hear(&[3, 4], &unreachable());
    assert_eq!(scene.attempt.released(), None);
    scene.hears(5, silent());
    let Some(Released::Lingering { on, until }) = scene.attempt.released() else { panic!("{scene:?}") };
    assert_eq!(on, masters(&[3, 4, 5]));
    assert!(until >= after(MS + TTL * MS));
}

#[test]
fn at_the_time_limit_of_one_master_it_lingers_too() {
    let mut scene = Scene::won();
    scene.released();
    scene.all_hear(&[1, 2], &Vote::Granted);
    assert_eq!(scene.next(), Some(100 * MS));
    scene.time(100 * MS - 1);
    assert_eq!(scene.attempt.released(), None);
    scene.time(100 * MS);
    assert!(
        matches!(scene.attempt.released(), Some(Released::Lingering { on, .. }) if on == masters(&[3, 4, 5]))
    );
}

#[test]
fn a_lease_that_ran_out_is_already_lost_and_still_deleted() {
    for told in [false, true] {
        let mut scene = Scene::won();
        scene.at(VALIDITY);
        if told {
            scene.time(VALIDITY);
        }
        assert_eq!(scene.released(), "Release m1 m2 m3 m4 m5");
        assert_eq!(scene.attempt.released(), Some(Released::AlreadyLost(Loss::Expired)));
    }
}

#[test]
fn a_delete_that_failed_is_tried_each_second_until_the_ttl_has_ended_the_key() {
    let mut scene = Scene::won();
    scene.released();
    scene.all_hear(&[1, 2, 3, 4], &Vote::Granted);
    scene.hears(5, unreachable());
    let mut tried = Vec::new();
    while let Some(next) = scene.next() {
        scene.time(next);
        if scene.sent() == "Release m5" {
            tried.push(next);
            scene.hears(5, unreachable());
        }
    }
    assert_eq!(tried, [S]);
    assert_eq!(scene.attempt.strays(), masters(&[]));
    assert!(scene.now() >= after(TTL * MS));
}

#[test]
fn a_key_that_was_set_for_longer_than_the_last_extension_lingers_for_longer() {
    let mut scene =
        Scene::of(crate::protocol::attempt::Attempt::claim(five(), ttl(30_000), MASTER_TIMEOUT, after(0)));
    scene.sent();
    scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
    scene.attempt.extend(ttl(TTL), scene.now());
    scene.sent();
    scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
    scene.released();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.all_hear(&[3, 4, 5], &unreachable());
    let Some(Released::Lingering { until, .. }) = scene.attempt.released() else { panic!("{scene:?}") };
    assert!(until >= after(30 * S), "a renewal never lowers what the claim asked for: {until:?}");
    scene.time(20 * S);
    assert_eq!((scene.sent().as_str(), scene.attempt.strays()), ("Release m3 m4 m5", masters(&[3, 4, 5])));
}
