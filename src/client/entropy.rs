//! All randomness: holder ids and dice. Seeded, the same questions get the same answers.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rand::{Rng, SeedableRng, rngs::StdRng};
use uuid::Uuid;

/// Where random numbers come from.
pub struct Entropy(Source);

enum Source {
    System,
    Seeded(Box<Mutex<StdRng>>),
}

impl Entropy {
    /// Holder ids from the operating system, each asked for anew: a forked process or a restored snapshot must not
    /// repeat them (hazard H34).
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// Repeatable, for simulations. **Two clients with one seed sign with the same ids.**
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Box::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    pub(crate) fn uuid(&self) -> Uuid {
        match &self.0 {
            Source::System => Uuid::new_v4(),
            Source::Seeded(rng) => {
                let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
                Uuid::from_u64_pair(rng.next_u64(), rng.next_u64())
            }
        }
    }

    pub(crate) fn dice(&self) -> u64 {
        match &self.0 {
            Source::System => dice(),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).next_u64(),
        }
    }
}

/// Jitter; need not be hard to guess.
#[allow(clippy::disallowed_methods)]
pub(crate) fn dice() -> u64 {
    rand::rng().next_u64()
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System => "Entropy(system)",
            Source::Seeded(_) => "Entropy(seeded)",
        })
    }
}
