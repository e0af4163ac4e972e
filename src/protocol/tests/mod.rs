//! The machine as its driver sees it: scenes that read as sentences, and a storm of random ones.

mod scene;

mod claims;

mod numbers;

mod renewals;

mod releases;

mod sweeps;

mod handovers;

mod master;

mod world;

mod storm;

mod promises;

mod dice;

#[cfg(feature = "mutants")]
mod mutants;
