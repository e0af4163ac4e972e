//! What an input changed, for those who wait or write logs.

/// What changed since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct News {
    /// The verdict fell.
    pub verdict: bool,
    /// The lease was lost.
    pub lost: bool,
    /// The deadline moved.
    pub deadline: bool,
    /// The lease will be lost within one renewal period unless w masters confirm.
    pub at_risk: bool,
    /// w masters confirmed again after at least one renewal without them.
    pub recovered: bool,
    /// A renewal was not confirmed by w masters in time.
    pub renewal_failed: bool,
    /// A key was created anew where it was missing.
    pub healed: bool,
    /// A master turned out to have lost the key.
    pub key_lost: bool,
    /// A renewal or extension got its w confirmations, or all its answers.
    pub renewed: bool,
    /// w masters confirmed a renewal or extension: once each.
    pub confirmed: bool,
    /// The release has an outcome.
    pub released: bool,
}
