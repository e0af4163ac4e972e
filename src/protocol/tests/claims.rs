//! Claims: how early the verdict falls, what it is, and what is removed afterwards.

use super::scene::*;
use crate::protocol::attempt::{Attempt, Loss, Stage};
use crate::protocol::fanout::Link;
use crate::protocol::verdict::Verdict;
use crate::protocol::votes::{Fault, Reply, Vote};

#[test]
fn the_third_grant_wins_and_the_stragglers_raise_nothing_but_the_backing() {
    let mut scene = Scene::claim();
    scene.at(5 * MS).all_hear(&[1, 2], &Vote::Granted);
    assert_eq!((scene.attempt.verdict(), scene.deadline()), (None, None));
    scene.hears(3, Vote::Granted);
    assert_eq!((scene.attempt.verdict(), scene.deadline()), (Some(Verdict::Won), Some(VALIDITY)));
    scene.at(90 * MS).all_hear(&[4, 5], &Vote::Granted);
    assert_eq!((scene.deadline(), scene.attempt.backing()), (Some(VALIDITY), masters(&[1, 2, 3, 4, 5])));
    assert_eq!(scene.sent(), "");
}

#[test]
pub(super) fn split_votes_are_deleted_on_every_master_refusals_included() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.all_hear(&[3, 4], &held());
    assert_eq!(scene.sent(), "");
    scene.hears(5, held());
    assert_eq!(scene.attempt.verdict(), Some(Verdict::Contended));
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
}

#[test]
fn a_late_grant_after_the_verdict_is_deleted() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2, 3], &held());
    assert_eq!((scene.attempt.verdict(), scene.sent().as_str()), (Some(Verdict::Contended), ""));
    scene.hears(4, Vote::Granted);
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5", "the first one makes the roll-back necessary");
    scene.hears(4, Vote::Granted);
    scene.hears(5, Vote::Granted);
    assert_eq!(scene.sent(), "", "its delete is under way behind the claim");
    scene.hears(5, Vote::Granted);
    assert_eq!(scene.attempt.strays(), masters(&[]));
}

#[test]
fn with_two_down_the_first_refusal_ends_it_but_the_reason_waits_for_the_third() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2], &unreachable());
    scene.hears(3, held());
    assert_eq!((scene.attempt.stage(), scene.attempt.verdict()), (Stage::Failed, None));
    assert_eq!(scene.sent(), "", "nothing of ours is anywhere yet");
    scene.hears(4, held());
    assert_eq!(scene.attempt.verdict(), None);
    scene.hears(5, held());
    assert_eq!((scene.attempt.verdict(), scene.sent().as_str()), (Some(Verdict::Contended), ""));
}

#[test]
fn a_claim_that_waits_unsent_is_of_use_until_the_reason_is_known() {
    let mut attempt = Attempt::claim(five(), ttl(TTL), MASTER_TIMEOUT, after(0));
    let asked: Vec<_> = std::iter::from_fn(|| attempt.next_dispatch()).collect();
    let hear = |attempt: &mut Attempt, master: usize, vote: Vote| {
        attempt.on_reply(&asked[master - 1], Reply { vote, link: Some(Link(1)), number: None }, after(MS));
    };
    hear(&mut attempt, 4, unreachable());
    hear(&mut attempt, 5, unreachable());
    hear(&mut attempt, 1, held());
    assert_eq!((attempt.stage(), attempt.verdict()), (Stage::Failed, None));
    assert!(attempt.wants(&asked[1], after(MS)) && !attempt.wants(&asked[1], after(100 * MS)));
    let mut given_up = attempt.clone();
    given_up.abandon(after(MS));
    assert!(!given_up.wants(&asked[1], after(MS)));
    hear(&mut attempt, 2, held());
    hear(&mut attempt, 3, held());
    assert_eq!(attempt.verdict(), Some(Verdict::Contended));
    assert!(!attempt.wants(&asked[1], after(MS)));
}

#[test]
fn the_cleaning_up_does_not_wait_for_the_reason() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2], &unreachable());
    scene.hears(3, Vote::Granted);
    scene.hears(4, held());
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
    assert_eq!(scene.attempt.verdict(), Some(Verdict::NoQuorum), "two refusals at most do not make it busy");

    let mut scene = Scene::claim();
    scene.hears(1, unreachable());
    scene.hears(2, broken());
    scene.hears(3, held());
    assert_eq!((scene.sent().as_str(), scene.attempt.verdict()), ("Release m1 m2 m3 m4 m5", None));
    scene.all_hear(&[4, 5], &held());
    assert_eq!(scene.attempt.verdict(), Some(Verdict::Contended));
}

#[test]
fn the_time_limit_counts_silence_as_no_vote() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2], &Vote::Granted);
    assert_eq!(scene.next(), Some(100 * MS));
    scene.time(100 * MS - 1);
    assert_eq!(scene.attempt.verdict(), None);
    scene.time(100 * MS);
    assert_eq!(scene.attempt.verdict(), Some(Verdict::NoQuorum));
    assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5");
    scene.hears(3, Vote::Granted);
    assert_eq!((scene.attempt.stage(), scene.sent().as_str()), (Stage::Failed, ""));
}

#[test]
fn three_refusals_and_a_hang_are_contention_also_at_the_time_limit() {
    let mut scene = Scene::claim_of(five().with_min_votes(4).unwrap());
    scene.hears(1, held());
    scene.hears(2, Vote::Granted);
    scene.time(100 * MS);
    assert_eq!(scene.attempt.verdict(), Some(Verdict::NoQuorum), "one refusal of five leaves four");
    let mut scene = Scene::claim_of(five().with_min_votes(4).unwrap());
    scene.all_hear(&[1, 2], &held());
    assert_eq!(scene.attempt.verdict(), Some(Verdict::Contended));
}

#[test]
fn a_grant_at_the_deadline_is_too_late_and_one_nanosecond_before_is_not() {
    for (nanos, verdict) in [(VALIDITY - 1, Verdict::Won), (VALIDITY, Verdict::TooLate)] {
        let mut scene = Scene::claim();
        scene.all_hear(&[1, 2], &Vote::Granted);
        scene.at(nanos).hears(3, Vote::Granted);
        assert_eq!(scene.attempt.verdict(), Some(verdict));
        let deletes = if verdict == Verdict::Won { "" } else { "Release m1 m2 m3 m4 m5" };
        assert_eq!(scene.sent(), deletes);
    }
}

#[test]
fn a_grant_whose_process_restarted_before_the_verdict_is_no_vote() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2], &Vote::Granted);
    scene.connected(1, true);
    scene.hears(3, Vote::Granted);
    assert_eq!(scene.attempt.verdict(), None);
    scene.hears(4, Vote::Granted);
    assert_eq!((scene.attempt.verdict(), scene.deadline()), (Some(Verdict::Won), Some(VALIDITY)));
}

#[test]
fn a_claim_waiting_unsent_loses_its_use_with_its_cause() {
    let mut attempt = Attempt::claim(five(), ttl(TTL), MASTER_TIMEOUT, after(0)).watching(five().everyone());
    let asked: Vec<_> = std::iter::from_fn(|| attempt.next_dispatch()).collect();
    let wants = |attempt: &Attempt, nanos| attempt.wants(&asked[4], after(nanos));
    assert!(wants(&attempt, 100 * MS - 1) && !wants(&attempt, 100 * MS));
    for dispatch in &asked[..3] {
        let reply = Reply { vote: Vote::Granted, link: None, number: None };
        attempt.on_reply(dispatch, reply, after(MS));
    }
    assert!(wants(&attempt, VALIDITY - 1) && !wants(&attempt, VALIDITY), "a straggler still helps the win");
    attempt.release(after(2 * MS));
    assert!(!wants(&attempt, 2 * MS));
}

#[test]
fn claims_taken_back_unsent_are_no_votes_to_wait_for() {
    let four_of_five = five().with_min_votes(4).unwrap();
    let mut attempt = Attempt::claim(four_of_five, ttl(TTL), MASTER_TIMEOUT, after(0));
    for _ in 0..2 {
        let dispatch = attempt.next_dispatch().unwrap();
        attempt.on_reply(&dispatch, Reply::unsent(Fault::NotConnected("refused".into())), after(0));
    }
    assert_eq!(attempt.next_dispatch(), None, "four of five are out of reach");
    assert_eq!(attempt.verdict(), Some(Verdict::NoQuorum), "and nobody is left to tell more");
    assert_eq!(attempt.tally().failed(), masters(&[1, 2, 3, 4, 5]));
}

#[test]
fn a_claim_given_up_at_any_point_is_deleted_wherever_it_may_have_come() {
    for heard in 0..=5 {
        let mut scene = Scene::claim();
        (1..=heard).for_each(|master| scene.hears(master, Vote::Granted));
        scene.attempt.abandon(scene.now());
        assert_eq!(scene.sent(), "Release m1 m2 m3 m4 m5", "after {heard} grants");
        (heard + 1..=5).for_each(|master| scene.hears(master, Vote::Granted));
        scene.all_hear(&[1, 2, 3, 4, 5], &Vote::Granted);
        assert_eq!((scene.sent().as_str(), scene.attempt.strays()), ("", masters(&[])));
        scene.time(100 * MS);
        assert_eq!(scene.next(), None);
    }
    let mut unsent = Attempt::claim(five(), ttl(TTL), MASTER_TIMEOUT, after(0));
    unsent.abandon(after(0));
    assert_eq!(unsent.next_dispatch(), None, "nothing was asked, nothing is deleted");
}

#[test]
fn the_third_refusal_loses_and_nothing_is_deleted_where_everybody_refused() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2], &held());
    assert_eq!(scene.attempt.verdict(), None);
    scene.hears(3, held());
    assert_eq!(scene.attempt.verdict(), Some(Verdict::Contended));
    scene.all_hear(&[4, 5], &held());
    assert_eq!((scene.sent().as_str(), scene.next()), ("", None));
    scene.attempt.abandon(scene.now());
    assert_eq!(scene.sent(), "", "giving up a claim that left nothing needs no delete");
}

#[test]
fn a_grant_of_the_process_before_the_restart_that_is_heard_late_is_no_vote() {
    let mut scene = Scene::claim();
    scene.connected(1, true);
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    assert_eq!(scene.attempt.verdict(), None, "m1 forgot what it granted");
    scene.hears(4, Vote::Granted);
    assert_eq!((scene.attempt.verdict(), scene.attempt.backing()), (Some(Verdict::Won), masters(&[2, 3, 4])));
}

#[test]
fn a_straggler_of_the_process_before_the_restart_backs_nothing() {
    let mut scene = Scene::claim();
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    scene.connected(4, true);
    scene.hears(4, Vote::Granted);
    assert_eq!(scene.attempt.backing(), masters(&[1, 2, 3]));
    scene.connected(1, true);
    assert!(scene.is_lost(Loss::Vanished));
}
