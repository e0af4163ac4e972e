//! The arithmetic, on values whose answer is known.

use super::chance::Chance;
use super::sums::{Estimate, quantile};

#[test]
fn a_quantile_is_the_smallest_sample_with_that_share_at_or_below_it() {
    let mut samples: Vec<u32> = (1..=1000).rev().collect();
    let found = [0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&mut samples, q));
    assert_eq!(found, [1, 500, 990, 999, 1000]);
    assert_eq!((quantile(&mut [], 0.5), quantile(&mut [7], 0.99)), (0, 7));
}

#[test]
fn the_interval_of_a_known_distribution_is_as_wide_as_theory_has_it() {
    let mut chance = Chance::new();
    let (mut covered, mut width) = (0, 0.0);
    for _ in 0..40 {
        let values: Vec<f64> =
            (0..100).map(|_| chance.below(1_000_001) as f64 / 1e6).collect();
        let estimate = Estimate::of(&values, &mut chance);
        covered += usize::from(estimate.low <= 0.5 && 0.5 <= estimate.high);
        width += (estimate.high - estimate.low) / 40.0;
    }
    // 95 of 100 in the long run; a median of a hundred uniform values has a deviation of 0.05.
    assert!(covered >= 30, "only {covered} of 40 intervals cover the median");
    assert!((0.12..0.28).contains(&width), "{width}");
}

#[test]
fn equal_values_leave_no_doubt() {
    let estimate = Estimate::of(&[2.0; 5], &mut Chance::new());
    assert_eq!(estimate, Estimate { median: 2.0, low: 2.0, high: 2.0 });
}
