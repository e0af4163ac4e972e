//! The arithmetic of deadlines, whatever the numbers: whole, never optimistic, never out of its bounds.

use std::time::Duration;

use proptest::prelude::*;
use quorlock::protocol::policy::Policy;
use quorlock::protocol::quorum::Quorum;
use quorlock::protocol::request::{Ttl, printable};
use quorlock::protocol::time::Moment;
use quorlock::protocol::validity::deadline;

/// Sound policies, and a few at the edges of what is sound.
fn policies() -> impl Strategy<Value = Policy> {
    (1u32..=Policy::MOST_DRIFT_PPM, 1u64..=60_000, any::<u64>(), 1u64..5_000, 0u64..5_000).prop_map(
        |(ppm, timeout, ttl, floor, more)| {
            let most = Policy::MOST_TTL.as_millis() as u64;
            let millis = Duration::from_millis;
            Policy::new()
                .with_drift_ppm(ppm)
                .with_master_timeout(millis(timeout))
                .with_max_ttl(millis(2 * timeout + ttl % (most - 2 * timeout)))
                .with_backoff(millis(floor), millis(floor + more))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_024) })]

    #[test]
    fn a_ttl_is_whole_and_its_validity_is_covered_by_the_drift(policy in policies(), micros: u64) {
        prop_assert_eq!(policy.check(), Ok(()));
        let asked = Duration::from_micros(micros % (2 * policy.max_ttl().as_micros() as u64));
        let Ok(ttl) = Ttl::new(asked, &policy) else { return Ok(()) };
        let whole = ttl.as_duration();
        prop_assert_eq!(Duration::from_millis(ttl.as_millis().into()), whole);
        prop_assert!(whole <= asked && asked - whole < Duration::from_millis(1));
        prop_assert!(ttl.validity() > policy.master_timeout() && whole <= policy.max_ttl());
        // At the least what the factor asks for, and the masters' millisecond; at most that and a rounding.
        let drift = whole - ttl.validity();
        prop_assert_eq!(drift, policy.drift(whole));
        prop_assert_eq!(ttl.longest_stay(), whole + drift);
        prop_assert!(policy.quarantine() >= ttl.longest_stay(), "a vote outlives the quarantine");
        prop_assert!(ttl.renewal_period() * 3 <= whole);
    }

    #[test]
    fn the_drift_is_the_factor_rounded_up_and_two(ppm in 1u32..=Policy::MOST_DRIFT_PPM, millis in 0u64..=86_400_000) {
        let policy = Policy::new().with_drift_ppm(ppm);
        let drift = policy.drift(Duration::from_millis(millis));
        let exact = u128::from(millis) * u128::from(ppm);
        let above = drift.as_millis() - 2;
        prop_assert!(above * 1_000_000 >= exact && (above * 1_000_000).saturating_sub(exact) < 1_000_000);
        prop_assert_eq!(drift.subsec_nanos() % 1_000_000, 0);
        prop_assert!(policy.drift(Duration::from_millis(millis + 1)) >= drift);
    }

    #[test]
    fn a_pause_stays_between_a_quarter_and_the_whole_of_its_ceiling(policy in policies(), claim: u32, dice: u64) {
        let pause = policy.backoff(claim, dice);
        let first = policy.backoff(0, 0);
        prop_assert!(pause >= first, "{:?} after {:?}", pause, first);
        let later = policy.backoff(claim.saturating_add(1), 0);
        prop_assert!(later >= policy.backoff(claim, 0), "the least pause shrinks");
        let cap = policy.backoff(u32::MAX, 0) * 4 + Duration::from_nanos(4);
        prop_assert!(pause <= cap, "{:?} above {:?}", pause, cap);
    }

    #[test]
    fn a_deadline_is_backed_by_w_masters_and_the_latest_such(
        masters in 1usize..=9, more in 0usize..5, moments in prop::collection::vec(0u64..50, 0..9)
    ) {
        let majority = Quorum::majority(masters).expect("few masters");
        let votes = (majority.needed() + more).min(masters);
        let quorum = majority.with_min_votes(votes).expect("no fewer than a majority");
        let confirmed = &moments[..moments.len().min(masters)];
        let found = deadline(quorum, confirmed.iter().copied().map(Moment::from_nanos));
        let backing = |until: u64| confirmed.iter().filter(|moment| **moment >= until).count();
        let expected = confirmed.iter().copied().filter(|until| backing(*until) >= votes).max();
        prop_assert_eq!(found.map(Moment::as_nanos), expected);
    }

    #[test]
    fn moments_never_wrap(at: u64, by: u64) {
        let (moment, by) = (Moment::from_nanos(at), Duration::from_nanos(by));
        prop_assert!(moment.plus(by) >= moment && moment.minus(by) <= moment);
        prop_assert!(moment.plus(by).since(moment) <= by && moment.since(moment.minus(by)) <= by);
        prop_assert_eq!(moment.since(moment.plus(by)), Duration::ZERO);
    }

    #[test]
    fn what_is_printed_fits_a_line(bytes: Vec<u8>) {
        let text = printable(&bytes);
        prop_assert!(text.len() <= 4 * 64 + '…'.len_utf8());
        prop_assert!(text.chars().all(|letter| letter == '…' || letter == ' ' || letter.is_ascii_graphic()));
    }
}
