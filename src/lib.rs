//! quorlock

pub mod protocol;
