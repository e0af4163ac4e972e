//! Real masters on this machine, and faults on them (feature `testbed`).
//!
//! ```no_run
//! use quorlock::testbed::{Fault, Testbed};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bed = Testbed::start(5)?;                   // about 100 ms
//! let urls = bed.urls();                          // redis://127.0.0.1:…, five of them
//! bed[0].kill()?;                                 // kill -9
//! let frozen = bed[1].injected(Fault::Freeze);        // SIGSTOP; thawed when `frozen` is dropped
//! assert!(frozen.outcome().is_installed());
//! assert_eq!(bed[2].get("order:123")?, None);     // look at a master from outside
//! # Ok(()) }                                      // every process ended, every folder removed
//! ```
//!
//! The same code drives the command line's `testbed` and `demo`, our tests and our benches. All of it but the [`Proxy`] is
//! synchronous: it must work in `Drop` and outside a runtime, and on loopback a look takes some 50 µs.
//!
//! | file | is |
//! |---|---|
//! | `binary` | where the server program comes from |
//! | `port`, `folder`, `process` | what one master occupies: a port kept for it, a directory, a child process |
//! | `condition`, `local` | one master, [`LocalMaster`] |
//! | `bed` | several, [`Testbed`] |
//! | `wire`, `look` | a small client, to look at masters from outside |
//! | `fault`, `local_fault`, `skew` | what can go wrong on purpose, [`Fault`]; with a process; with its wall clock |
//! | `proxy`, `proxy_fault` | what can go wrong on the way to a master, [`Proxy`] |
//! | `flow`, `link`, `target`, `door`, `pump`, `timer` | what a proxy is made of |
//! | `containers`, `compose` | masters in containers, [`Containers`]; bringing them up and taking them away |
//! | `breakable` | what processes and containers have in common, [`Breakable`] |
//! | `switchboard` | proxies in a process of their own, [`Switchboard`] |
//! | `status` | how a master is, [`MasterStatus`] |
//! | `standing`, `record` | a bed that outlives the command that started it, [`StandingBed`] |
//!
//! Linux only: it reads `/proc` to know a process from a later one with the same pid.

mod condition;
mod error;

mod binary;
mod port;

mod folder;
mod process;

mod wire;

mod local;
mod look;

mod bed;

mod fault;

mod local_fault;

mod skew;

mod timer;

mod flow;

mod link;

mod pump;

mod door;
mod target;

mod proxy;

mod proxy_fault;

mod switchboard;

mod status;

mod containers;

mod compose;

mod breakable;

mod record;

mod standing;

pub use bed::{Testbed, TestbedBuilder};
pub use binary::ServerBinary;
pub use breakable::Breakable;
pub use condition::{Condition, Data};
pub use containers::Containers;
pub use error::TestbedError;
pub use fault::{Fault, Injected, Outcome, UnknownFault};
pub use flow::{Direction, Flow, Traffic};
pub use local::LocalMaster;
pub use proxy::Proxy;
pub use standing::{Down, StandingBed};
pub use status::{MasterStatus, Report};
pub use switchboard::Switchboard;
pub use wire::{Reply, Wire};
