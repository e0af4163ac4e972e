//! What may be wrong with a list of masters.
//!
//! Nothing in here is cut out of a URL unless it provably is no part of a password: a malformed URL has its
//! password where a host, a port or a query should be. So the values are the position, a scheme, a number that
//! fits where it stands, a parameter's name.

use thiserror::Error;

use crate::protocol::quorum::MOST_MASTERS;

/// The list of masters cannot be used. Masters are counted from 1, as `m1`, `m2`, in the order given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The list is empty.
    #[error("no masters given: name each by its URL, e.g. redis://m1.example:6379 (five are usual)")]
    NoMasters,
    /// The list is longer than a quorum can sensibly be.
    #[error("{count} masters given, at most {MOST_MASTERS} are allowed: five are usual")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// Two entries name one server, which would have two votes.
    #[error(
        "m{first} and m{second} are the same master, {address} (another user, db or scheme does not make it another): \
         a master has one vote, so list it once"
    )]
    Duplicate {
        /// Position of the first of the two.
        first: usize,
        /// Position of the second.
        second: usize,
        /// Host and port, or the socket's path.
        address: String,
    },
    /// One entry is no URL of a master.
    #[error("m{position}: {problem}")]
    Bad {
        /// Position of the entry.
        position: usize,
        /// What is wrong with it.
        problem: BadUrl,
    },
}

/// Why a URL does not name a master. Never carries the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadUrl {
    /// Nothing there: a trailing comma, an unset variable.
    #[error("the entry is empty: remove the stray comma, or write redis://host:6379")]
    Empty,
    /// White space or a control character inside.
    #[error("the URL has a space or a control character in it: write one URL per entry, a space as %20")]
    Blank,
    /// No `scheme://` in front.
    #[error("the URL has no scheme: write {suggestion}")]
    NoScheme {
        /// How the entry should probably be spelled.
        suggestion: String,
    },
    /// A scheme of something else.
    #[error(
        "the scheme `{scheme}` is unknown: use redis, valkey, rediss, valkeys (TLS), redis+unix or valkey+unix"
    )]
    UnknownScheme {
        /// The scheme as given.
        scheme: String,
    },
    /// A Unix socket under a scheme that other clients use.
    #[error("the scheme `{scheme}` is not read here: write redis+unix:///path/to.sock")]
    SocketScheme {
        /// The scheme as given.
        scheme: String,
    },
    /// A replicated or clustered deployment instead of one master.
    #[error(
        "`{scheme}` names a deployment that fails over, and a failover forgets locks: Redlock needs independent \
         masters; list each of them by itself, as redis://host:port"
    )]
    NotOneMaster {
        /// The scheme as given.
        scheme: String,
    },
    /// TLS is asked for but not built in. Going on in plain text would send the password in clear.
    #[error("`{scheme}` needs TLS, which this build lacks: build with `--features tls`")]
    TlsNotBuilt {
        /// The scheme as given.
        scheme: String,
    },
    /// An `@` where only a password cut short by `/`, `?` or `#` leaves one.
    #[error(
        "there is an '@' behind a '/', '?' or '#': percent-encode them in a user, a password or a path \
         ('/' as %2F, '?' as %3F, '#' as %23, '@' as %40)"
    )]
    LateAt,
    /// One word before the `@`. Read as a user it would log in as nobody.
    #[error(
        "there is one word before the '@', which could be a user or a password: write redis://:password@host or \
         redis://user:password@host"
    )]
    OneWordLogin,
    /// Neither user nor password before the `@`.
    #[error(
        "there is neither a user nor a password before the '@': remove the '@', or write redis://:password@host"
    )]
    EmptyLogin,
    /// A `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error("the {part} is not well percent-encoded: '%' itself is %25, and what is encoded must be UTF-8")]
    Percent {
        /// Which part of the URL.
        part: &'static str,
    },
    /// No host.
    #[error("the URL names no host: write redis://host:6379")]
    NoHost,
    /// A host that is neither a name nor an address.
    #[error(
        "the host is neither a DNS name nor an IP address: letters, digits, '-', '_' and '.' make a name \
         (percent-encode a password's special characters)"
    )]
    Host,
    /// An IPv6 address without brackets, or not one inside them.
    #[error(
        "the host has more than one ':' or a stray bracket: an IPv6 address is written redis://[::1]:6379"
    )]
    Ipv6,
    /// A port that is no number. Not shown: in `user:password` without `@host` it is the password.
    #[error(
        "the port is not a number from 1 to 65535: write redis://host:6379 (with a login, redis://user:password@host, \
         and ',', '/', '?', '#' in the password percent-encoded)"
    )]
    Port,
    /// A number that is no port.
    #[error("port {port} does not exist: use 1 to 65535 (6379 is the default)")]
    PortRange {
        /// The number as given.
        port: u32,
    },
    /// A path that is no database.
    #[error(
        "the path is not a database number: write redis://host:6379/N with N from 0 to 255, or leave it out"
    )]
    Path,
    /// A database that is no number from 0 to 255.
    #[error("`db` is not a number from 0 to 255")]
    Db,
    /// A query parameter that means nothing here. Other clients ignore it silently.
    #[error(
        "the query parameter `{name}` is not known: remove it (a database is written redis://host/N, or ?db=N \
         behind a socket's path)"
    )]
    Parameter {
        /// Its name, or `?` where that does not look like a name.
        name: String,
    },
    /// A `#…` at the end.
    #[error("the URL has a '#' part, which means nothing here: remove it, or write '#' in a password as %23")]
    Fragment,
    /// A socket with a host.
    #[error("a Unix socket has no host: write three slashes, redis+unix:///path/to.sock")]
    SocketHost,
    /// A socket without a path.
    #[error("the URL names no socket: write redis+unix:///path/to.sock")]
    SocketPath,
}
