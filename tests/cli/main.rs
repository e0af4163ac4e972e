//! The command line as its user meets it: the real program, against real masters.

#![allow(clippy::unwrap_used, reason = "a test's own helpers are no less tests")]

mod bad_input;
mod beds;
mod demo;
mod faults;
mod inspect;
mod locks;
#[cfg(target_os = "linux")]
mod run;
mod stage;
