//! What one lock covers.

use std::collections::BTreeSet;
use std::fmt;
use std::slice;
use std::sync::Arc;

use bytes::Bytes;

use crate::protocol::request::{RequestError, check_resources, printable};

/// So many are named where a person reads; the others are counted.
const SHOWN: usize = 8;

/// One resource, or several that are locked all or none. Cheap to clone.
///
/// Each one's bytes are a key of its own and nothing is joined: `ab` and `c` are not `a` and `bc`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resources(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    One(Bytes),
    /// None, or at least two.
    Several(Arc<[Bytes]>),
}

impl Resources {
    /// One resource.
    #[must_use]
    pub fn one(resource: &[u8]) -> Self {
        Self(Kind::One(Bytes::copy_from_slice(resource)))
    }

    /// All of `resources`, in the order named. One named twice counts once, and a list of one is that one.
    pub fn all<R: AsRef<[u8]>>(resources: impl IntoIterator<Item = R>) -> Self {
        let mut seen = BTreeSet::new();
        let mut keys: Vec<Bytes> = Vec::new();
        for resource in resources {
            let key = Bytes::copy_from_slice(resource.as_ref());
            if seen.insert(key.clone()) {
                keys.push(key);
            }
        }
        match <[Bytes; 1]>::try_from(keys) {
            Ok([key]) => Self(Kind::One(key)),
            Err(keys) => Self(Kind::Several(keys.into())),
        }
    }

    /// Refuses what cannot be a lock.
    ///
    /// # Errors
    ///
    /// As [`check_resources`].
    pub fn check(&self) -> Result<(), RequestError> {
        check_resources(self.keys())
    }

    /// The keys, one a resource, in the order named.
    #[must_use]
    pub fn keys(&self) -> &[Bytes] {
        match &self.0 {
            Kind::One(key) => slice::from_ref(key),
            Kind::Several(keys) => keys,
        }
    }

    /// The one key; `None` if there are several.
    #[must_use]
    pub const fn single(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::One(key) => Some(key),
            Kind::Several(_) => None,
        }
    }

    /// For a field of a log: the bare name of one, the quoted names of several.
    pub(crate) fn field(&self) -> String {
        self.single().map_or_else(|| self.to_string(), |key| printable(key))
    }
}

/// The names in quotes.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys();
        for (nth, key) in keys.iter().take(SHOWN).enumerate() {
            let between = match nth {
                0 => "",
                _ if nth + 1 == keys.len() => " and ",
                _ => ", ",
            };
            write!(f, "{between}{:?}", printable(key))?;
        }
        match keys.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_named_twice_counts_once_and_a_list_of_one_is_that_one() {
        assert_eq!(Resources::all(["a", "b", "a"]), Resources::all(["a", "b"]));
        assert_eq!(Resources::all(["a", "a"]), Resources::one(b"a"));
        assert_eq!(Resources::all(["b", "a"]).keys(), ["b", "a"]);
        assert_ne!(Resources::all(["ab", "c"]), Resources::all(["a", "bc"]));
    }

    #[test]
    fn names_are_read_as_a_sentence() {
        let names = |count: usize| Resources::all((0..count).map(|nth| format!("r{nth}"))).to_string();
        assert_eq!(names(1), r#""r0""#);
        assert_eq!(names(2), r#""r0" and "r1""#);
        assert_eq!(names(3), r#""r0", "r1" and "r2""#);
        assert!(names(8).ends_with(r#""r6" and "r7""#) && names(9).ends_with(r#""r6", "r7" and 1 more"#));
        assert_eq!(Resources::one(b"r").field(), "r");
    }
}
