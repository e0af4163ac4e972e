//! The checker of `tests/chaos`, on histories written by hand: one for each verdict. Nothing here starts anything.

#[allow(dead_code, reason = "the program and its page use more of it")]
#[path = "chaos/history/mod.rs"]
mod history;

use history::check::{Judgement, Kind, TOLD_WITHIN};
use history::{Event, History, MILLI, Nanos, Op, Record, Run, SCHEMA};
use proptest::prelude::*;

const TTL: Nanos = 1_000 * MILLI;
const RESOURCE: &str = "stock:1";

/// A history in the making. Times are milliseconds.
struct Tale {
    run: Run,
    records: Vec<Record>,
}

impl Tale {
    fn new() -> Self {
        let run = Run { schema: SCHEMA, clients: 2, masters: 5, ttl: TTL, fenced: true, ..Run::default() };
        Self { run, records: Vec::new() }
    }

    fn unfenced() -> Self {
        let mut tale = Self::new();
        tale.run.fenced = false;
        tale
    }

    fn at(mut self, millis: u64, by: &str, event: Event) -> Self {
        self.records.push(Record { at: millis * MILLI, by: by.into(), event });
        self
    }

    fn asks(self, millis: u64, by: &str, claim: u64) -> Self {
        self.at(millis, by, Event::Start { claim, resource: RESOURCE.into() })
    }

    fn has(self, millis: u64, by: &str, claim: u64, deadline: u64, fence: u64) -> Self {
        let holder = format!("{by}/x");
        self.at(millis, by, Event::Granted { claim, holder, deadline: deadline * MILLI, votes: 3, fence })
    }

    /// Asked for and got at once.
    fn takes(self, millis: u64, by: &str, claim: u64, deadline: u64, fence: u64) -> Self {
        self.asks(millis, by, claim).has(millis, by, claim, deadline, fence)
    }

    fn gives_back(self, millis: u64, by: &str, claim: u64) -> Self {
        self.at(millis, by, Event::ReleaseCalled { claim })
    }

    fn told_lost(self, millis: u64, by: &str, claim: u64, seen: u64) -> Self {
        self.at(millis, by, Event::Lost { claim, why: "x".into(), seen: seen * MILLI })
    }

    fn strikes(self, millis: u64, until: u64, word: &str, on: &[&str]) -> Self {
        let id = self.records.len() as u64;
        let on = on.iter().copied().map(String::from).collect();
        self.at(millis, "chaos", Event::Fault { id, word: word.into(), on }).at(
            until,
            "chaos",
            Event::Healed { id },
        )
    }

    fn register(self, millis: u64, client: &str, op: Op, found: u64, value: u64, fence: u64) -> Self {
        let (resource, client) = (RESOURCE.into(), client.into());
        self.at(millis, "register", Event::Applied { resource, client, claim: 1, op, found, value, fence })
    }

    /// As from a file, after everybody ended.
    fn judged(self) -> Judgement {
        let last = self.records.iter().map(|record| record.at / MILLI).max().unwrap_or(0);
        let tale = self.at(last, "chaos", Event::Stopped);
        let run = Record { at: 0, by: "chaos".into(), event: Event::Run(tale.run) };
        let lines = std::iter::once(&run)
            .chain(&tale.records)
            .map(|record| serde_json::to_string(record).expect("a record"));
        Judgement::of(&History::parse(lines.collect::<Vec<_>>().join("\n").as_bytes()))
    }

    /// Kind, and what explains it.
    fn found(self) -> Vec<(Kind, Option<String>)> {
        self.judged().findings.into_iter().map(|finding| (finding.kind, finding.explained_by)).collect()
    }
}

fn bug(kind: Kind) -> Vec<(Kind, Option<String>)> {
    vec![(kind, None)]
}

fn expected(kind: Kind, by: &str) -> Vec<(Kind, Option<String>)> {
    vec![(kind, Some(by.into()))]
}

#[test]
fn holds_that_follow_each_other_are_as_they_should_be() {
    let tale = Tale::new().takes(0, "c1", 1, 900, 1).gives_back(100, "c1", 1).takes(100, "c2", 1, 1_000, 2);
    let judgement = tale.gives_back(200, "c2", 1).judged();
    assert_eq!((judgement.findings, judgement.holds.len(), judgement.contended), (vec![], 2, 0));
}

#[test]
fn a_grant_before_the_deadline_of_another_is_a_bug() {
    let tale = Tale::new().takes(0, "c1", 1, 900, 1).takes(899, "c2", 1, 1_800, 2);
    let judgement = tale.gives_back(890 + 10, "c1", 1).gives_back(950, "c2", 1).judged();
    let finding = &judgement.findings[0];
    assert!(finding.is_bug() && finding.kind == Kind::Overlap, "{finding}");
    assert_eq!((finding.from, finding.until), (899 * MILLI, 900 * MILLI));
    assert_eq!(finding.clients, ["c1", "c2"]);
    assert_eq!(judgement.contended, 1);
}

#[test]
fn each_way_to_be_over_ends_a_hold() {
    let first = || Tale::new().takes(0, "c1", 1, 900, 1);
    let second = |tale: Tale, at| tale.takes(at, "c2", 1, 5_000, 2).gives_back(1_000, "c2", 1).found();
    // By its deadline, also one that was raised or lowered.
    assert_eq!(second(first().told_lost(901, "c1", 1, 890), 900), []);
    let raised = |at| first().at(300, "c1", Event::Renewed { claim: 1, deadline: at * MILLI });
    assert_eq!(second(raised(950).told_lost(951, "c1", 1, 940), 940), bug(Kind::Overlap));
    let lowered = raised(990).at(400, "c1", Event::Lowered { claim: 1, deadline: 700 * MILLI });
    assert_eq!(second(lowered.told_lost(701, "c1", 1, 690), 701), []);
    let lowered = raised(990).at(400, "c1", Event::Lowered { claim: 1, deadline: 700 * MILLI });
    assert_eq!(second(lowered.gives_back(990, "c1", 1), 701), []);
    // Given back, and dropped.
    assert_eq!(second(first().at(500, "c1", Event::Drop { claim: 1 }), 500), []);
    assert_eq!(second(first().gives_back(500, "c1", 1), 500), []);
    assert_eq!(second(first().at(500, "c1", Event::Drop { claim: 1 }), 499), bug(Kind::Overlap));
    // Lost before the deadline: certain only until it was last seen valid.
    assert_eq!(second(first().told_lost(600, "c1", 1, 590), 590), []);
    assert_eq!(second(first().told_lost(600, "c1", 1, 590), 589), bug(Kind::Overlap));
}

#[test]
fn holds_of_other_resources_and_grants_that_came_too_late_to_be_used_do_not_overlap() {
    let other = Event::Start { claim: 1, resource: "stock:2".into() };
    let tale = Tale::new().takes(0, "c1", 1, 900, 1).at(10, "c2", other).has(10, "c2", 1, 900, 1);
    assert_eq!(tale.gives_back(20, "c1", 1).gives_back(20, "c2", 1).found(), []);
    // Its process stood still on the way to its line.
    let tale = Tale::new().asks(0, "c1", 1).takes(300, "c2", 1, 1_200, 2).has(400, "c1", 1, 290, 1);
    assert_eq!(tale.gives_back(410, "c1", 1).gives_back(500, "c2", 1).found(), []);
}

#[test]
fn a_claim_is_contended_if_another_client_held_when_it_began() {
    let contended = |tale: Tale| tale.judged().contended;
    let held = || Tale::new().takes(0, "c1", 1, 900, 1).gives_back(500, "c1", 1);
    assert_eq!(contended(held().asks(100, "c2", 1).has(600, "c2", 1, 1_400, 2)), 1);
    assert_eq!(contended(held().asks(500, "c2", 1).has(600, "c2", 1, 1_400, 2)), 0);
    assert_eq!(contended(held().asks(100, "c1", 2).has(600, "c1", 2, 1_400, 2)), 0);
}

#[test]
fn each_pair_of_holds_is_looked_at() {
    // The one in the middle is over when the last one begins, and the first one is not.
    let tale =
        || Tale::unfenced().takes(0, "c1", 1, 900, 0).takes(100, "c2", 1, 1_000, 0).gives_back(200, "c2", 1);
    let tale =
        |at| tale().takes(at, "c3", 1, 1_200, 0).gives_back(900, "c1", 1).gives_back(1_100, "c3", 1).judged();
    let pairs = |judgement: Judgement| -> Vec<Vec<String>> {
        judgement.findings.into_iter().map(|finding| finding.clients).collect()
    };
    assert_eq!(pairs(tale(300)), [["c1", "c2"], ["c1", "c3"]]);
    assert_eq!(pairs(tale(150)), [["c1", "c2"], ["c1", "c3"], ["c2", "c3"]]);
}

#[test]
fn what_one_client_says_ends_no_hold_of_another_and_what_it_says_later_none_of_its_own_again() {
    let other = Event::Start { claim: 1, resource: "stock:2".into() };
    let tale = Tale::new().takes(0, "c1", 1, 900, 1).at(1, "c2", other).has(1, "c2", 1, 900, 1);
    let tale = tale.gives_back(50, "c2", 1).takes(100, "c3", 1, 1_000, 2);
    assert_eq!(tale.gives_back(200, "c3", 1).gives_back(300, "c1", 1).found(), bug(Kind::Overlap));
    let tale = Tale::new().takes(0, "c1", 1, 900, 1).gives_back(500, "c1", 1);
    let tale = tale.takes(500, "c2", 1, 1_400, 2).at(600, "c1", Event::Drop { claim: 1 });
    assert_eq!(tale.gives_back(700, "c2", 1).found(), []);
}

#[test]
fn what_is_told_and_not_judged_is_counted() {
    let tale = Tale::new().takes(0, "c1", 1, 900, 1).at(600, "c1", Event::AtRisk { claim: 1 });
    let tale =
        tale.told_lost(930, "c1", 1, 890).takes(1_000, "c1", 2, 1_900, 2).told_lost(1_910, "c1", 2, 1_890);
    let tale = tale.takes(2_000, "c2", 1, 2_900, 3).gives_back(2_950, "c2", 1);
    let (resource, client) = (RESOURCE.into(), "c1".into());
    let away = Event::TurnedAway { resource, client, claim: 1, op: Op::Read, fence: 1, seen: 2 };
    let tale = tale.at(3_000, "c2", Event::Refused { claim: 2, why: "x".into() }).at(3_000, "register", away);
    let judgement = tale.judged();
    assert_eq!(judgement.bugs().count(), 0);
    assert_eq!((judgement.lost, judgement.refused, judgement.turned_away), (2, 1, 1));
    assert_eq!(judgement.worst_told_late, 30 * MILLI);
    assert_eq!(judgement.holds[0].at_risk, Some(600 * MILLI));
    assert_eq!(judgement.grants.into_iter().collect::<Vec<_>>(), [("c1".into(), 2), ("c2".into(), 1)]);
    let mut tale = two_holders_and(|tale| tale);
    tale.run.overlaps = 1;
    let judgement = tale.judged();
    // One that nothing explains is none of those that are wanted.
    let kinds: Vec<Kind> = judgement.bugs().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::Overlap, Kind::Empty]);
}

/// Two holders from 500 ms on, of whom the first asked at 0 and the second got it at 500.
fn two_holders(fault: impl Fn(Tale) -> Tale) -> Vec<(Kind, Option<String>)> {
    two_holders_and(fault).found()
}

fn two_holders_and(fault: impl Fn(Tale) -> Tale) -> Tale {
    let tale = fault(Tale::new().takes(10, "c1", 1, 900, 1).asks(20, "c2", 1).has(500, "c2", 1, 1_400, 2));
    tale.gives_back(600, "c1", 1).gives_back(700, "c2", 1)
}

#[test]
fn faults_that_make_masters_forget_explain_an_overlap() {
    for word in ["flush", "clock-step=1000", "evict", "del=stock:1"] {
        let found = two_holders(|tale| tale.strikes(450, 460, word, &["m1", "m2", "m3"]));
        assert_eq!(found, expected(Kind::Overlap, word));
    }
}

#[test]
fn faults_that_strike_while_the_first_one_asks_or_last_until_then_explain_an_overlap() {
    let tale = |fault: fn(Tale) -> Tale| {
        let tale = fault(Tale::new().asks(100, "c1", 1)).has(200, "c1", 1, 1_000, 1);
        tale.takes(500, "c2", 1, 1_400, 2).gives_back(600, "c1", 1).gives_back(700, "c2", 1).found()
    };
    let explained = expected(Kind::Overlap, "flush");
    assert_eq!(tale(|tale| tale.strikes(150, 160, "flush", &["m1"])), explained);
    assert_eq!(tale(|tale| tale.strikes(50, 100, "flush", &["m1"])), explained);
    assert_eq!(tale(|tale| tale.strikes(500, 510, "flush", &["m1"])), explained);
}

#[test]
fn faults_that_the_promise_covers_explain_no_overlap() {
    for word in ["restart-empty", "three-at-once", "freeze", "cut-majority", "clock-slew", "freeze-client"] {
        assert_eq!(two_holders(|tale| tale.strikes(450, 460, word, &["m1", "m2", "m3"])), bug(Kind::Overlap));
    }
}

#[test]
fn faults_at_another_time_or_place_explain_no_overlap() {
    // Before the first one asked, and after the second one had it.
    assert_eq!(two_holders(|tale| tale.strikes(1, 5, "flush", &["m1"])), bug(Kind::Overlap));
    assert_eq!(two_holders(|tale| tale.strikes(501, 502, "flush", &["m1"])), bug(Kind::Overlap));
    // On another key, backwards, and on no master at all.
    assert_eq!(two_holders(|tale| tale.strikes(450, 460, "del=stock:2", &["m1"])), bug(Kind::Overlap));
    assert_eq!(two_holders(|tale| tale.strikes(450, 460, "clock-step=-1000", &["m1"])), bug(Kind::Overlap));
    assert_eq!(two_holders(|tale| tale.strikes(450, 460, "flush", &[])), bug(Kind::Overlap));
    // It was over by then, whatever else was not.
    let two = |tale: Tale| tale.strikes(1, 5, "flush", &["m1"]).strikes(2, 450, "kill", &["m2"]);
    assert_eq!(two_holders(two), bug(Kind::Overlap));
}

#[test]
fn a_fault_longer_ago_than_a_ttl_explains_nothing_of_a_hold_that_was_renewed_since() {
    let tale = |flushed| {
        let tale =
            Tale::new().takes(0, "c1", 1, 900, 1).strikes(flushed, flushed, "flush", &["m1", "m2", "m3"]);
        let tale = tale.at(2_000, "c1", Event::Renewed { claim: 1, deadline: 2_900 * MILLI });
        tale.takes(2_100, "c2", 1, 3_000, 2).gives_back(2_200, "c1", 1).gives_back(2_300, "c2", 1).found()
    };
    assert_eq!(tale(1_099), bug(Kind::Overlap));
    assert_eq!(tale(1_100), expected(Kind::Overlap, "flush"));
}

#[test]
fn as_many_masters_as_two_quorums_share_must_have_been_struck() {
    // Of six, two quorums of four share two.
    let found = |on: &[&str]| {
        let mut tale = Tale::new().takes(10, "c1", 1, 900, 1).strikes(450, 460, "flush", on);
        tale.run.masters = 6;
        tale.takes(500, "c2", 1, 1_400, 2).gives_back(600, "c1", 1).gives_back(700, "c2", 1).found()
    };
    assert_eq!(found(&["m1"]), bug(Kind::Overlap));
    assert_eq!(found(&["m1", "m2"]), expected(Kind::Overlap, "flush"));
    // By two faults together.
    let mut tale =
        two_holders_and(|tale| tale.strikes(450, 460, "flush", &["m1"]).strikes(450, 460, "evict", &["m2"]));
    tale.run.masters = 6;
    assert_eq!(tale.found(), expected(Kind::Overlap, "evict, flush"));
}

#[test]
fn a_write_over_what_another_wrote_is_a_bug_with_tokens_and_explained_without() {
    let late = |tale: Tale| {
        let tale = tale.register(1, "c1", Op::Read, 0, 0, 1).register(2, "c2", Op::Read, 0, 0, 2);
        tale.register(3, "c2", Op::Write, 0, 1, 2).register(4, "c1", Op::Write, 1, 1, 2)
    };
    assert_eq!(late(Tale::new()).found(), bug(Kind::LostUpdate));
    let judgement = late(Tale::unfenced()).judged();
    assert_eq!((judgement.lost_updates, judgement.increments), (1, 2));
    assert!(judgement.findings.iter().all(|finding| !finding.is_bug()));
    // The counter is wrong then, which is no news.
    let counter = Event::Counter { resource: RESOURCE.into(), value: 1 };
    assert_eq!(late(Tale::unfenced()).at(5, "register", counter).judged().findings.len(), 1);
    // A leap is as wrong.
    assert_eq!(Tale::new().register(1, "c1", Op::Write, 0, 2, 1).found(), bug(Kind::LostUpdate));
}

#[test]
fn a_register_that_takes_a_smaller_token_is_a_bug() {
    let tale = Tale::new().register(1, "c2", Op::Read, 0, 0, 2).register(2, "c1", Op::Read, 0, 0, 1);
    let tale = tale.register(3, "c1", Op::Read, 0, 0, 2);
    let applied = |resource: &str, fence| {
        let (resource, client) = (resource.into(), "c1".into());
        Event::Applied { resource, client, claim: 1, op: Op::Read, found: 0, value: 0, fence }
    };
    assert_eq!(tale.at(4, "register", applied("stock:2", 1)).found(), bug(Kind::Token));
    // It is no better for having been taken once.
    let twice = Tale::new().at(1, "register", applied(RESOURCE, 2)).at(2, "register", applied(RESOURCE, 1));
    assert_eq!(twice.at(3, "register", applied(RESOURCE, 1)).found().len(), 2);
}

#[test]
fn counters_and_acknowledged_writes_agree_with_what_was_applied() {
    let counter = |value| Event::Counter { resource: RESOURCE.into(), value };
    let effect = |value| Event::Effect { claim: 1, op: Op::Write, value, fence: 1, ack: true };
    let tale = || Tale::new().register(1, "c1", Op::Write, 0, 1, 1);
    assert_eq!(tale().at(2, "c1", effect(1)).at(3, "register", counter(1)).found(), []);
    assert_eq!(tale().at(3, "register", counter(2)).found(), bug(Kind::LostUpdate));
    assert_eq!(tale().at(2, "c1", effect(2)).found(), bug(Kind::LostUpdate));
    // What was refused, or only read, need not be known.
    let other = |op, ack| Event::Effect { claim: 1, op, value: 7, fence: 1, ack };
    assert_eq!(tale().at(2, "c1", other(Op::Write, false)).at(2, "c1", other(Op::Read, true)).found(), []);
    // Each resource has its own counter.
    let two = tale().at(3, "register", Event::Counter { resource: "stock:2".into(), value: 0 });
    assert_eq!(two.at(3, "register", counter(1)).found(), []);
    let (resource, client) = ("stock:2".into(), "c1".into());
    let applied = Event::Applied { resource, client, claim: 2, op: Op::Write, found: 0, value: 1, fence: 1 };
    assert_eq!(tale().at(2, "register", applied).at(3, "register", counter(1)).found(), []);
    // One that was applied, and whose writer was killed before it could tell, is none.
    assert_eq!(tale().at(3, "register", counter(1)).found(), []);
}

#[test]
fn tokens_are_unique_and_rise_with_the_holds() {
    let tale = |first, second| {
        let tale = Tale::new().takes(0, "c1", 1, 900, first).gives_back(100, "c1", 1);
        tale.takes(200, "c2", 1, 1_000, second).gives_back(300, "c2", 1)
    };
    assert_eq!(tale(1, 2).found(), []);
    for (first, second) in [(2, 2), (3, 2), (1, 0)] {
        assert_eq!(tale(first, second).found(), bug(Kind::Token), "{first}, {second}");
    }
}

#[test]
fn tokens_of_holds_that_came_too_late_or_were_there_at_once_need_no_order() {
    let given_back = |tale: Tale| tale.gives_back(600, "c2", 1).found();
    let first = || Tale::new().takes(0, "c1", 1, 900, 5).gives_back(100, "c1", 1);
    // Over on arrival: without a token, or with an old one.
    for fence in [0, 3] {
        assert_eq!(given_back(first().asks(0, "c2", 1).has(400, "c2", 1, 390, fence)), []);
    }
    // But no other's.
    assert_eq!(given_back(first().asks(0, "c2", 1).has(400, "c2", 1, 390, 5)), bug(Kind::Token));
    let late_first = Tale::new().asks(0, "c1", 1).has(400, "c1", 1, 390, 5).gives_back(410, "c1", 1);
    assert_eq!(given_back(late_first.takes(500, "c2", 1, 1_400, 3)), []);
    // Two at once are a bug, and have no order.
    let at_once = Tale::new().takes(0, "c1", 1, 900, 5).takes(200, "c2", 1, 1_100, 3);
    assert_eq!(given_back(at_once.gives_back(300, "c1", 1)), bug(Kind::Overlap));
    // Handed on in the very same moment.
    assert_eq!(given_back(first().takes(100, "c2", 1, 1_000, 3)), bug(Kind::Token));
    // Tokens of other resources are another matter, and without fencing there are none.
    let other = Event::Start { claim: 1, resource: "stock:2".into() };
    assert_eq!(given_back(first().at(200, "c2", other).has(200, "c2", 1, 1_100, 3)), []);
    let unfenced = Tale::unfenced().takes(0, "c1", 1, 900, 0).gives_back(100, "c1", 1);
    assert_eq!(given_back(unfenced.takes(200, "c2", 1, 1_100, 0)), []);
}

#[test]
fn keys_that_are_left_are_a_bug_unless_their_masters_clock_was_set() {
    let left = |tale: Tale| {
        tale.at(5_000, "chaos", Event::Left { master: "m2".into(), key: RESOURCE.into() }).found()
    };
    assert_eq!(left(Tale::new()), bug(Kind::Leftover));
    assert_eq!(left(Tale::new().strikes(1, 2, "clock-step=1000", &["m1"])), bug(Kind::Leftover));
    assert_eq!(left(Tale::new().strikes(1, 2, "freeze", &["m2"])), bug(Kind::Leftover));
    let word = "clock-step=1000";
    assert_eq!(left(Tale::new().strikes(1, 2, word, &["m2"])), expected(Kind::Leftover, word));
}

#[test]
fn a_loss_told_late_is_a_bug_unless_the_process_stood_still() {
    let bound = TOLD_WITHIN / MILLI;
    let told = |after: u64| Tale::new().takes(0, "c1", 1, 900, 1).told_lost(900 + after, "c1", 1, 890);
    assert_eq!(told(bound).found(), []);
    assert_eq!(told(bound + 1).found(), bug(Kind::LateLoss));
    assert_eq!(told(bound + 1).judged().worst_told_late, (bound + 1) * MILLI);
    let stood = |client, from: u64, until| {
        told(bound + 300).at(until, client, Event::Stalled { since: from * MILLI })
    };
    assert_eq!(stood("c1", 800, 1_200).found(), []);
    assert_eq!(stood("c1", 800, 1_199).found(), bug(Kind::LateLoss));
    assert_eq!(stood("c2", 800, 1_200).found(), bug(Kind::LateLoss));
    // Counted once, though it tells of it itself.
    let both = |until| stood("c1", 800, 1_100).strikes(800, until, "freeze-client", &["c1"]);
    assert_eq!((both(1_200).found(), both(1_150).found()), (vec![], bug(Kind::LateLoss)));
    // Stops in any order, one within another, and beyond the time that counts.
    let frozen = |tale: Tale, from, until| tale.strikes(from, until, "freeze-client", &["c1"]);
    assert_eq!(frozen(stood("c1", 1_200, 1_350), 900, 1_050).found(), []);
    let within = |until| frozen(frozen(stood("c1", 950, 1_000), 900, 1_100), 1_050, until);
    assert_eq!((within(1_200).found(), within(1_199).found()), (vec![], bug(Kind::LateLoss)));
    assert_eq!(frozen(told(bound + 300), 900 + bound + 200, 9_000).found(), bug(Kind::LateLoss));
}

#[test]
fn a_holder_that_is_never_told_is_a_bug_unless_it_was_killed() {
    let held = || {
        Tale::new().takes(0, "c1", 1, 900, 1).at(3_000, "c2", Event::Refused { claim: 1, why: "x".into() })
    };
    assert_eq!(held().found(), bug(Kind::LateLoss));
    assert_eq!(held().strikes(500, 600, "kill-client", &["c1"]).found(), []);
    assert_eq!(held().strikes(500, 600, "kill-client", &["c2"]).found(), bug(Kind::LateLoss));
    assert_eq!(held().strikes(2_000, 2_100, "kill-client", &["c1"]).found(), bug(Kind::LateLoss));
    let late = Tale::new().takes(0, "c1", 1, 900, 1).gives_back(3_000, "c1", 1);
    assert_eq!(late.found(), bug(Kind::LateLoss));
    // A kill before that was of an earlier process.
    let second_life = Tale::new().strikes(0, 10, "kill-client", &["c1"]).takes(20, "c1", 1, 900, 1);
    let refused = Event::Refused { claim: 1, why: "x".into() };
    assert_eq!(second_life.at(3_000, "c2", refused).found(), bug(Kind::LateLoss));
    // Told, and given back whenever; given back in time; got too late to be told in time.
    let told = || Tale::new().takes(0, "c1", 1, 900, 1).told_lost(901, "c1", 1, 890);
    assert_eq!(told().gives_back(3_000, "c1", 1).found(), []);
    let in_time = Tale::new().takes(0, "c1", 1, 900, 1).gives_back(100, "c1", 1);
    assert_eq!(in_time.at(3_000, "c2", Event::Refused { claim: 1, why: "x".into() }).found(), []);
    let late = Tale::new().asks(0, "c1", 1).has(2_000, "c1", 1, 900, 1).gives_back(2_010, "c1", 1);
    assert_eq!(late.found(), []);
}

#[test]
fn a_run_in_which_too_little_happened_is_no_proof() {
    let empty = |change: fn(&mut Run)| {
        let mut tale =
            Tale::new().takes(0, "c1", 1, 900, 1).gives_back(10, "c1", 1).strikes(5, 6, "kill", &["m1"]);
        change(&mut tale.run);
        tale.found()
    };
    assert_eq!(empty(|run| run.grants = 1), []);
    assert_eq!(empty(|run| run.grants = 2), bug(Kind::Empty));
    assert_eq!(empty(|run| run.contended = 1), bug(Kind::Empty));
    assert_eq!(empty(|run| run.overlaps = 1), bug(Kind::Empty));
    assert_eq!(empty(|run| run.faults = vec!["kill".into()]), []);
    assert_eq!(empty(|run| run.faults = vec!["freeze".into()]), bug(Kind::Empty));
    let mut tale = Tale::new().strikes(5, 6, "clock-step=1000", &["m1"]);
    tale.run.faults = vec!["clock-step".into()];
    assert_eq!(tale.found(), []);
}

#[test]
fn a_run_in_which_grants_ended_early_is_no_proof() {
    let asked_until = |wanted, last| {
        let tale = Tale::new().takes(0, "c1", 1, 900, 1).gives_back(10, "c1", 1).takes(200, "c2", 1, 900, 2);
        let mut tale = tale.gives_back(210, "c2", 1).asks(last, "c1", 2);
        tale.run.grants = wanted;
        tale.found()
    };
    assert_eq!(asked_until(1, 300), []);
    assert_eq!(asked_until(1, 303), bug(Kind::Empty));
    assert_eq!(asked_until(0, 303), []);
}

#[test]
fn a_fault_that_was_skipped_does_not_count_and_may_have_struck() {
    let skipped = |tale: Tale| {
        let fault = Event::Fault { id: 9, word: "flush".into(), on: vec!["m1".into()] };
        tale.at(450, "chaos", fault).at(460, "chaos", Event::Skipped { id: 9, why: "x".into() })
    };
    assert_eq!(two_holders(skipped), expected(Kind::Overlap, "flush"));
    let mut tale = skipped(Tale::new());
    tale.run.faults = vec!["flush".into()];
    assert_eq!(tale.found(), bug(Kind::Empty));
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_read() {
    let run = Event::Run(Run { schema: SCHEMA, ..Run::default() });
    let run = serde_json::to_string(&Record { at: 1, by: "chaos".into(), event: run }).unwrap();
    let text = format!(
        "{run}\n{{\"at\":2,\"by\":\"chaos\",\"event\":\"stopped\",\"more\":1}}\n\n{{\"at\":3,\"by\":\"c1\",\"ev"
    );
    let history = History::parse(text.as_bytes());
    assert_eq!((history.records.len(), history.complaints.len()), (1, 1));
    assert!(history.complaints[0].starts_with("line 4: "), "{:?}", history.complaints);
    let other = text.replace("\"schema\":1", "\"schema\":2");
    assert!(History::parse(other.as_bytes()).complaints.iter().any(|why| why.contains("schema 2")));
    let kinds: Vec<Kind> =
        Judgement::of(&History::parse(b"")).findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::Unreadable, Kind::Empty]);
}

#[test]
fn records_are_put_in_the_order_of_time_and_the_first_run_counts() {
    let line = |at, by: &str, event| serde_json::to_string(&Record { at, by: by.into(), event }).unwrap();
    let run = |at, seed| line(at, "chaos", Event::Run(Run { schema: SCHEMA, seed, ..Run::default() }));
    let exit = |at, by| line(at, by, Event::Exit { claim: 1 });
    let text = [run(9, 1), exit(5, "b"), exit(5, "a"), exit(3, "c"), run(2, 2)].join("\n");
    let history = History::parse(text.as_bytes());
    let by: Vec<&str> = history.records.iter().map(|record| record.by.as_str()).collect();
    assert_eq!((history.run.seed, by), (1, vec!["chaos", "c", "b", "a"]));
}

/// Records with numbers and names that may make no sense together.
fn any_record() -> impl Strategy<Value = String> {
    let number = || prop_oneof![0..4u64, Just(u64::MAX), any::<u64>()];
    let word = prop_oneof![
        Just("granted"),
        Just("start"),
        Just("lost"),
        Just("renewed"),
        Just("applied"),
        Just("fault"),
        Just("healed"),
        Just("stalled"),
        Just("left"),
        Just("run"),
        Just("effect"),
        Just("counter")
    ];
    (word, "c[1-3]|m1|chaos", proptest::array::uniform6(number())).prop_map(|(word, by, [at, claim, a, b, c, d])| {
        format!(
            "{{\"at\":{at},\"by\":\"{by}\",\"event\":\"{word}\",\"claim\":{claim},\"resource\":\"r\",\"holder\":\"h\",\"deadline\":{a},\
             \"votes\":3,\"fence\":{b},\"why\":\"w\",\"seen\":{c},\"client\":\"c1\",\"op\":\"write\",\"found\":{c},\"value\":{d},\"ack\":true,\
             \"id\":{claim},\"word\":\"flush\",\"on\":[\"{by}\"],\"since\":{d},\"master\":\"m1\",\"key\":\"k\",\"schema\":1,\"seed\":{a},\
             \"clients\":1,\"masters\":{c},\"ttl\":{b},\"max_ttl\":{c},\"drift\":{d},\"fenced\":true,\"mutant\":null,\"command\":\"\",\
             \"grants\":0,\"contended\":0,\"faults\":[],\"overlaps\":0}}"
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Judgement::of(&History::parse(&bytes));
    }

    #[test]
    fn no_records_make_the_checker_panic(lines in proptest::collection::vec(any_record(), 0..30), cut in 0..4_000usize) {
        let text = lines.join("\n");
        let _ = Judgement::of(&History::parse(text.as_bytes()));
        let _ = Judgement::of(&History::parse(&text.as_bytes()[..cut.min(text.len())]));
    }
}
