//! The value that signs our key.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::protocol::request::{RequestError, printable};

/// A random id, made anew for every claim, with a label in front so that `GET` tells a person who holds the lock:
/// `web-3:1842/0f2c…`. It is no secret and no fencing token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HolderId(Bytes);

impl HolderId {
    pub(crate) fn new(label: &Label, id: Uuid) -> Self {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        let id = id.hyphenated().encode_lower(&mut text);
        let mut bytes = BytesMut::with_capacity(label.0.len() + 1 + id.len());
        bytes.put_slice(label.0.as_bytes());
        bytes.put_u8(b'/');
        bytes.put_slice(id.as_bytes());
        Self(bytes.freeze())
    }

    /// An id that another process printed.
    ///
    /// # Errors
    ///
    /// If it is empty, longer than 1 KiB, or has a `|`, which separates a fencing token from it.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        if text.is_empty() || text.len() > 1024 || text.contains('|') {
            return Err(RequestError::Holder { holder: printable(text.as_bytes()) });
        }
        Ok(Self(Bytes::copy_from_slice(text.as_bytes())))
    }

    /// The bytes as they stand on the masters.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.iter().copied() {
            f.write_char(if byte.is_ascii_graphic() { char::from(byte) } else { '?' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderId({self})")
    }
}

/// The readable part of a holder id.
#[derive(Clone, Debug)]
pub(crate) struct Label(Arc<str>);

impl Label {
    pub(crate) fn new(label: &str) -> Result<Self, RequestError> {
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'|';
        if label.is_empty() || label.len() > 100 || !label.bytes().all(fits) {
            return Err(RequestError::Label { label: printable(label.as_bytes()) });
        }
        Ok(Self(label.into()))
    }

    /// `host:pid`.
    pub(crate) fn of_this_process() -> Self {
        let uname = rustix::system::uname();
        let host: String = uname
            .nodename()
            .to_string_lossy()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c))
            .take(80)
            .collect();
        Self(format!("{host}:{}", std::process::id()).into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_tells_who_and_is_never_the_same() {
        let label = Label::new("web-3:1842").expect("good label");
        let ids: std::collections::HashSet<_> =
            (0..500).map(|_| HolderId::new(&label, Uuid::new_v4()).to_string()).collect();
        assert_eq!(ids.len(), 500); // case B01
        assert!(ids.iter().all(|id| id.starts_with("web-3:1842/") && id.len() == 47));
        assert!(HolderId::new(&Label::of_this_process(), Uuid::nil()).to_string().contains(':'));
    }

    #[test]
    fn labels_that_cannot_sign_are_refused() {
        for bad in ["", "a|b", "a b", "a\nb", "é", &"x".repeat(101)] {
            assert!(Label::new(bad).is_err(), "{bad:?}");
        }
        assert!(HolderId::parse("").is_err() && HolderId::parse("a|1").is_err());
        assert!(HolderId::parse("any thing else").is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

        #[test]
        fn an_id_is_read_as_it_stands_and_shown_in_one_line(text in "(?s).{0,40}") {
            let read = HolderId::parse(&text);
            prop_assert_eq!(read.is_ok(), !text.is_empty() && !text.contains('|'));
            if let Ok(id) = read {
                prop_assert_eq!(id.as_bytes(), text.as_bytes());
                prop_assert!(id.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }

        #[test]
        fn what_signs_is_read_again(label in "(?s).{0,110}", id: u128) {
            if let Ok(label) = Label::new(&label) {
                let id = HolderId::new(&label, Uuid::from_u128(id));
                prop_assert_eq!(HolderId::parse(&id.to_string()), Ok(id));
            }
        }
    }
}
