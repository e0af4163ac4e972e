//! Rules broken on purpose, one at a time, to see that the searches find it. Only with the feature `mutants`.

/// One rule, broken.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Rule 1: the validity is the whole ttl.
    DriftDropped,
    /// Rule 1: the validity counts from the answer.
    StampedAtAnswer,
    /// Rule 3: the deadline is the largest `e_i`.
    OneConfirmationIsEnough,
    /// Rule 3: "absent" leaves `e_i`.
    AbsentIgnored,
    /// Rule 3: answers to commands from before "absent" or a restart count.
    OldAnswersCount,
    /// Rule 3: a restart leaves `e_i`.
    RestartIgnored,
    /// Rule 4: w grants win also after the deadline.
    LateWinAccepted,
    /// Rule 6: nothing is deleted after a claim that was not won.
    RollBackSkipped,
    /// Rule 6: masters that refused get no delete.
    RefusalsNotDeleted,
    /// Rule 6: a late grant gets no delete.
    LateGrantsKept,
    /// Rule 6: the next connection gets no delete.
    LinksNotSwept,
    /// Rule 6: the next connection gets one delete, and no second after a second.
    SweptOnce,
    /// Rule 6: an answer by any connection ends the doubt about a broken one.
    DoubtEndsAnywhere,
    /// Rule 7: "another's" counts as a grant.
    RefusalsCount,
    /// Rule 7: a broken connection counts as a grant.
    SilenceCounts,
    /// Rule 7: half the masters are enough.
    HalfIsEnough,
    /// Rule 8: a lease may be renewed after its deadline.
    LossNotSticky,
    /// Rule 8: a renewal without w confirmations releases.
    FailedRenewalReleases,
    /// Rule 9: a healed key counts at once.
    HealCountsAtOnce,
    /// Rule 9: a missing key is created without w confirmations.
    HealWithoutQuorum,
    /// Rule 9: a heal answered after the end gets no delete.
    LateHealKept,
    /// Rule 12: the release goes only where the key is known to be.
    ReleaseSkipsDoubtful,
    /// Rule 12: the release deletes nothing.
    ReleaseForgotten,
    /// Rule 17: the token is the greatest of w counters, and none is raised to it.
    GreatestIsToken,
    /// Rule 17: the token is the least of w counters.
    LeastIsToken,
    /// Rule 17: the claim is won before the counters are raised.
    RaiseNotAwaited,
    /// Rule 17: masters whose counter was not read are raised and counted, too.
    RaisedAnywhere,
    /// Rule 17: a master that lost its counters goes on without.
    RecoverySkipped,
    /// Rule 17: a master that lost its counters takes those of N − w others.
    RecoveryReadsTooFew,
    /// Rule 14: the quarantine lasts as long as the drift.
    QuarantineTooShort,
    /// Rule 1, in the client: the clock is read when the commands are out.
    ClockReadLate,
    /// Rule 3, in the client: a claim under way is not told that a master restarted.
    ClaimsNotTold,
    /// Rule 6, in the client: a claim whose future is dropped is not undone.
    DropNotUndone,
    /// Rule 8, in the client: a deadline that its holder saw passed can be moved.
    SeenLossForgotten,
    /// Rule 12, in the client: nobody is told that the guard was dropped.
    DropNotTold,
}

#[cfg(feature = "mutants")]
std::thread_local! {
    static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Breaks one rule, or none, on this thread from now on.
#[cfg(feature = "mutants")]
#[doc(hidden)]
pub fn set(mutant: Option<Mutant>) {
    ON.set(mutant);
}

#[cfg(feature = "mutants")]
pub(crate) fn on(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

/// Every rule holds.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn on(_: Mutant) -> bool {
    false
}
