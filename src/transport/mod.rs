//! What carries a command to a master, and its answer back.

#[cfg(feature = "fred")]
pub(crate) mod fred;
