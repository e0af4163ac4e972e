//! The decisions of Redlock as values: nothing here reads a clock, opens a socket, starts a task or rolls dice.
//!
//! Time comes in as an argument, answers come in through `on_*`, commands and moments go out through `next_*`.
//! So one and the same code runs under real masters, under a simulation, and under an exhaustive search.
//!
//! ```text
//! request ─► fan-out ─► votes ─► verdict ─► lease ─► renewal ─► release
//! ```
//!
//! The words, each with one meaning:
//!
//! * a **master** is one of the N independent Redis or Valkey servers; a **quorum** is w of them, 2w > N;
//! * a **resource** is what is locked; its bytes are the key; a **holder id** is the random value that signs the key;
//! * the **ttl** is asked of the masters, the **validity** is what is left of it for us, a **lease** is what a winner has;
//! * a **claim** is one attempt on all masters; to **extend** is one act, to **renew** is the habit of it;
//! * a **stray** is a key of ours on a master that no win stands behind.

#[doc(hidden)]
pub mod mutant;

pub mod time;

pub mod quorum;

pub mod policy;

pub mod request;

pub mod fencing;

pub mod fanout;

pub mod votes;

pub mod validity;

pub mod verdict;

mod seat;

pub mod news;

pub mod attempt;

mod claim;

mod numbering;

pub mod renewal;

pub mod release;

mod likeness;

#[cfg(test)]
mod tests;
