//! Where a proxy leads.

use std::io;

/// The port of a master whose URL names none.
const USUAL_PORT: u16 = 6379;

/// A URL around its `HOST:PORT`.
pub(super) struct Target {
    pub(super) before: String,
    host: String,
    port: u16,
    pub(super) after: String,
}

impl Target {
    pub(super) fn parse(target: &str) -> io::Result<Self> {
        let (scheme, rest) = match target.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => ("redis://".into(), target),
        };
        let (authority, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, place) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        // What follows the last colon, unless that lies in an IPv6 address.
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (place, Some(USUAL_PORT)),
        };
        match port {
            Some(port) if !host.is_empty() => {
                Ok(Self { before: scheme + user, host: host.into(), port, after: after.into() })
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the target is no URL with a host and a port",
            )),
        }
    }

    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_in_a_url_is_found_and_the_rest_kept() {
        for (target, before, authority, after) in [
            ("127.0.0.1:7001", "redis://", "127.0.0.1:7001", ""),
            ("redis://m1", "redis://", "m1:6379", ""),
            ("rediss://ann:p@w:x@m1:7/3?a=b", "rediss://ann:p@w:x@", "m1:7", "/3?a=b"),
            ("valkey://[::1]", "valkey://", "[::1]:6379", ""),
            ("valkey://[::1]:7", "valkey://", "[::1]:7", ""),
        ] {
            let parsed = Target::parse(target).unwrap();
            let found = (parsed.before.as_str(), parsed.authority(), parsed.after.as_str());
            assert_eq!(found, (before, authority.to_owned(), after), "{target}");
        }
        for target in ["", "redis://", "redis://:7", "m1:port", "redis+unix:///tmp/socket"] {
            assert!(Target::parse(target).is_err(), "{target}");
        }
    }
}
