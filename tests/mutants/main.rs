//! Each rule of the protocol, broken on purpose: the search of `tests/model` finds what comes of it, by the fewest steps.
//!
//! With `--nocapture` each test tells its way in words. The rules whose breach costs no safety in these worlds are in
//! `src/protocol/tests/mutants.rs`, with the scenes that find them.

#[path = "../model/choice.rs"]
mod choice;
#[path = "../model/master.rs"]
mod master;
#[path = "../model/mixer.rs"]
mod mixer;
#[path = "../model/promise.rs"]
mod promise;
#[path = "../model/row.rs"]
mod row;
#[path = "../model/search.rs"]
mod search;
#[path = "../model/step.rs"]
mod step;
#[path = "../model/words.rs"]
mod words;
#[path = "../model/world.rs"]
mod world;

use quorlock::protocol::mutant::{self, Mutant};

use promise::Promise;
use row::{Habit, Row};
use search::search;

/// The search of `row` breaks `promise`, and first after `length` steps.
fn is_caught(row: Row, promise: Promise, length: usize) {
    let found = search(&row, |broken| broken == promise);
    let Some((_, steps)) = &found.broken else { panic!("not caught in {} worlds: {row:?}", found.worlds) };
    println!("{promise:?} is broken in {} steps, after {} worlds:", steps.len(), found.worlds);
    println!("{}", words::tell(&row, steps));
    assert_eq!(steps.len(), length, "the shortest way has changed");
}

macro_rules! habits {
    ($($(#[$attribute:meta])* $name:ident: $habit:ident in $row:expr, breaks $promise:ident after $length:literal;)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $name() {
            is_caught(Row { habit: Some(Habit::$habit), ..$row }, Promise::$promise, $length);
        }
    )*};
}

macro_rules! mutants {
    ($($(#[$attribute:meta])* $name:ident: $mutant:ident in $row:expr, breaks $promise:ident after $length:literal;)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $name() {
            mutant::set(Some(Mutant::$mutant));
            is_caught($row, Promise::$promise, $length);
            mutant::set(None);
        }
    )*};
}

const THREE: Row = Row::of(3);
const FIVE: Row = Row::of(5);
/// One claim, from its first command until no key of it can come back.
const ALONE: Row = Row { attempts: 1, fewest: 0, ..THREE };
const ALONE_ON_ONE: Row = Row { attempts: 1, fewest: 0, ..Row::of(1) };

/// Two claims that are fenced, where nothing but the tokens has to hold.
const FENCED: Row = Row { fenced: true, timeless: true, fewest: 1, ttl: 3, ..THREE };
/// Counters as claims leave them that reach one master each.
const DIFFERENT: Row = Row { counters: [0, 1, 2, 0, 0], ..FENCED };

habits! {
    the_clock_is_read_late: ReadsTheClockLate in THREE, breaks Exclusion after 13;
    one_holder_id_for_two_claims: SignsTwiceAlike in Row { attempts: 3, ..THREE }, breaks Exclusion after 10;
    a_claim_is_sent_twice: SendsAgain in ALONE, breaks NoGhost after 11;
    commands_overtake_each_other: Overtakes in Row { silences: 1, ..ALONE }, breaks NoGhost after 9;
    silence_passes_for_failure: CallsSilenceFailure in Row { silences: 1, ..ALONE }, breaks NoGhost after 11;
    a_delete_does_not_compare: DeletesBlindly in Row { attempts: 3, ..THREE }, breaks Exclusion after 10;
    #[ignore = "long: tests/model/long.sh"]
    a_delete_compares_too_early: GetsThenDeletes in Row { attempts: 3, ..THREE }, breaks Exclusion after 14;
    renewal_sets: RenewsBySet in Row { attempts: 2, extensions: 1, ..THREE }, breaks Exclusion after 14;
    renewal_does_not_compare: RenewsBlindly in Row { extensions: 1, ..THREE }, breaks Exclusion after 14;
    renewal_lowers: RenewsDownwards in Row { ttl: 5, short: Some(3), extensions: 2, breaks: 1, ..THREE }, breaks Exclusion after 11;
    no_quarantine: SkipsQuarantine in Row { crashes: 1, ..THREE }, breaks Exclusion after 7;
    a_vote_in_quarantine: VotesInQuarantine in Row { crashes: 1, ..THREE }, breaks Exclusion after 7;
    a_raise_does_not_compare: RaisesBlindly in Row { forgets: 2, ..DIFFERENT }, breaks TokenOrder after 9;
    a_raise_finds_another_incarnation: RaisesByHolder in Row { forgets: 2, replays: 1, bumps: 1, ..FENCED }, breaks TokenOrder after 12;
    counters_read_in_quarantine: ReadsInQuarantine in Row { crashes: 1, ..FENCED }, breaks TokenOrder after 10;
    clocks_beyond_the_drift: ClocksRunAway in THREE, breaks Exclusion after 9;
}

mutants! {
    no_drift: DriftDropped in THREE, breaks Exclusion after 10;
    stamped_at_the_answer: StampedAtAnswer in Row { slow: true, ..THREE }, breaks Exclusion after 14;
    renewal_stamped_at_the_answer: StampedAtAnswer in Row { extensions: 1, slow: true, ..THREE }, breaks Exclusion after 14;
    one_confirmation: OneConfirmationIsEnough in Row { extensions: 1, ..THREE }, breaks Exclusion after 12;
    a_win_after_the_deadline: LateWinAccepted in Row { attempts: 1, late: true, fewest: 0, ..THREE }, breaks TimelyWin after 6;
    no_roll_back: RollBackSkipped in ALONE, breaks NoGhost after 7;
    links_are_not_swept: LinksNotSwept in Row { breaks: 1, ..ALONE_ON_ONE }, breaks NoGhost after 14;
    links_are_swept_once: SweptOnce in Row { breaks: 1, ..ALONE }, breaks NoGhost after 10;
    doubt_ends_anywhere: DoubtEndsAnywhere in Row { breaks: 1, ..ALONE }, breaks NoGhost after 10;
    refusals_count: RefusalsCount in THREE, breaks Exclusion after 6;
    silence_counts: SilenceCounts in Row { silences: 1, ..THREE }, breaks Exclusion after 6;
    half_is_enough: HalfIsEnough in THREE, breaks Exclusion after 4;
    half_is_enough_of_five: HalfIsEnough in FIVE, breaks Exclusion after 6;
    loss_is_not_for_good: LossNotSticky in Row { extensions: 1, fewest: 0, ..THREE }, breaks StickyLoss after 9;
    #[ignore = "long: tests/model/long.sh"]
    loss_is_not_for_good_and_another_held: LossNotSticky in Row { extensions: 1, fewest: 1, ..THREE }, breaks Continuity after 16;
    a_failed_renewal_releases: FailedRenewalReleases in Row { extensions: 1, silences: 2, ..THREE }, breaks Exclusion after 12;
    the_doubtful_are_not_released: ReleaseSkipsDoubtful in Row { silences: 1, ..ALONE }, breaks NoGhost after 8;
    nothing_is_released: ReleaseForgotten in ALONE, breaks NoGhost after 5;
    the_greatest_of_counters: GreatestIsToken in DIFFERENT, breaks TokenOrder after 8;
    the_least_of_counters: LeastIsToken in DIFFERENT, breaks TokenOrder after 8;
    the_raise_is_not_awaited: RaiseNotAwaited in DIFFERENT, breaks TokenOrder after 8;
    masters_that_were_not_read_are_raised: RaisedAnywhere in Row { habit: Some(Habit::RaisesByHolder), ..DIFFERENT }, breaks TokenOrder after 8;
    counters_are_not_recovered: RecoverySkipped in Row { crashes: 1, ..FENCED }, breaks TokenOrder after 10;
    counters_of_too_few_others: RecoveryReadsTooFew in Row { crashes: 1, ..FENCED }, breaks TokenOrder after 10;
    counters_of_too_few_others_of_five: RecoveryReadsTooFew in Row { crashes: 1, fenced: true, timeless: true, fewest: 1, ttl: 3, ..FIVE }, breaks TokenOrder after 12;
    the_quarantine_is_short: QuarantineTooShort in Row { crashes: 1, ..THREE }, breaks Exclusion after 8;
}

/// What lies outside the promise: one master that forgets is one too many for a plain majority, three for w = 4.
#[test]
fn one_forgetful_master() {
    is_caught(Row { forgets: 1, ..THREE }, Promise::Exclusion, 7);
    is_caught(Row { forgets: 1, ..FIVE }, Promise::Exclusion, 9);
    is_caught(Row { needed: 4, forgets: 3, ..FIVE }, Promise::Exclusion, 13);
}
