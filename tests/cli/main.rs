//! The command line as its user meets it: the real program, against real masters.

#![allow(clippy::unwrap_used, reason = "a test's own helpers are no less tests")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time")]

mod bad_input;
mod beds;
mod demo;
mod doctor;
mod explain;
mod faults;
mod inspect;
mod list;
mod locks;
#[cfg(target_os = "linux")]
mod run;
mod stage;
