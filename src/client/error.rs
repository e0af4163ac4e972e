//! What can go wrong, one type an operation. Texts name the master, the value, and the way out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::attempt::Loss;
use crate::protocol::quorum::QuorumError;
use crate::protocol::request::RequestError;
use crate::protocol::votes::{Fault, Tally, Vote};

/// Why a lock was not acquired. Nothing of the attempt is held; see [`LockRequest::acquire`] for what may be left.
///
/// [`LockRequest::acquire`]: super::request::LockRequest::acquire
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody else holds the lock.
    #[error("busy: {0}")]
    Contended(Refusal),
    /// Too few masters answered, whoever may hold the lock.
    #[error("no quorum: {0}")]
    NoQuorum(Refusal),
    /// Enough masters granted, but so late that no validity was left.
    #[error("too late: {0}")]
    TooLate(Refusal),
    /// The request cannot work. No command was sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
}

impl AcquireError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Contended(_) | Self::NoQuorum(_) | Self::TooLate(_))
    }

    /// Who said what in the last claim, if there was one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Contended(refusal) | Self::NoQuorum(refusal) | Self::TooLate(refusal) => Some(refusal),
            Self::Request(_) | Self::Closed => None,
        }
    }
}

/// A wait that ended without the lock: the votes of its last claim. Whoever waited behind others of the same client and
/// never came to claim has the votes of theirs, or none if a lock of this client was in the way.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// In quotes.
    pub(crate) resources: String,
    pub(crate) several: bool,
    pub(crate) masters: Arc<[String]>,
    pub(crate) tally: Tally,
    pub(crate) claims: u32,
    pub(crate) waited: Duration,
}

impl Refusal {
    /// The votes of the last claim.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How many claims were made: none if this client has the lock itself, or if others of it waited in front.
    #[must_use]
    pub const fn claims(&self) -> u32 {
        self.claims
    }

    /// How long the wait was.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Each master's name and vote; `None` if it did not answer in time.
    pub fn votes(&self) -> impl Iterator<Item = (&str, Option<&Vote>)> {
        self.masters.iter().map(String::as_str).zip(self.tally.iter().map(|(_, vote)| vote))
    }

    /// Each master's name and its answer in words.
    pub fn answers(&self) -> impl Iterator<Item = (&str, String)> {
        self.votes().map(|(master, vote)| {
            let answer = match vote {
                None => "no answer yet".to_owned(),
                Some(Vote::Absent) if self.several => "lacks one of the keys, if not all".to_owned(),
                Some(vote) => vote.to_string(),
            };
            (master, answer)
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quorum = self.tally.quorum();
        write!(
            f,
            "{} granted by {} of {} masters, {} needed ({} held, {} of {} reachable; {} claim{} in {:.1} s)",
            self.resources,
            self.tally.granted().len(),
            quorum.masters(),
            quorum.needed(),
            self.tally.held().len(),
            self.tally.iter().filter(|(_, vote)| vote.is_some_and(is_reachable)).count(),
            quorum.masters(),
            self.claims,
            if self.claims == 1 { "" } else { "s" },
            self.waited.as_secs_f64(),
        )?;
        if self.claims == 0 {
            f.write_str(
                "; its turn never came: this client has the lock itself, or others of it waited in front",
            )?;
        }
        if self.tally.iter().all(|(_, vote)| vote.is_none()) {
            return Ok(());
        }
        self.answers()
            .enumerate()
            .try_for_each(|(nth, (master, answer))| write!(f, "\n  m{} {master}: {answer}", nth + 1))
    }
}

/// Whether the master can be asked, whatever it says.
const fn is_reachable(vote: &Vote) -> bool {
    use Fault::{Broken, Closed, NotConnected, TimedOut};
    !matches!(vote, Vote::Failed(NotConnected(_) | Closed) | Vote::Unknown(TimedOut | Broken(_)))
}

/// The lock is not ours any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock on {resources} is over: {why}")]
pub struct Lost {
    /// In quotes.
    pub(crate) resources: String,
    pub(crate) why: Why,
}

impl Lost {
    /// Why it is over.
    #[must_use]
    pub const fn why(&self) -> Why {
        self.why
    }
}

/// Why a lock is not ours any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Its validity ran out: too few masters confirmed a renewal in time, or nobody renewed it.
    Expired,
    /// Too few masters still had its key: deleted by hand, evicted, or forgotten in a restart.
    Vanished,
    /// The longest hold asked for is over.
    MaxHold,
    /// It was released.
    Released,
}

impl From<Loss> for Why {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Expired => Self::Expired,
            Loss::Vanished => Self::Vanished,
            Loss::MaxHold => Self::MaxHold,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its validity ran out before enough masters confirmed a renewal",
            Self::Vanished => "too few masters still have its key",
            Self::MaxHold => "the longest hold is over",
            Self::Released => "it was released",
        })
    }
}

/// Why there is no fencing token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// The lock is over: its token is somebody else's past.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The lock was taken without [`fenced`](super::request::LockRequest::fenced), or by another process.
    #[error("the lock on {resource:?} came without a fencing token: ask for it with .fenced()")]
    NotFenced {
        /// What is locked, in its printable form.
        resource: String,
    },
}

/// Why a lease was not extended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendError {
    /// The lock is over; extending cannot bring it back.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// Too few masters confirmed. The old deadline stands, and nothing was released.
    #[error("not extended, {:.1} s remain: {refusal}", remaining.as_secs_f64())]
    Unconfirmed {
        /// What is left of the old validity.
        remaining: Duration,
        /// Who said what.
        refusal: Refusal,
    },
    /// The request cannot work. No command was sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
}

/// How [`using`](super::request::LockRequest::using) can fail.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsingError<T> {
    /// The lock was not acquired; the work never began.
    #[error(transparent)]
    NotAcquired(AcquireError),
    /// The lock was lost, and the unfinished work was cancelled.
    #[error("the work was cancelled: {0}")]
    Cancelled(Lost),
    /// The work finished, but the lock was over by then. Its result is here; whether to trust it is yours to say.
    #[error("the work finished without the lock: {lost}")]
    LostMeanwhile {
        /// What the work returned.
        output: T,
        /// When the lock ended.
        lost: Lost,
    },
}

/// Why a client could not be made.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A URL cannot be used.
    #[cfg(feature = "fred")]
    #[error(transparent)]
    Endpoint(#[from] crate::transport::fred::endpoint::EndpointError),
    /// Fresh masters could not be admitted.
    #[cfg(feature = "fred")]
    #[error(transparent)]
    Init(#[from] crate::transport::fred::InitError),
    /// A floor under the fencing tokens cannot be set.
    #[cfg(feature = "fred")]
    #[error(transparent)]
    FenceFloor(#[from] crate::transport::fred::FenceFloorError),
    /// The certificates cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] crate::transport::fred::tls::TlsError),
    /// The number of masters or votes cannot work.
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    /// A number of the policy cannot work.
    #[error(transparent)]
    Policy(#[from] crate::protocol::policy::PolicyError),
    /// The label or the resource cannot be used.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Two entries of the list are one server, which would have two votes.
    #[error(
        "m{first} {first_name} and m{second} {second_name} are the same server: a master has one vote, list it once"
    )]
    Twins {
        /// The place of the earlier one, from 1.
        first: usize,
        /// Its name.
        first_name: String,
        /// The place of the later one.
        second: usize,
        /// Its name.
        second_name: String,
    },
    /// There is no tokio runtime to run the client's tasks.
    #[error("no tokio runtime: connect inside one, with its time driver enabled")]
    NoRuntime,
}
