//! How a claim comes by its token.

use super::scene::{MASTER_TIMEOUT, MS, PERIOD, Scene, TTL, after, five, held, silent, ttl, unreachable};
use crate::protocol::attempt::{Attempt, Stage};
use crate::protocol::fanout::Fence;
use crate::protocol::fencing::FencingToken;
use crate::protocol::verdict::Verdict;
use crate::protocol::votes::{Fault, Vote};

fn fenced() -> Scene {
    let attempt = Attempt::claim(five(), ttl(TTL), MASTER_TIMEOUT, after(0)).fenced(70);
    let mut scene = Scene::of(attempt);
    assert_eq!(scene.sent(), "Claim m1 m2 m3 m4 m5");
    scene
}

fn token(scene: &Scene) -> Option<u64> {
    scene.attempt.token().map(FencingToken::as_u64)
}

#[test]
fn w_equal_numbers_are_a_token_in_one_round() {
    let mut scene = fenced();
    scene.hear_numbers([(1, 70), (2, 95), (3, 70)]);
    assert_eq!(token(&scene), None);
    // m2 is the greatest, so the others are to be raised; the third 70 comes first.
    assert_eq!(scene.sent(), "Raise m1 m3");
    scene.hears_number(5, 70);
    assert_eq!((token(&scene), scene.is_held(), scene.sent().as_str()), (Some(70), true, ""));
    // What comes later changes nothing.
    scene.hears_number(4, 200);
    scene.all_answer(&Vote::Granted);
    assert_eq!(token(&scene), Some(70));
    assert_eq!(scene.attempt.backing().len(), 5);
}

#[test]
fn lower_counters_are_raised_and_w_confirmations_make_the_token() {
    let mut scene = fenced();
    scene.hear_numbers([(1, 5), (2, 9), (3, 7)]);
    assert_eq!(scene.last_fence(1), Some(Fence::Propose(70)));
    assert_eq!(scene.sent(), "Raise m1 m3");
    assert_eq!(scene.last_fence(1), Some(Fence::Raise { seen: 5, to: 9 }));
    scene.hears(1, Vote::Granted);
    assert!(!scene.is_held() && scene.attempt.verdict().is_none());
    scene.hears(3, Vote::Granted);
    assert_eq!((token(&scene), scene.attempt.verdict()), (Some(9), Some(Verdict::Won)));
}

#[test]
fn a_grant_whose_key_is_gone_when_the_counter_is_raised_is_none() {
    for gone in [Vote::Absent, held(), silent(), Vote::Failed(Fault::Uncounted("lost".into()))] {
        let mut scene = fenced();
        scene.hear_numbers([(1, 5), (2, 9), (3, 7)]);
        assert_eq!(scene.sent(), "Raise m1 m3");
        scene.hears(3, gone.clone());
        scene.hears(1, Vote::Granted);
        assert!(token(&scene).is_none() && !scene.is_held(), "{gone:?}");
        // A late grant takes its place. Its number is higher, so the others follow it.
        scene.hears_number(4, 30);
        assert_eq!(scene.sent(), "Raise m1 m2");
        scene.hears(1, Vote::Granted);
        scene.hears(2, Vote::Granted);
        assert_eq!((token(&scene), scene.is_held()), (Some(30), true), "{gone:?}");
    }
}

#[test]
fn without_enough_confirmations_the_claim_fails_after_two_rounds_and_is_deleted() {
    let mut scene = fenced();
    scene.all_hear(&[4, 5], &unreachable());
    scene.hear_numbers([(1, 5), (2, 9), (3, 7)]);
    assert_eq!(scene.sent(), "Raise m1 m3");
    scene.time(MASTER_TIMEOUT.as_nanos() as u64);
    assert_eq!(scene.attempt.verdict(), None);
    scene.time(2 * MASTER_TIMEOUT.as_nanos() as u64);
    assert_eq!(scene.attempt.verdict(), Some(Verdict::NoQuorum));
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
    scene.all_answer(&Vote::Granted);
    assert_eq!((token(&scene), scene.attempt.stage()), (None, Stage::Failed));
}

#[test]
fn confirmations_that_come_after_the_deadline_win_nothing() {
    let mut scene = fenced();
    scene.hear_numbers([(1, 5), (2, 9), (3, 7)]);
    assert_eq!(scene.sent(), "Raise m1 m3");
    scene.at(TTL * MS);
    scene.hears(1, Vote::Granted);
    scene.hears(3, Vote::Granted);
    assert_eq!((scene.attempt.verdict(), scene.is_held()), (Some(Verdict::TooLate), false));
}

#[test]
fn a_grant_without_a_number_and_one_from_before_a_restart_carry_no_token() {
    let mut scene = fenced();
    scene.hear_numbers([(1, 70), (2, 70)]);
    scene.hears(3, Vote::Granted);
    assert!(!scene.is_held());
    scene.connected(2, true);
    scene.hears_number(4, 70);
    assert!(!scene.is_held());
    scene.hears_number(5, 70);
    assert_eq!((token(&scene), scene.is_held()), (Some(70), true));
}

#[test]
fn a_key_that_is_healed_has_the_token() {
    let mut scene = fenced();
    (1..=5).for_each(|master| scene.hears_number(master, 70));
    scene.attempt.watch_over(after(PERIOD * MS), std::time::Duration::from_millis(PERIOD));
    scene.time(PERIOD * MS);
    assert_eq!(scene.sent(), "Renew m1 m2 m3 m4 m5");
    assert_eq!(scene.last_fence(2), None);
    scene.hears(2, Vote::Absent);
    scene.all_hear(&[1, 3, 4], &Vote::Granted);
    assert_eq!(scene.sent(), "Heal m2");
    assert_eq!(scene.last_fence(2), Some(Fence::Restore(FencingToken::new(70))));
}
