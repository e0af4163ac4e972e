//! The scenarios, each of which becomes a section.

pub(crate) mod contention;
pub(crate) mod distance;
mod extension;
pub(crate) mod faults;
pub(crate) mod handoff;
pub(crate) mod process;
pub(crate) mod rate;
pub(crate) mod renewal;
pub(crate) mod set;
pub(crate) mod side;
pub(crate) mod timeline;
