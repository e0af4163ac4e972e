#![doc = include_str!("../README.md")]
//!
//! # The house
//!
//! | where | what |
//! |---|---|
//! | [`fence`] | for the resource: refuses what comes from a holder that is over |
//! | [`protocol`] | the decisions, as values: no clock, no socket, no task |
//! | [`transport`] | the one seam: what carries a command to a master; real ones, and masters in memory |
//! | [`client`] | tasks, timers and guards around the decisions |
//! | [`testbed`] | five servers on this machine, and faults on them |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(all(feature = "fred", feature = "testbed")), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "client")]
#[macro_use]
mod figures;

pub mod protocol;

pub mod fence;

#[cfg(feature = "client")]
pub mod transport;

#[cfg(feature = "client")]
pub mod client;

#[cfg(feature = "testbed")]
pub mod testbed;

pub use protocol::fencing::FencingToken;
pub use protocol::policy::Policy;

#[cfg(feature = "client")]
pub use client::{
    error::{AcquireError, ConnectError, ExtendError, FenceError, Lost, Refusal, UsingError, Why},
    guard::{Guard, Hold},
    holder::HolderId,
    locker::{CloseReport, Redlock},
    release::Released,
    request::LockRequest,
};

#[cfg(feature = "fred")]
pub use client::builder::Builder;
#[cfg(feature = "fred")]
pub use transport::fred::endpoint::{BadUrl, EndpointError};
#[cfg(feature = "fred")]
pub use transport::fred::{
    Abstention, Admission, Contact, FenceFloor, FenceFloorError, Finding, InitError, Inspection, KeyState,
    Listing, MasterFacts, Overheard, Place, Sighting, Survey, SurveyedMaster, Untold, WallClock,
};

#[cfg(feature = "tls")]
pub use transport::fred::tls::{Tls, TlsError};

/// For the fuzz targets of `tests/fuzz`.
#[cfg(all(fuzzing, feature = "fred"))]
#[doc(hidden)]
pub mod fuzzing {
    use crate::transport::fred::fuzzing;

    /// Any answer a master could give.
    pub fn replies(data: &[u8]) {
        fuzzing::replies(data);
    }

    /// URLs of masters, and what those tell of themselves.
    pub fn urls(data: &[u8]) {
        fuzzing::urls(data);
    }
}
