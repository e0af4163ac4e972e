//! quorlock

pub mod protocol;

#[cfg(feature = "client")]
pub mod transport;

#[cfg(feature = "fred")]
pub use transport::fred::endpoint::{BadUrl, EndpointError};
#[cfg(feature = "tls")]
pub use transport::fred::tls::{Tls, TlsError};
