//! Sweeps: a command whose connection broke may come to the master later, and is deleted then.

use super::scene::*;
use crate::protocol::votes::Vote;

/// A claim lost to others on four masters, whose command to m5 was cut off.
fn cut_off() -> Scene {
    let mut scene = Scene::claim();
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
    assert_eq!(scene.next(), Some(up + MS + S + TTL * MS));
    assert_eq!(scene.time(up + MS + S + TTL * MS).sent(), "Release m5");
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
        assert!(next <= 3 * S, "still asking");
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
    assert!(deletes.last() >= Some(&(200 * MS + S + TTL * MS)), "{deletes:?}");
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
    assert_eq!(scene.time(2_200 * MS).sent(), "Release m5");
    scene.at(2_300 * MS).hears(5, silent());
    assert_eq!(scene.next(), Some(3_300 * MS));
    assert_eq!(scene.time(3_300 * MS).sent(), "Release m5");
    scene.hears(5, Vote::Absent);
    assert_eq!((scene.next(), scene.attempt.strays()), (None, masters(&[])));
}
