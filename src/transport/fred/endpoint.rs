//! Where a master is and how to log in there: read from a URL, checked, without showing its secrets.

use std::{
    fmt::{self, Write as _},
    path::PathBuf,
};

use ::fred::types::{
    RespVersion,
    config::{Config, Server, ServerConfig},
};

use super::contact::{Contact, Place};
use crate::protocol::quorum::MOST_MASTERS;

mod error;
mod read;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod strange;

pub use error::{BadUrl, EndpointError};

/// One master's address and login.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    address: Address,
    tls: bool,
    login: Option<Login>,
    db: Option<u8>,
}

#[derive(Clone, PartialEq, Eq)]
enum Address {
    /// The host in lower case, an IPv6 address without its brackets.
    Tcp {
        host: String,
        port: u16,
    },
    Socket(PathBuf),
}

#[derive(Clone, PartialEq, Eq)]
struct Login {
    user: String,
    password: String,
}

impl Endpoint {
    /// Reads the whole list. Names in the order given are m1, m2, …
    pub(crate) fn parse_all<U: AsRef<str>>(
        urls: impl IntoIterator<Item = U>,
    ) -> Result<Vec<Self>, EndpointError> {
        let mut endpoints: Vec<Self> = Vec::new();
        let mut count = 0;
        for url in urls {
            count += 1;
            if count > MOST_MASTERS {
                continue;
            }
            let endpoint = Self::parse(url.as_ref())
                .map_err(|problem| EndpointError::Bad { position: count, problem })?;
            if let Some(first) = endpoints.iter().position(|known| known.same_server_as(&endpoint)) {
                let address = endpoint.to_string();
                return Err(EndpointError::Duplicate { first: first + 1, second: count, address });
            }
            endpoints.push(endpoint);
        }
        match count {
            0 => Err(EndpointError::NoMasters),
            count if count > MOST_MASTERS => Err(EndpointError::TooMany { count }),
            _ => Ok(endpoints),
        }
    }

    /// Whether both name one server, by their spelling. Two names of one server show only in its `run_id`.
    pub(crate) fn same_server_as(&self, other: &Self) -> bool {
        match (&self.address, &other.address) {
            (Address::Tcp { host: a, port: p }, Address::Tcp { host: b, port: q }) => {
                p == q && a.trim_end_matches('.') == b.trim_end_matches('.')
            }
            // Paths compare by their components: `//` and `/./` make no difference.
            (Address::Socket(a), Address::Socket(b)) => a == b,
            _ => false,
        }
    }

    /// Takes a login unless the URL has one.
    pub(crate) fn log_in_as(&mut self, user: &str, password: &str) {
        let login = || Login { user: user.to_owned(), password: password.to_owned() };
        self.login.get_or_insert_with(login);
    }

    /// For other programs.
    pub(super) fn contact(&self) -> Contact {
        let place = match &self.address {
            Address::Tcp { host, port } => Place::Tcp { host: host.clone(), port: *port },
            Address::Socket(path) => Place::Socket(path.clone()),
        };
        Contact { place, tls: self.tls, database: self.db.unwrap_or(0), logs_in: self.login.is_some() }
    }

    /// User and password: not to be shown.
    pub(super) fn login(&self) -> Option<(&str, &str)> {
        self.login.as_ref().map(|login| (login.user.as_str(), login.password.as_str()))
    }

    /// Whether the URL asks for TLS.
    #[cfg(any(feature = "tls", test))]
    pub(crate) fn uses_tls(&self) -> bool {
        self.tls
    }

    /// What fred needs to connect. Never log it: fred's `Debug` of a `Config` prints the password.
    pub(crate) fn to_fred(&self, encryption: &Encryption) -> Result<Config, NotPrepared> {
        let server = match &self.address {
            Address::Tcp { host, port } => {
                ServerConfig::Centralized { server: Server::new(host.as_str(), *port) }
            }
            Address::Socket(path) => ServerConfig::Unix { path: path.clone() },
        };
        let mut config = Config {
            fail_fast: true,
            version: RespVersion::RESP3,
            server,
            username: self.login.as_ref().map(|login| hello_word(&login.user)),
            password: self.login.as_ref().map(|login| hello_word(&login.password)),
            database: self.db,
            ..Config::default()
        };
        if self.tls {
            encryption.apply(&mut config)?;
        }
        Ok(config)
    }
}

/// A user or password as fred 10.1 must be given it under RESP3. It writes `HELLO 3 AUTH user password` as an inline
/// command, words as they are: an empty one vanishes, a space or a quote breaks the command, and a line end starts
/// another command. The masters take a quoted word in such a line, so whatever is not plain goes quoted.
fn hello_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for byte in text.bytes() {
        if plain(byte) {
            quoted.push(char::from(byte));
        } else {
            let _ = write!(quoted, "\\x{byte:02x}");
        }
    }
    quoted.push('"');
    quoted
}

/// What masters behind TLS are reached by: prepared once for the whole list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encryption {
    #[cfg(feature = "tls")]
    tls: Option<::fred::types::config::TlsConfig>,
}

/// Going on without TLS would send the password in clear.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the master wants TLS, but none was prepared for it")]
pub(crate) struct NotPrepared;

impl Encryption {
    /// Loads the certificates if any master needs them. Options that no master uses are an error: their
    /// owner believes to be encrypted.
    #[cfg(feature = "tls")]
    pub(crate) fn prepare(
        endpoints: &[Endpoint],
        options: Option<&super::tls::Tls>,
    ) -> Result<Self, super::tls::TlsError> {
        let wanted = endpoints.iter().any(Endpoint::uses_tls);
        let tls = match options {
            Some(_) if !wanted => return Err(super::tls::TlsError::Unused),
            Some(options) => Some(options.load()?),
            None if wanted => Some(super::tls::Tls::new().load()?),
            None => None,
        };
        Ok(Self { tls })
    }

    #[cfg(feature = "tls")]
    pub(super) fn connector(&self) -> Option<&::fred::types::config::TlsConnector> {
        self.tls.as_ref().map(|tls| &tls.connector)
    }

    #[cfg_attr(not(feature = "tls"), allow(clippy::unused_self))]
    fn apply(&self, config: &mut Config) -> Result<(), NotPrepared> {
        #[cfg(feature = "tls")]
        if let (Some(tls), ServerConfig::Centralized { server }) = (&self.tls, &mut config.server) {
            config.tls = Some(tls.clone());
            // The certificate must carry the name the user wrote, whatever it resolves to.
            server.tls_server_name = Some(server.host.clone());
            return Ok(());
        }
        let _ = config;
        Err(NotPrepared)
    }
}

/// The short name that errors and reports use.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Endpoint");
        match &self.address {
            Address::Tcp { host, port } => {
                debug.field("scheme", if self.tls { &"rediss" } else { &"redis" });
                debug.field("host", host).field("port", port)
            }
            Address::Socket(path) => debug.field("scheme", &"redis+unix").field("path", path),
        };
        debug.field("db", &self.db);
        // The user too: whoever wrote `redis://secret:@host` took the one for the other.
        if self.login.is_some() {
            debug.field("login", &format_args!("<hidden>"));
        }
        debug.finish()
    }
}
