//! The lock on real servers: every rule it keeps, every fault it meets, every kind of mistake in using it.
//!
//! Each test has five fresh masters of its own. `../README.md` says which public bug report is which test.

#![allow(clippy::unwrap_used, reason = "a test's own helpers are no less tests")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time, and own their tasks by ending")]

mod fencing;
mod fleet;
mod proxy;

mod acquire;
mod admission;
mod batching;
mod cancellation;
mod config;
mod faults;
mod leases;
mod line;
mod mixed;
mod quorum;
mod release;
mod renewal;
mod rollback;
mod secrets;
mod several;
mod telling;
mod waiting;
