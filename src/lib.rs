//! quorlock

#[cfg(feature = "testbed")]
pub mod testbed;
