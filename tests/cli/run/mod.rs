//! run: a command under a lock.

mod commands;
mod ends;
mod loss;
mod reports;
mod scene;
mod signals;
mod terminal;
mod usage;
