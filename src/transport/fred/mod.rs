//! Real masters, through fred.

// Until the supervisor builds its links from them.
#[allow(dead_code)]
pub(crate) mod endpoint;
#[cfg(feature = "tls")]
#[allow(dead_code)]
pub(crate) mod tls;

#[cfg(test)]
mod handshake;
