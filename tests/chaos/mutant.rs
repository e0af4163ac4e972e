//! Clients that are broken on purpose, to see that the checker finds them.

#[cfg(feature = "mutants")]
pub(crate) use with_feature::*;
#[cfg(not(feature = "mutants"))]
pub(crate) use without_feature::*;

#[cfg(feature = "mutants")]
mod with_feature {
    use std::time::Duration;

    use quorlock::protocol::mutant::{self, Mutant as Rule};
    use quorlock::testbed::Wire;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Mutant {
        /// After each release, the key is deleted once more, whoever's it is.
        BlindDelete,
        Broken(Rule),
    }

    const WORDS: [(&str, Mutant); 10] = [
        ("blind-delete", Mutant::BlindDelete),
        ("drift-dropped", Mutant::Broken(Rule::DriftDropped)),
        ("half-is-enough", Mutant::Broken(Rule::HalfIsEnough)),
        ("late-win-accepted", Mutant::Broken(Rule::LateWinAccepted)),
        ("loss-not-sticky", Mutant::Broken(Rule::LossNotSticky)),
        ("one-confirmation-is-enough", Mutant::Broken(Rule::OneConfirmationIsEnough)),
        ("quarantine-too-short", Mutant::Broken(Rule::QuarantineTooShort)),
        ("refusals-count", Mutant::Broken(Rule::RefusalsCount)),
        ("roll-back-skipped", Mutant::Broken(Rule::RollBackSkipped)),
        ("silence-counts", Mutant::Broken(Rule::SilenceCounts)),
    ];

    impl Mutant {
        pub(crate) fn named(word: &str) -> Result<Self, String> {
            let known = || WORDS.map(|(word, _)| word).join(", ");
            let found = WORDS.into_iter().find(|(known, _)| *known == word);
            found
                .map(|(_, mutant)| mutant)
                .ok_or_else(|| format!("unknown mutant {word:?}: one of {}", known()))
        }

        /// On this thread.
        pub(crate) fn break_rule(self) {
            if let Self::Broken(rule) = self {
                mutant::set(Some(rule));
            }
        }

        pub(crate) fn deletes_blindly(self) -> bool {
            self == Self::BlindDelete
        }
    }

    pub(crate) fn delete_blindly(masters: &[String], resource: &str) {
        let addresses = masters.iter().filter_map(|url| url.strip_prefix("redis://")?.parse().ok());
        for mut wire in addresses.filter_map(|address| Wire::connect(address).ok()) {
            // It may be frozen.
            let _ = wire.set_patience(Duration::from_millis(50));
            let _ = wire.command(&["DEL", resource]);
        }
    }
}

#[cfg(not(feature = "mutants"))]
mod without_feature {
    /// None.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Mutant {}

    impl Mutant {
        pub(crate) fn named(_: &str) -> Result<Self, String> {
            Err("built without the feature `mutants`".into())
        }

        pub(crate) fn break_rule(self) {}

        pub(crate) fn deletes_blindly(self) -> bool {
            false
        }
    }

    pub(crate) fn delete_blindly(_: &[String], _: &str) {}
}
