//! What must hold in every run.

/// A promise; its words are in the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The validity intervals of two holders of one resource never overlap.
    Exclusion,
    /// A hold that was seen as lost never comes back.
    StickyLoss,
    /// Fencing tokens rise with every hold.
    Tokens,
    /// A deadline is the w-th largest of what the masters confirmed and did not take back (rule 3).
    Deadline,
    /// A key is created anew only behind w confirmations (rule 9).
    Heal,
    /// Of several resources a master grants all or none, and gives back all.
    AllOrNone,
    /// Nothing but deletes is sent for a lock that its holder gave back.
    Silence,
    /// A grant that comes after the end is followed by a delete at once (rules 6 and 8).
    LateGrant,
    /// What was not won, or was given back, is deleted on every master (rules 6 and 12).
    RollBack,
    /// No key stays where the network let its delete through.
    Ghost,
    /// No key outlives its ttl and drift after the last command that can have set it.
    Expiry,
    /// The holder is told at the deadline.
    TimelyLoss,
    /// With w good masters who is alone wins in time.
    LoneWin,
    /// Contenders all win in time.
    EverybodyWins,
    /// A closed client has no tasks.
    NoLeak,
}

/// A promise that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) promise: Promise,
    pub(crate) at: u64,
    pub(crate) words: String,
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is broken at {:.6} s: {}", self.promise, self.at as f64 / 1e9, self.words)
    }
}
