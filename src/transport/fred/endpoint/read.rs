//! Reads a URL.
//!
//! By hand: fred's own reading takes any scheme for plain redis, `rediss://` without TLS too, and drops a user
//! without a password; the `url` crate neither lowercases the hosts of these schemes nor decodes passwords, and
//! silently takes tabs out of them.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use super::{Address, BadUrl, Endpoint, Login};

const DEFAULT_PORT: u16 = 6379;

impl Endpoint {
    /// Reads one URL.
    pub(crate) fn parse(url: &str) -> Result<Self, BadUrl> {
        let url = url.trim();
        if url.is_empty() {
            return Err(BadUrl::Empty);
        }
        if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(BadUrl::Blank);
        }
        let (scheme, rest) = Scheme::split(url)?;

        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // A raw '/', '?' or '#' in a password ends the authority early: what follows is then a secret.
        if tail.contains('@') {
            return Err(BadUrl::LateAt);
        }
        if tail.contains('#') {
            return Err(BadUrl::Fragment);
        }
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(Login::parse(login)?), host),
            None => (None, authority),
        };
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));

        let (address, db) = match scheme {
            Scheme::Socket => (socket(host, path)?, socket_db(query)?),
            Scheme::Plain | Scheme::Tls => {
                if let Some(parameter) = parameters(query).next() {
                    return Err(unknown_parameter(parameter));
                }
                (tcp(host)?, path_db(path)?)
            }
        };
        Ok(Self { address, tls: matches!(scheme, Scheme::Tls), login, db })
    }
}

enum Scheme {
    Plain,
    Tls,
    Socket,
}

impl Scheme {
    fn split(url: &str) -> Result<(Self, &str), BadUrl> {
        let is_scheme = |text: &str| {
            text.len() <= 24
                && text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        };
        let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return Err(BadUrl::NoScheme { suggestion: suggestion(url) });
        };
        let scheme = scheme.to_ascii_lowercase();
        let kind = match scheme.as_str() {
            "redis" | "valkey" => Self::Plain,
            "rediss" | "valkeys" if cfg!(feature = "tls") => Self::Tls,
            "rediss" | "valkeys" => return Err(BadUrl::TlsNotBuilt { scheme }),
            "redis+unix" | "valkey+unix" => Self::Socket,
            "unix" | "redis+socket" | "redis-socket" | "valkey-socket" => {
                return Err(BadUrl::SocketScheme { scheme });
            }
            other if other.ends_with("-sentinel") || other.ends_with("-cluster") => {
                return Err(BadUrl::NotOneMaster { scheme });
            }
            _ => return Err(BadUrl::UnknownScheme { scheme }),
        };
        Ok((kind, rest))
    }
}

impl Login {
    fn parse(text: &str) -> Result<Self, BadUrl> {
        if text.is_empty() || text == ":" {
            return Err(BadUrl::EmptyLogin);
        }
        let (user, password) = text.split_once(':').ok_or(BadUrl::OneWordLogin)?;
        // A password alone is the default user's, for every client.
        let user = if user.is_empty() { "default" } else { user };
        Ok(Self { user: decode(user, "user")?, password: decode(password, "password")? })
    }
}

fn tcp(text: &str) -> Result<Address, BadUrl> {
    if text.is_empty() || text.starts_with(':') && text.matches(':').count() == 1 {
        return Err(BadUrl::NoHost);
    }
    let (host, port) =
        if let Some((host, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let host: Ipv6Addr = host.parse().map_err(|_| BadUrl::Ipv6)?;
            let port = if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(BadUrl::Ipv6)?) };
            (host.to_string(), port)
        } else {
            if text.contains(['[', ']']) || text.matches(':').count() > 1 {
                return Err(BadUrl::Ipv6);
            }
            let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
            if !is_name(host) {
                return Err(BadUrl::Host);
            }
            (host.to_ascii_lowercase(), port)
        };
    Ok(Address::Tcp { host, port: port.map_or(Ok(DEFAULT_PORT), tcp_port)? })
}

/// A DNS name or IPv4 address; without regard to what IDNA allows, which is to be written as `xn--…`.
fn is_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.len() <= 253
        && host.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

fn tcp_port(text: &str) -> Result<u16, BadUrl> {
    // Longer numbers are sooner a password than a port, and not shown.
    let port: u32 = number(text).filter(|_| text.len() <= 5).ok_or(BadUrl::Port)?;
    u16::try_from(port).ok().filter(|port| *port > 0).ok_or(BadUrl::PortRange { port })
}

fn socket(host: &str, path: &str) -> Result<Address, BadUrl> {
    // Clients that insist on a host are given this one.
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err(BadUrl::SocketHost);
    }
    let path = decode(path, "path")?;
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        return Err(BadUrl::SocketPath);
    }
    Ok(Address::Socket(path.into()))
}

fn path_db(path: &str) -> Result<Option<u8>, BadUrl> {
    match path.strip_prefix('/').unwrap_or(path) {
        "" => Ok(None),
        db => number(db).map(Some).ok_or(BadUrl::Path),
    }
}

fn socket_db(query: &str) -> Result<Option<u8>, BadUrl> {
    let mut db = None;
    for parameter in parameters(query) {
        let Some(value) = parameter.strip_prefix("db=") else { return Err(unknown_parameter(parameter)) };
        if db.is_some() {
            return Err(BadUrl::Db);
        }
        db = Some(number(value).ok_or(BadUrl::Db)?);
    }
    Ok(db)
}

fn parameters(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|parameter| !parameter.is_empty())
}

fn unknown_parameter(parameter: &str) -> BadUrl {
    // Only a name in front of a '=' is shown, and only if it looks like one.
    let name = parameter
        .split_once('=')
        .map(|(name, _)| name)
        .filter(|name| {
            name.len() <= 32 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        })
        .unwrap_or("?");
    BadUrl::Parameter { name: name.to_owned() }
}

/// `FromStr` alone would take `+1`.
fn number<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// How an entry without a scheme is spelled right; repeats it only if it is a host and a port for certain.
fn suggestion(entry: &str) -> String {
    let is_address = entry.eq_ignore_ascii_case("localhost")
        || entry.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4())
        || entry.parse::<SocketAddr>().is_ok()
        || entry.split_once(':').is_some_and(|(host, port)| is_name(host) && tcp_port(port).is_ok());
    if is_address {
        format!("redis://{entry}")
    } else if entry.starts_with('/') {
        "redis+unix:///path/to.sock".to_owned()
    } else if let Ok(address) = entry.parse::<Ipv6Addr>() {
        format!("redis://[{address}]:{DEFAULT_PORT}")
    } else if entry.contains('@') {
        format!("redis://user:password@host:{DEFAULT_PORT}")
    } else {
        format!("redis://host:{DEFAULT_PORT}")
    }
}

fn decode(text: &str, part: &'static str) -> Result<String, BadUrl> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit =
            || rest.next().and_then(|b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(BadUrl::Percent { part }) };
        bytes.push(high << 4 | low);
    }
    String::from_utf8(bytes).map_err(|_| BadUrl::Percent { part })
}
