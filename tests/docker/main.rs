//! The lock on real containers, each with an address of its own. `sh docker/run.sh test` brings them up, runs these, and takes
//! them down; elsewhere they are ignored, by name.
//!
//! One bed serves all but those of `standing`, which bring up their own; so they must run one after the other.

#![allow(clippy::unwrap_used, reason = "a test's own helpers are no less tests")]
#![allow(clippy::disallowed_methods, reason = "tests compare a master's clock with this machine's")]

mod bed;

mod exclusion;
mod failover;
mod faults;
mod partitions;
mod restarts;
mod standing;
mod tls;
