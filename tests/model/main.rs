//! Every world there is, up to a size: the shipped protocol under masters, connections and a clock made of values.

mod choice;
mod master;
mod mixer;
mod promise;
mod row;
mod search;
mod step;
mod words;
mod world;

use std::time::Instant;

use promise::{Promise, Sight};
use row::Row;
use search::search;

fn check(row: Row, worlds: usize, sights: &[Sight]) {
    #[allow(clippy::disallowed_methods)]
    let began = Instant::now();
    // Without time there is no validity: only tokens keep their order.
    let found = search(&row, |promise| !row.timeless || promise == Promise::TokenOrder);
    let (took, all, steps) = (began.elapsed(), found.worlds, found.steps);
    println!("{all} worlds, {steps} steps, {} deep, {took:.1?}; sights {:b}", found.depth, found.sights);
    if let Some((promise, steps)) = &found.broken {
        panic!("{promise:?} is broken in {} steps of {row:?}\n{}", steps.len(), words::tell(&row, steps));
    }
    for sight in sights {
        assert!(found.sights & 1 << *sight as u32 != 0, "never seen: {sight:?}");
    }
    assert_eq!(all, worlds, "the worlds have changed in number");
}

const THREE: Row = Row::of(3);
const FIVE: Row = Row::of(5);
/// Two claims that are fenced, until neither can hold.
const TIMED: Row = Row { fenced: true, fewest: 1, ttl: 3, ..THREE };
const FENCED: Row = Row { timeless: true, ..TIMED };
const FENCED_OF_FIVE: Row = Row { fenced: true, timeless: true, fewest: 1, ttl: 3, ..FIVE };
/// One attempt on one master, with all that can go wrong between the two.
const ALONE_ON_ONE: Row = Row { attempts: 1, fewest: 0, breaks: 2, silences: 1, ..Row::of(1) };
/// One attempt from its first command until no key of it can come back.
const ALONE: Row = Row { attempts: 1, fewest: 0, ..THREE };
const ALONE_OF_FIVE: Row = Row { attempts: 1, fewest: 0, ..FIVE };

macro_rules! rows {
    ($($(#[$attribute:meta])* $name:ident: $row:expr, $worlds:literal worlds, sees $($sight:ident)*;)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $name() {
            check($row, $worlds, &[$(Sight::$sight),*]);
        }
    )*};
}

// Exclusion: two claims or three, until fewer than two can hold.
rows! {
    two_claims: THREE, 691 worlds, sees Won Rivalry HeldBesideAnother Straggler;
    two_claims_with_slow_answers: Row { slow: true, ..THREE }, 9_868 worlds, sees Won Rivalry Straggler;
    two_claims_and_late_drivers: Row { late: true, ..THREE }, 19_220 worlds, sees Won Rivalry TooLate;
    two_claims_over_broken_connections: Row { breaks: 1, ..THREE }, 6_584 worlds, sees Won LateExecution;
    three_claims_on_two: Row { attempts: 3, ..Row::of(2) }, 180_507 worlds, sees Won HandedOn;
    two_claims_on_five: FIVE, 5_099 worlds, sees Won Rivalry HeldBesideAnother Straggler;
    #[ignore = "long: tests/model/long.sh"]
    two_claims_on_five_with_slow_answers: Row { slow: true, ..FIVE }, 351_418 worlds, sees Won Rivalry;
}

// Masters that restart, forget, or come back with their data.
rows! {
    an_empty_restart: Row { crashes: 1, ..THREE }, 12_768 worlds, sees HeldInQuarantine;
    an_empty_restart_with_slow_answers: Row { crashes: 1, slow: true, ..THREE }, 180_169 worlds, sees HeldInQuarantine;
    two_empty_restarts: Row { crashes: 2, ..THREE }, 75_194 worlds, sees HeldInQuarantine;
    a_restart_with_data: Row { restarts: 1, ..THREE }, 19_758 worlds, sees HeldInQuarantine;
    a_restart_of_each_kind: Row { crashes: 1, restarts: 1, ..THREE }, 266_246 worlds, sees HeldInQuarantine;
    an_empty_restart_of_one_of_five: Row { crashes: 1, ..FIVE }, 141_862 worlds, sees HeldInQuarantine;
    #[ignore = "long: tests/model/long.sh"]
    two_empty_restarts_of_five: Row { crashes: 2, ..FIVE }, 1_717_352 worlds, sees HeldInQuarantine;
    four_votes: Row { needed: 4, ..FIVE }, 2_596 worlds, sees Won Rivalry;
    four_votes_and_one_forgetful_master: Row { needed: 4, forgets: 1, ..FIVE }, 10_936 worlds, sees Won;
    four_votes_and_two_forgetful_masters: Row { needed: 4, forgets: 2, ..FIVE }, 25_706 worlds, sees Won;
}

// Renewal and healing.
rows! {
    a_renewal: Row { extensions: 1, ..THREE }, 7_142 worlds, sees Extended Rivalry Healed;
    a_renewal_with_slow_answers: Row { extensions: 1, slow: true, ..THREE }, 140_803 worlds, sees Extended Rivalry;
    a_renewal_and_late_drivers: Row { extensions: 1, late: true, ..THREE }, 215_574 worlds, sees Extended Rivalry;
    two_renewals: Row { extensions: 2, ..THREE }, 67_015 worlds, sees Extended Rivalry Healed;
    #[ignore = "long: tests/model/long.sh"]
    two_renewals_long_and_short: Row { ttl: 5, short: Some(3), extensions: 2, ..THREE }, 566_163 worlds, sees Extended;
    a_renewal_and_an_empty_restart: Row { extensions: 1, crashes: 1, ..THREE }, 149_517 worlds, sees Extended Vanished HeldInQuarantine;
    a_renewal_over_broken_connections: Row { extensions: 1, breaks: 1, ..THREE }, 124_451 worlds, sees Extended LateExecution;
    a_renewal_on_five: Row { extensions: 1, ..FIVE }, 120_171 worlds, sees Extended Rivalry Healed;
    four_votes_a_renewal_and_a_forgetful_master: Row { needed: 4, extensions: 1, forgets: 1, ..FIVE }, 166_760 worlds, sees Extended;
}

// Fencing: until no token can be won after another.
rows! {
    two_fenced_claims: TIMED, 62_397 worlds, sees Won Rivalry TokenAtOnce TokenRaised TokenAfterToken;
    proposals_that_fall: Row { proposals: [3, 1, 0], ..TIMED }, 59_756 worlds, sees TokenAtOnce TokenRaised TokenAfterToken;
    a_fenced_lease_that_is_healed: Row { extensions: 1, forgets: 1, ..FENCED }, 77_925 worlds, sees TokenAfterToken Healed;
    counters_that_are_alike: FENCED, 524 worlds, sees TokenAtOnce TokenRaised TokenAfterToken;
    counters_that_differ: Row { counters: [0, 1, 2, 0, 0], ..FENCED }, 5_182 worlds, sees TokenAtOnce TokenRaised TokenAfterToken;
    counters_far_apart: Row { counters: [0, 5, 0, 0, 0], ..FENCED }, 2_671 worlds, sees TokenAtOnce TokenRaised TokenAfterToken;
    fenced_with_slow_answers: Row { slow: true, ..FENCED }, 4_181 worlds, sees TokenRaised TokenAfterToken;
    keys_vanish_at_any_moment: Row { forgets: 2, counters: [0, 1, 2, 0, 0], ..FENCED }, 53_039 worlds, sees TokenAtOnce TokenRaised TokenAfterToken;
    keys_vanish_and_counters_rise: Row { forgets: 2, bumps: 1, ..FENCED }, 52_217 worlds, sees TokenRaised TokenAfterToken;
    claims_are_replayed: Row { forgets: 1, replays: 1, bumps: 1, ..FENCED }, 101_379 worlds, sees TokenRaised TokenAfterToken;
    a_fenced_empty_restart: Row { crashes: 1, ..FENCED }, 15_000 worlds, sees TokenAfterToken CountsAgain;
    two_fenced_empty_restarts: Row { crashes: 2, ..FENCED }, 156_736 worlds, sees TokenAfterToken CountsAgain;
    #[ignore = "long: tests/model/long.sh"]
    fenced_restarts_with_data: Row { restarts: 2, ..FENCED }, 419_479 worlds, sees TokenAfterToken CountsAgain;
    four_votes_and_a_master_that_forgets_its_counter: Row { needed: 4, crashes: 1, ..FENCED_OF_FIVE }, 51_323 worlds, sees TokenAfterToken CountsAgain;
    three_fenced_on_one: Row { attempts: 3, masters: 1, needed: 1, bumps: 1, ..FENCED }, 1_700 worlds, sees TokenAfterToken;
    three_fenced_on_two: Row { attempts: 3, masters: 2, needed: 2, ..FENCED }, 4_629 worlds, sees TokenAfterToken;
    #[ignore = "long: tests/model/long.sh"]
    five_counters_that_differ: Row { counters: [0, 0, 0, 1, 2], ..FENCED_OF_FIVE }, 565_206 worlds, sees TokenRaised TokenAfterToken;
    two_fenced_on_five: FENCED_OF_FIVE, 5_881 worlds, sees TokenRaised TokenAfterToken;
    #[ignore = "long: tests/model/long.sh"]
    a_fenced_empty_restart_of_five: Row { crashes: 1, ..FENCED_OF_FIVE }, 246_653 worlds, sees TokenAfterToken CountsAgain;
}

// To the end: what is left behind.
rows! {
    alone: ALONE, 8_192 worlds, sees Won NoQuorum Expired Freed Quiet;
    #[ignore = "long: tests/model/long.sh"]
    alone_with_slow_answers: Row { slow: true, ..ALONE }, 295_515 worlds, sees Freed Quiet LateYes;
    #[ignore = "long: tests/model/long.sh"]
    alone_over_broken_connections: Row { breaks: 1, ..ALONE }, 917_856 worlds, sees Quiet LateExecution;
    alone_on_one_master_over_broken_connections: ALONE_ON_ONE, 62_917 worlds, sees Quiet LateExecution;
    #[ignore = "long: tests/model/long.sh"]
    alone_on_one_master_that_restarts: Row { crashes: 1, extensions: 1, ..ALONE_ON_ONE }, 1_780_231 worlds, sees Quiet Vanished;
    alone_with_answers_lost: Row { silences: 1, ..ALONE }, 121_506 worlds, sees Quiet;
    alone_with_a_renewal: Row { extensions: 1, ..ALONE }, 249_661 worlds, sees Quiet Extended Healed;
    alone_with_an_empty_restart: Row { crashes: 1, ..ALONE }, 299_726 worlds, sees Quiet Vanished;
    alone_on_five: ALONE_OF_FIVE, 172_745 worlds, sees Won Freed Quiet;
    two_to_the_end_on_one: Row { fewest: 0, ..Row::of(1) }, 28_642 worlds, sees Quiet HandedOn Contended;
    #[ignore = "long: tests/model/long.sh"]
    two_to_the_end_on_two: Row { fewest: 0, ..Row::of(2) }, 3_044_645 worlds, sees Quiet HandedOn Contended;
    #[ignore = "long: tests/model/long.sh"]
    three_to_the_end_on_one: Row { attempts: 3, fewest: 0, ..Row::of(1) }, 5_319_310 worlds, sees Quiet HandedOn Contended;
}
