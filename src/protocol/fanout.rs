//! What is asked of the masters, and with which stamp.

use super::fencing::FencingToken;
use super::quorum::MasterId;
use super::request::Ttl;
use super::time::Moment;

/// One thing a master can be asked to do with our key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// `SET key holder NX PX ttl`.
    Claim,
    /// The same, and on refusal tell who holds the key and for how long.
    Watch,
    /// Raise the counter while the key is still the one that was read; never touch the key.
    Raise,
    /// Compare and raise the remaining time; never lower it (hazard H27), never create the key.
    Renew,
    /// Create the key where it is absent, else as [`Act::Renew`].
    Heal,
    /// Compare and delete.
    Release,
    /// Join the line of clients that wait for a key, and say whether this one is the first. In these last three acts,
    /// which no claim is made of, the bell that rings for the client stands for the key, and the line for the holder.
    QueueUp,
    /// Out of the line.
    Leave,
    /// The same, with the first: the lock was got, and he had not come for it.
    Overtake,
}

impl Act {
    /// Whether the answer counts as a vote, which a master in quarantine must not cast (hazard H40).
    #[must_use]
    pub const fn votes(self) -> bool {
        !matches!(self, Self::Release | Self::Overtake | Self::Leave)
    }

    /// Whether it is about a place in line, and no part of a lock.
    #[must_use]
    pub const fn is_of_line(self) -> bool {
        matches!(self, Self::QueueUp | Self::Overtake | Self::Leave)
    }

    /// Whether the act can bring our key into being.
    #[must_use]
    pub const fn creates(self) -> bool {
        matches!(self, Self::Claim | Self::Watch | Self::Heal)
    }
}

/// One command for one master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dispatch {
    /// Whom to ask.
    pub to: MasterId,
    /// What to ask.
    pub act: Act,
    /// Which fan-out of the attempt this belongs to; later ones have greater numbers.
    pub round: u32,
    /// The clock when the fan-out began, read before the first command was handed over (hazard H5).
    pub stamp: Moment,
    /// The ttl that goes with the command.
    pub ttl: Ttl,
    /// Whether the command may overtake what waits in front of it: a renewal with nothing of its own key unsent.
    pub urgent: bool,
    /// What there is to do with the counter, for a claim that is fenced.
    pub fence: Option<Fence>,
}

/// What goes with an act for the sake of a [fencing token](super::fencing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// A claim takes a number above the counter, this one if it is.
    Propose(u64),
    /// The counter is raised where the key has the number `seen`.
    Raise {
        /// What the key took when it was created.
        seen: u64,
        /// What the counter is to be, at least.
        to: u64,
    },
    /// A key that is created anew has this token, and the counter is raised to it.
    Restore(FencingToken),
}

/// Which connection to a master carried a command; a later connection has a greater number.
///
/// Commands of one connection are executed in the order sent. Between two connections nothing is certain: what
/// lies in the buffers of a closed one may still be executed (hazard H1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link(pub u32);
