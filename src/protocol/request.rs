//! What is asked for: a resource and a ttl that is able to win.

use std::fmt;
use std::time::Duration;

use super::mutant::{self, Mutant};
use super::policy::Policy;

/// The longest resource, in bytes. A key of this size costs every claim five times its length on the wire.
pub const LONGEST_RESOURCE: usize = 16 * 1024 * 1024;

/// The most resources of one lock: a master does all of them in one call, and must not be held for a millisecond by it.
pub const MOST_RESOURCES: usize = 64;

/// Keys with this beginning belong to quorlock itself.
pub const RESERVED_PREFIX: &[u8] = b"quorlock:";

/// Refuses a resource that cannot be a lock.
///
/// # Errors
///
/// If it is empty, longer than [`LONGEST_RESOURCE`], or begins with [`RESERVED_PREFIX`].
pub fn check_resource(resource: &[u8]) -> Result<(), RequestError> {
    if resource.is_empty() {
        Err(RequestError::EmptyResource)
    } else if resource.len() > LONGEST_RESOURCE {
        Err(RequestError::ResourceTooLong { bytes: resource.len() })
    } else if resource.starts_with(RESERVED_PREFIX) {
        Err(RequestError::ReservedResource { resource: printable(resource) })
    } else {
        Ok(())
    }
}

/// Refuses resources that cannot be locked together.
///
/// # Errors
///
/// If there is none, or more than [`MOST_RESOURCES`], if one of them cannot be a lock by itself, or if all together are
/// longer than [`LONGEST_RESOURCE`].
pub fn check_resources(resources: &[impl AsRef<[u8]>]) -> Result<(), RequestError> {
    match resources.len() {
        0 => return Err(RequestError::NoResources),
        1..=MOST_RESOURCES => {}
        resources => return Err(RequestError::TooManyResources { resources }),
    }
    resources.iter().try_for_each(|resource| check_resource(resource.as_ref()))?;
    let bytes = resources.iter().map(|resource| resource.as_ref().len()).sum();
    if bytes > LONGEST_RESOURCE { Err(RequestError::ResourceTooLong { bytes }) } else { Ok(()) }
}

/// A time to live in whole milliseconds, with the drift allowance that goes with it.
///
/// The same number goes to the masters as `PX` and into the deadline (hazard H8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ttl {
    millis: u32,
    drift: Duration,
}

impl Ttl {
    /// `ttl` cut to whole milliseconds, if it leaves a validity longer than one master's time limit.
    ///
    /// # Errors
    ///
    /// If ttl − drift is not above the master timeout, or the ttl is above the longest of the fleet.
    pub fn new(ttl: Duration, policy: &Policy) -> Result<Self, RequestError> {
        let whole = Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        if whole > policy.max_ttl() {
            return Err(RequestError::TtlTooLong { ttl, max_ttl: policy.max_ttl() });
        }
        let drift = policy.drift(whole);
        if whole.saturating_sub(drift) <= policy.master_timeout() {
            return Err(RequestError::TtlTooShort { ttl, drift, master_timeout: policy.master_timeout() });
        }
        let millis = u32::try_from(whole.as_millis())
            .map_err(|_| RequestError::TtlTooLong { ttl, max_ttl: policy.max_ttl() })?;
        Ok(Self { millis, drift })
    }

    /// Milliseconds, as sent to the masters.
    #[must_use]
    pub const fn as_millis(self) -> u32 {
        self.millis
    }

    /// The whole ttl.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.millis as u64)
    }

    /// ttl − drift: how long after the send stamp a vote counts.
    #[must_use]
    pub fn validity(self) -> Duration {
        let drift = if mutant::on(Mutant::DriftDropped) { Duration::ZERO } else { self.drift };
        self.as_duration().saturating_sub(drift)
    }

    /// ttl + drift: how long after it was set a key may stay, as this machine's clock counts.
    #[must_use]
    pub fn longest_stay(self) -> Duration {
        self.as_duration() + self.drift
    }

    /// After how long a held lease is renewed: a third of the ttl leaves two more tries.
    #[must_use]
    pub const fn renewal_period(self) -> Duration {
        Duration::from_micros(self.millis as u64 * 1000 / 3)
    }
}

/// A request refused before any command was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The list of resources is empty.
    NoResources,
    /// There are more than [`MOST_RESOURCES`].
    TooManyResources {
        /// How many.
        resources: usize,
    },
    /// The resource has no bytes.
    EmptyResource,
    /// The resource, or all of a list together, is longer than [`LONGEST_RESOURCE`].
    ResourceTooLong {
        /// The length.
        bytes: usize,
    },
    /// The resource begins with [`RESERVED_PREFIX`].
    ReservedResource {
        /// Its printable form.
        resource: String,
    },
    /// The ttl would leave no useful validity.
    TtlTooShort {
        /// The ttl asked for.
        ttl: Duration,
        /// The drift allowance of that ttl.
        drift: Duration,
        /// How long one master may take to answer.
        master_timeout: Duration,
    },
    /// The ttl is above the longest of the fleet.
    TtlTooLong {
        /// The ttl asked for.
        ttl: Duration,
        /// The longest of the fleet.
        max_ttl: Duration,
    },
    /// The label cannot be part of a holder id.
    Label {
        /// Its printable form.
        label: String,
    },
    /// A fencing token was asked for, and the client lets masters vote that may have forgotten.
    NoFencing,
    /// The holder id handed in is none.
    Holder {
        /// Its printable form.
        holder: String,
    },
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResources => write!(f, "the list of resources is empty: name what is to be locked"),
            Self::TooManyResources { resources } => write!(
                f,
                "{resources} resources are too many for one lock, {MOST_RESOURCES} at most: lock something that stands \
                 for all of them"
            ),
            Self::EmptyResource => write!(f, "the resource is empty: name what is to be locked"),
            Self::ResourceTooLong { bytes } => {
                write!(
                    f,
                    "resources of {bytes} bytes are too long for a lock, {LONGEST_RESOURCE} at most: lock a hash"
                )
            }
            Self::ReservedResource { resource } => write!(
                f,
                "the resource {resource:?} begins with \"quorlock:\", where quorlock keeps its own keys: choose another name"
            ),
            Self::TtlTooShort { ttl, drift, master_timeout } => write!(
                f,
                "a ttl of {ttl:?} less {drift:?} drift leaves no more than the {master_timeout:?} one master may take: \
                 choose a longer ttl, or a shorter master timeout"
            ),
            Self::TtlTooLong { ttl, max_ttl } => write!(
                f,
                "a ttl of {ttl:?} is above the fleet's longest, {max_ttl:?}: choose a shorter ttl (renewal keeps the lock \
                 as long as the work runs), or raise max_ttl for every client"
            ),
            Self::Label { label } => {
                write!(
                    f,
                    "the label {label:?} cannot sign a key: use 1 to 100 printable ASCII characters without '|' and spaces"
                )
            }
            Self::NoFencing => write!(
                f,
                "no fencing token can be had with admission off: a master that restarts empty would count from zero; \
                 connect with Admission::Quarantine"
            ),
            Self::Holder { holder } => {
                write!(
                    f,
                    "{holder:?} is no holder id: give the one that acquire printed, like \"web-3:1842/…\""
                )
            }
        }
    }
}

impl std::error::Error for RequestError {}

/// Bytes as a person may read them: control and non-ASCII bytes escaped, cut after 64.
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(64)];
    let mut text = shown.escape_ascii().to_string();
    if shown.len() < bytes.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_bytes() {
        let megabyte = vec![b'x'; 1024 * 1024];
        for good in
            [b"a".as_slice(), b"with space", &[0], &[0, 0xff, b'\r', b'\n', 0x80], &megabyte, b"quorlock"]
        {
            assert_eq!(check_resource(good), Ok(())); // case B78
        }
        assert_eq!(check_resource(b""), Err(RequestError::EmptyResource));
        assert!(check_resource(&vec![0; LONGEST_RESOURCE + 1]).is_err());
        let half = vec![1; LONGEST_RESOURCE / 2];
        assert_eq!(check_resources(&[half.clone(), half.clone()]), Ok(()));
        let bytes = LONGEST_RESOURCE + 1;
        assert_eq!(
            check_resources(&[half.clone(), half, vec![2]]),
            Err(RequestError::ResourceTooLong { bytes })
        );
        assert!(check_resource(b"quorlock:admitted").is_err());
        assert_eq!(printable(b"a\r\n\xff"), r"a\r\n\xff");
        assert_eq!(printable(&megabyte).chars().count(), 65);
    }

    #[test]
    fn a_ttl_that_cannot_win_is_refused_with_its_numbers() {
        let policy = Policy::new();
        let ttl = |micros| Ttl::new(Duration::from_micros(micros), &policy);
        for hopeless in [0, 1, 999, 1_500, 50_000, 507_000] {
            assert!(matches!(ttl(hopeless), Err(RequestError::TtlTooShort { .. })), "{hopeless} µs"); // cases B12, B74
        }
        let message = ttl(50_000).map_err(|error| error.to_string()).unwrap_err();
        assert!(
            message.contains("50ms") && message.contains("3ms") && message.contains("500ms"),
            "{message}"
        );
        assert_eq!(ttl(600_900).map(Ttl::as_millis), Ok(600));
        assert_eq!(ttl(60_000_000).map(Ttl::validity), Ok(Duration::from_millis(59_398)));
        assert!(matches!(ttl(60_001_000), Err(RequestError::TtlTooLong { .. })));
        assert!(matches!(Ttl::new(Duration::MAX, &policy), Err(RequestError::TtlTooLong { .. }))); // case B76
    }
}
