//! Whether to end early. Work under way is finished, so that nothing is left behind.

use std::sync::atomic::{AtomicBool, Ordering};

static RAISED: AtomicBool = AtomicBool::new(false);

pub(crate) fn raise() {
    RAISED.store(true, Ordering::Relaxed);
}

pub(crate) fn is_raised() -> bool {
    RAISED.load(Ordering::Relaxed)
}
