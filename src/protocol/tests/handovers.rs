//! A lease that one process wins and another extends or releases.

use super::scene::*;
use crate::protocol::attempt::{Attempt, Stage};
use crate::protocol::release::Released;
use crate::protocol::renewal::Extension;
use crate::protocol::votes::Vote;

fn adopted() -> Scene {
    Scene::of(Attempt::adopt(five(), ttl(TTL), MASTER_TIMEOUT, after(0)))
}

#[test]
fn an_adopted_lease_is_released_everywhere() {
    let mut scene = adopted();
    assert_eq!(scene.released(), "Release m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    let freed = Released::Freed { deleted: masters(&[1, 2, 3]), pending: masters(&[4, 5]) };
    assert_eq!(scene.attempt.released(), Some(freed));
    let mut nothing = adopted();
    nothing.released();
    nothing.all_hear(&[1, 2, 3], &Vote::Absent);
    assert!(
        matches!(nothing.attempt.released(), Some(Released::Freed { deleted, .. }) if deleted.is_empty())
    );
}

#[test]
fn a_lease_left_to_another_process_keeps_its_keys_stragglers_and_renewals_included() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    scene.attempt.extend(ttl(TTL), scene.now());
    assert_eq!(scene.sent(), "Renew m1 m2 m3 m4 m5");
    scene.attempt.leave();
    assert_eq!((scene.attempt.stage(), scene.next()), (Stage::Released, None));
    scene.all_hear(&[4, 5], &Vote::Granted);
    scene.all_hear(&[1, 2, 3, 4], &Vote::Granted);
    scene.hears(5, broken());
    scene.connected(5, false);
    scene.attempt.abandon(scene.now());
    assert_eq!(scene.released(), "");
    assert_eq!((scene.next(), scene.attempt.strays()), (None, masters(&[])));
}

#[test]
fn an_adopted_lease_has_no_deadline_until_w_masters_confirmed_it() {
    let mut scene = adopted();
    assert_eq!((scene.sent().as_str(), scene.deadline()), ("", None));
    let round = scene.attempt.extend(ttl(TTL), scene.now()).unwrap();
    assert_eq!(scene.sent(), "Renew m1 m2 m3 m4 m5");
    scene.at(MS).all_hear(&[1, 2], &Vote::Granted);
    assert_eq!(scene.deadline(), None);
    scene.hears(3, Vote::Absent);
    scene.hears(4, Vote::Granted);
    assert_eq!((scene.deadline(), scene.news().deadline), (Some(VALIDITY), true));
    assert_eq!(scene.attempt.extension(round, scene.now()), Extension::Confirmed);
    assert_eq!(scene.sent(), "Heal m3");
}

#[test]
fn an_adopted_lease_that_is_gone_is_not_confirmed_and_never_valid() {
    let mut scene = adopted();
    let round = scene.attempt.extend(ttl(TTL), scene.now()).unwrap();
    scene.sent();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.all_hear(&[3, 4, 5], &held());
    assert_eq!(scene.attempt.extension(round, scene.now()), Extension::Unconfirmed);
    assert_eq!((scene.deadline(), scene.sent().as_str()), (None, ""));
}
