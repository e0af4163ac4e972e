//! Sweeps: a command whose connection broke may come to the master later, and is deleted then.

use super::scene::*;
use crate::protocol::attempt::Attempt;
use crate::protocol::fanout::Act;
use crate::protocol::votes::{Fault, Vote};

/// A ttl that is not to be mixed up with the pause before the second delete.
const LONG: u64 = 3 * S;

/// A claim lost to others on four masters, whose command to m5 was cut off.
fn cut_off() -> Scene {
    let claim = Attempt::claim(five(), ttl(LONG / MS), MASTER_TIMEOUT, after(0));
    let mut scene = Scene::of(claim);
    scene.sent();
    scene.all_hear(&[1, 2, 3, 4], &held());
    scene.hears(5, broken());
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2, 3, 4], &held());
    scene.hears(5, unreachable());
    assert_eq!(scene.attempt.strays(), masters(&[5]));
    scene
}

#[test]
fn the_next_connection_is_swept_at_once_after_a_second_and_after_the_ttl() {
    let mut scene = cut_off();
    let up = 200 * MS;
    scene.time(up).connected(5, false);
    assert_eq!(scene.sent(), "Release m5");
    scene.at(up + MS).hears(5, Vote::Absent);
    assert_eq!(scene.next(), Some(up + MS + S));
    assert_eq!(scene.time(up + MS + S).sent(), "Release m5");
    scene.hears(5, Vote::Absent);
    assert_eq!(scene.next(), Some(up + MS + S + LONG));
    assert_eq!(scene.time(up + MS + S + LONG).sent(), "Release m5");
    assert_eq!(scene.attempt.strays(), masters(&[5]));
    scene.hears(5, Vote::Granted);
    assert_eq!((scene.next(), scene.attempt.strays()), (None, masters(&[])));
}

#[test]
fn on_the_connection_that_carried_the_command_one_delete_is_conclusive() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2, 3, 4], &held());
    scene.hears(5, silent());
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Absent);
    scene.time(100 * MS);
    assert_eq!((scene.next(), scene.attempt.strays()), (None, masters(&[])));
}

#[test]
fn a_master_that_stays_away_is_not_asked_for_ever_but_whenever_it_is_back() {
    let mut scene = cut_off();
    while let Some(next) = scene.next() {
        assert!(next <= LONG + S, "still asking");
        if !scene.time(next).sent().is_empty() {
            scene.hears(5, unreachable());
        }
    }
    assert_eq!(scene.attempt.strays(), masters(&[5]));
    scene.time(60 * S).connected(5, false);
    assert_eq!(scene.sent(), "Release m5");
    scene.hears(5, Vote::Absent);
    assert_eq!(scene.next(), Some(61 * S));
}

#[test]
fn commands_cut_off_on_two_connections_are_both_swept() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2, 3, 4], &Vote::Granted);
    scene.hears(5, broken());
    scene.connected(5, false);
    assert_eq!(scene.sent(), "", "it is held: a key of ours is welcome");
    scene.attempt.extend(ttl(TTL), scene.now());
    scene.sent();
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    scene.hears(5, Vote::Absent);
    assert_eq!(scene.sent(), "Heal m5");
    scene.hears(5, silent());
    assert_eq!(scene.released(), "Release m1 m2 m3 m4 m5");
    scene.hears(4, Vote::Granted);
    scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
    assert_eq!(scene.attempt.strays(), masters(&[5]), "the answer on the second says nothing of the first");
    assert_eq!(scene.next(), Some(S));
}

#[test]
fn connections_that_come_and_go_do_not_shorten_the_sweeping() {
    let mut scene = cut_off();
    let mut deletes = Vec::new();
    for up in [200 * MS, 210 * MS, 220 * MS, 230 * MS] {
        scene.time(up).connected(5, false);
        assert_eq!(scene.sent(), "Release m5");
        scene.hears(5, Vote::Absent);
    }
    while let Some(next) = scene.next() {
        if scene.time(next).sent() == "Release m5" {
            deletes.push(next);
            scene.hears(5, Vote::Absent);
        }
    }
    assert!(deletes.last() >= Some(&(200 * MS + S + LONG)), "{deletes:?}");
    assert_eq!(scene.attempt.strays(), masters(&[]));
}

#[test]
fn a_sweep_without_an_answer_is_repeated_however_late_it_is() {
    let mut scene = cut_off();
    scene.time(200 * MS).connected(5, false);
    scene.sent();
    scene.hears(5, Vote::Absent);
    scene.time(1_200 * MS).sent();
    scene.hears(5, Vote::Absent);
    assert_eq!(scene.time(4_200 * MS).sent(), "Release m5");
    scene.at(4_300 * MS).hears(5, silent());
    assert_eq!(scene.next(), Some(5_300 * MS));
    assert_eq!(scene.time(5_300 * MS).sent(), "Release m5");
    scene.hears(5, Vote::Failed(Fault::Overloaded));
    assert_eq!(scene.time(6_300 * MS).sent(), "Release m5");
    scene.hears(5, Vote::Absent);
    assert_eq!((scene.next(), scene.attempt.strays()), (None, masters(&[])));
}

#[test]
pub(super) fn a_grant_that_comes_after_its_delete_failed_is_deleted_at_once() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2, 3], &held());
    scene.hears(4, Vote::Granted);
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
    scene.hears_of(Act::Release, 5, unreachable());
    scene.hears(5, Vote::Granted);
    assert_eq!(scene.sent(), "Release m5");
}

#[test]
fn a_key_that_came_late_stays_a_ttl_from_then_on_and_is_deleted_on_the_next_connection() {
    let mut scene = Scene::claim();
    scene.attempt.abandon(scene.now());
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
    (1..=4).for_each(|master| scene.hears(master, Vote::Granted));
    scene.all_hear(&[1, 2, 3, 4], &Vote::Granted);
    scene.time(900 * MS).hears(5, Vote::Granted);
    scene.time(1_100 * MS).hears(5, broken());
    assert_eq!(scene.attempt.strays(), masters(&[5]), "set as late as 900 ms, for a second");
    scene.time(1_200 * MS).connected(5, false);
    assert_eq!(scene.sent(), "Release m5");
}
