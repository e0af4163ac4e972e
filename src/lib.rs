//! quorlock

pub mod protocol;

#[cfg(feature = "client")]
pub mod transport;

#[cfg(feature = "client")]
pub mod client;

#[cfg(feature = "testbed")]
pub mod testbed;

#[cfg(feature = "fred")]
pub use client::builder::Builder;
#[cfg(feature = "client")]
pub use client::{
    error::{AcquireError, ConnectError, ExtendError, Lost, Refusal, UsingError, Why},
    guard::{Guard, Hold},
    holder::HolderId,
    locker::{CloseReport, Redlock},
    release::Released,
    request::LockRequest,
};
pub use protocol::policy::Policy;
#[cfg(feature = "fred")]
pub use transport::fred::endpoint::{BadUrl, EndpointError};
#[cfg(feature = "tls")]
pub use transport::fred::tls::{Tls, TlsError};
#[cfg(feature = "fred")]
pub use transport::fred::{Abstention, Admission, Finding, InitError, Inspection, KeyState, Sighting};
