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
mod contact;
mod counters;
pub(crate) mod endpoint;
mod floor;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod info;
mod inspection;
mod link;
mod listing;
mod outbox;
mod overhear;
mod post;
mod probe;
mod register;
mod supervisor;
mod survey;
#[cfg(feature = "tls")]
pub(crate) mod tls;
mod tracking;
mod transport;
mod wiretap;

#[cfg(test)]
mod handshake;

pub use admission::Admission;
pub(crate) use connect::Dialer;
pub use contact::{Contact, Place};
pub(crate) use floor::set as set_fence_floor;
pub use floor::{FenceFloor, FenceFloorError};
pub use inspection::{Abstention, Finding, Inspection, KeyState, Sighting};
pub use listing::Listing;
pub(crate) use listing::list;
pub use overhear::Overheard;
pub(crate) use overhear::overhear;
pub use probe::InitError;
pub(crate) use probe::{init, inspect};
pub(crate) use supervisor::Purpose;
pub(crate) use survey::survey;
pub use survey::{MasterFacts, Survey, SurveyedMaster, Untold, WallClock};
pub(crate) use transport::{FredTransport, Settled};
