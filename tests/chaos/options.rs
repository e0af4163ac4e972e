//! What a person may ask for.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// Client processes, five masters, a proxy on each way, a register; faults from a seed; and a checker of what happened.
///
/// Ends with 0 if the history shows no bug, 1 if it does, 2 if there is no history.
#[derive(Clone, Debug, Parser)]
#[command(name = "chaos")]
pub(crate) struct Options {
    /// How long clients are at work. The faults are spread over it.
    #[arg(long, default_value_t = 20)]
    pub(crate) seconds: u64,
    /// The same seed plans the same faults, and the same habits of the clients. From the clock, if none is given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Client processes.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) clients: u64,
    /// What they lock: `stock:1` and so on.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) resources: u64,
    /// The ttl of each lock, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(400..=60_000))]
    pub(crate) ttl: u64,
    /// Which faults: words, or `kept` (all that keep the promise's assumptions), `broken` (those that break one), `all`.
    #[arg(long, value_name = "WORD,…", value_delimiter = ',', default_value = "kept")]
    pub(crate) fault: Vec<String>,
    /// No fault at all.
    #[arg(long, conflicts_with = "fault")]
    pub(crate) no_fault: bool,
    /// Breaks the clients, to see the checker find it. Takes the feature `mutants`.
    #[arg(long, value_name = "WORD")]
    pub(crate) mutant: Option<String>,
    /// Locks without fencing tokens, and a register that takes whatever comes.
    #[arg(long)]
    pub(crate) unfenced: bool,
    /// One in so many of each client's locks is slept through: it reads, sleeps until another has written, and writes.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) oversleep: u64,
    /// Fewer overlaps than this, of those that broken assumptions explain, prove too little.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) overlaps: usize,
    /// Where `history.jsonl` and `timeline.html` go. A folder named by the seed, below the system's temporary one, if
    /// none is given.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs nothing: reads a history, judges it, and draws its time line beside it.
    #[arg(long, value_name = "FILE")]
    pub(crate) check: Option<PathBuf>,
}

impl Options {
    pub(crate) const fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl)
    }

    /// The fleet's longest ttl, and so the quarantine: no longer than it must be, since nothing can be shown meanwhile.
    pub(crate) const fn max_ttl(&self) -> Duration {
        Duration::from_millis(self.ttl + self.ttl / 4)
    }

    pub(crate) fn words(&self) -> &[String] {
        if self.no_fault { &[] } else { &self.fault }
    }

    pub(crate) const fn fenced(&self) -> bool {
        !self.unfenced
    }

    /// What replays it.
    pub(crate) fn command(&self, seed: u64) -> String {
        let Self { seconds, clients, resources, ttl, oversleep, overlaps, .. } = self;
        let mut command = format!(
            "cargo test --all-features --test chaos -- --seconds {seconds} --seed {seed} --clients {clients} \
             --resources {resources} --ttl {ttl} --oversleep {oversleep}"
        );
        let faults = self.words().join(",");
        command += &if faults.is_empty() { " --no-fault".into() } else { format!(" --fault {faults}") };
        if let Some(mutant) = &self.mutant {
            command += &format!(" --mutant {mutant}");
        }
        if self.unfenced {
            command += " --unfenced";
        }
        if *overlaps > 0 {
            command += &format!(" --overlaps {overlaps}");
        }
        command
    }
}
