//! Until when a lease is valid: the w-th largest of the masters' deadlines.

use super::mutant::{self, Mutant};
use super::quorum::Quorum;
use super::time::Moment;

/// The w-th largest of `confirmed`, each the deadline of one master's latest confirmed claim or renewal
/// (`send stamp + ttl − drift`); `None` while fewer than w masters stand behind the lease.
///
/// A lease is valid as long as w masters are sure to keep the key, so the w-th largest is the last moment of which
/// that can be said (safety of "client-side state to keep"). It falls when a master turns out to have lost the key.
#[must_use]
pub fn deadline(quorum: Quorum, confirmed: impl Iterator<Item = Moment>) -> Option<Moment> {
    let mut largest = [Moment::from_nanos(0); super::quorum::MOST_MASTERS];
    let mut count = 0;
    for moment in confirmed.take(largest.len()) {
        let place = largest[..count].partition_point(|seen| *seen >= moment);
        largest.copy_within(place..count, place + 1);
        largest[place] = moment;
        count += 1;
    }
    let place = match quorum.needed() - 1 {
        _ if mutant::on(Mutant::OneConfirmationIsEnough) => 0,
        _ if mutant::on(Mutant::HalfIsEnough) => quorum.masters() / 2 - 1,
        place => place,
    };
    largest[..count].get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_the_wth_largest_in_whatever_order() {
        let five = Quorum::majority(5).expect("five");
        let deadline_of = |nanos: &[u64]| {
            deadline(five, nanos.iter().copied().map(Moment::from_nanos)).map(Moment::as_nanos)
        };
        assert_eq!(deadline_of(&[]), None);
        assert_eq!(deadline_of(&[9, 8]), None);
        assert_eq!(deadline_of(&[9, 7, 8]), Some(7));
        assert_eq!(deadline_of(&[1, 9, 7, 8, 2]), Some(7));
        assert_eq!(deadline_of(&[5, 5, 5, 1, 9]), Some(5));
        let four = five.with_min_votes(4).expect("four of five");
        assert_eq!(
            deadline(four, [1, 9, 7, 8, 2].into_iter().map(Moment::from_nanos)),
            Some(Moment::from_nanos(2))
        );
    }
}
