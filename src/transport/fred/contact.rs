//! Where a master is, for other programs: what a line for `redis-cli` is made of.

use std::path::PathBuf;

/// How a master is reached, without its login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Its address.
    pub place: Place,
    /// Whether by TLS.
    pub tls: bool,
    /// Which of its databases.
    pub database: u8,
    /// Whether a user or a password goes with it.
    pub logs_in: bool,
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A host, an IPv6 address without its brackets, and a port.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix socket.
    Socket(PathBuf),
}
