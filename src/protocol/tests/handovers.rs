//! A lease that one process wins and another extends or releases.

use super::scene::*;
use crate::protocol::attempt::{Attempt, Stage};
use crate::protocol::release::Released;
use crate::protocol::renewal::Extension;
use crate::protocol::votes::Vote;

fn adopted() -> Scene {
    Scene::of(Attempt::adopt(five(), ttl(TTL), MASTER_TIMEOUT, after(0)))
}

#[test]
fn an_adopted_lease_is_released_everywhere() {
    let mut scene = adopted();
    assert_eq!(scene.released(), "Release m1 m2 m3 m4 m5");
    scene.all_hear(&[1, 2, 3], &Vote::Granted);
    let freed = Released::Freed { deleted: masters(&[1, 2, 3]), pending: masters(&[4, 5]) };
    assert_eq!(scene.attempt.released(), Some(freed));
    let mut nothing = adopted();
    nothing.released();
    nothing.all_hear(&[1, 2, 3], &Vote::Absent);
    assert!(
        matches!(nothing.attempt.released(), Some(Released::Freed { deleted, .. }) if deleted.is_empty())
    );
}
