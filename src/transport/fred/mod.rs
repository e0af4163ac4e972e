//! Real masters, through fred.
//!
//! Most of what fred does by itself is unsafe for a lock: it queues while disconnected, resends after a reconnect,
//! and goes on with whatever server answers next. So each TCP connection gets a fred client of its own, without
//! reconnects or retries; an outbox in front of it, drained by one task in order; and a supervisor that connects,
//! checks the master, lets it vote, and starts again when the connection ends.

mod admission;
mod call;
mod classify;
mod connect;
pub(crate) mod endpoint;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod info;
mod link;
mod outbox;
mod post;
mod probe;
mod register;
mod supervisor;
#[cfg(feature = "tls")]
pub(crate) mod tls;
mod tracking;
mod transport;

#[cfg(test)]
mod handshake;

pub use admission::Admission;
pub(crate) use connect::Dialer;
pub use probe::{Abstention, Finding, InitError, Inspection, KeyState, Sighting};
pub(crate) use probe::{init, inspect};
pub(crate) use supervisor::Purpose;
pub(crate) use transport::{FredTransport, Settled};
