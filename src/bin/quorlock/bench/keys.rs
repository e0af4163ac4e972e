//! The keys of a run: under a prefix of its own, no two cycles on the same one.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

static PREFIX: LazyLock<String> =
    LazyLock::new(|| format!("quorlock-bench:{:08x}:", uuid::Uuid::new_v4().as_u64_pair().0 as u32));

static NEXT: AtomicU64 = AtomicU64::new(0);

/// What all keys of this process begin with.
pub(crate) fn prefix() -> &'static str {
    &PREFIX
}

/// One that nobody has used.
pub(crate) fn fresh(key: &mut String) {
    key.clear();
    let _ = write!(key, "{}{}", prefix(), NEXT.fetch_add(1, Ordering::Relaxed));
}
