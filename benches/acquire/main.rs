//! Acquire and release on five masters of this machine, beside what they are measured by, in one run.
//!
//! ```text
//! cargo bench --features testbed,peers --bench acquire -- [--seconds 40] [--blocks 8] [--only A|B|C]
//!     [--filter quorlock,fred] [--cycles 1000] [--multi-thread] [--json]
//! ```
//!
//! Figures of two runs are not comparable; ratios within one are. Nothing here fails for being slow.
#![allow(clippy::disallowed_methods, reason = "stopwatches and short-lived tasks; no lock rests on them")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of some thousands"
)]

#[path = "../../src/bin/quorlock/bench/arms.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod arms;
#[path = "../../src/bin/quorlock/bench/bare.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod bare;
#[path = "../../src/bin/quorlock/bench/blocks.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod blocks;
#[path = "../../src/bin/quorlock/bench/chance.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod chance;
#[path = "../../src/bin/quorlock/bench/contender.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod contender;
#[path = "../../src/bin/quorlock/bench/keys.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod keys;
#[path = "../../src/bin/quorlock/bench/machine.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod machine;
mod report;
#[path = "../../src/bin/quorlock/bench/slice.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod slice;
#[path = "../../src/bin/quorlock/bench/stop.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod stop;
#[path = "../../src/bin/quorlock/bench/sums.rs"]
#[allow(dead_code, reason = "the command `bench` uses more of it")]
mod sums;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

use quorlock::testbed::{LocalMaster, Testbed};
use quorlock::{Policy, Redlock};
use serde_json::json;

use arms::{Arm, ENTRIES, Entry};
use blocks::Plan;
use chance::Chance;
use report::Section;

/// What was asked for.
#[derive(Debug, Clone)]
struct Options {
    seconds: f64,
    blocks: usize,
    only: Option<char>,
    filter: Option<Vec<String>>,
    cycles: Option<usize>,
    multi_thread: bool,
    json: bool,
}

/// The rows of this table: all over the same five masters, or the first of them.
const ARMS: &[&str] = &[
    "quorlock",
    "quorlock-renew",
    "quorlock-fenced",
    "fred",
    "fred-timeout",
    "fred-resp3",
    "quorlock-1",
    "single",
    #[cfg(feature = "peers")]
    "rslock",
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter(|entry| ARMS.contains(&entry.name))
}

/// The shares of the whole time that go to A, B and C.
const SHARES: [(char, f64); 3] = [('A', 0.42), ('B', 0.28), ('C', 0.3)];

fn main() -> ExitCode {
    let done = Options::parse(std::env::args().skip(1)).and_then(|options| {
        let Some(options) = options else { return Ok(()) };
        let mut runtime = if options.multi_thread {
            tokio::runtime::Builder::new_multi_thread()
        } else {
            tokio::runtime::Builder::new_current_thread()
        };
        let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(run(&options))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    /// `None`: help was asked for and given.
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Self {
            seconds: 40.0,
            blocks: 8,
            only: None,
            filter: None,
            cycles: None,
            multi_thread: false,
            json: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                // Cargo says so to every bench.
                "--bench" => {}
                "--seconds" => options.seconds = number(&word, &value()?)?,
                "--blocks" => options.blocks = number(&word, &value()?)?,
                "--cycles" => options.cycles = Some(number(&word, &value()?)?),
                "--only" => options.only = Some(workload(&value()?)?),
                "--filter" => options.filter = Some(arms(&value()?)?),
                "--multi-thread" => options.multi_thread = true,
                "--json" => options.json = true,
                "--help" | "-h" => {
                    help();
                    return Ok(None);
                }
                _ => return Err(format!("unknown option {word:?}; try --help")),
            }
        }
        if !(options.seconds > 0.0 && options.seconds <= 86_400.0) {
            return Err(format!("--seconds {}: between 0 and a day", options.seconds));
        }
        if options.blocks == 0 || options.cycles == Some(0) {
            return Err("--blocks and --cycles must be at least 1".into());
        }
        Ok(Some(options))
    }

    fn plan(&self, share: f64) -> Plan {
        let share = if self.only.is_some() { 1.0 } else { share };
        Plan {
            time: Duration::from_secs_f64(self.seconds * share),
            blocks: self.blocks,
            cycles: self.cycles,
            warm_up: 6_400,
        }
    }

    fn wants(&self, arm: &str) -> bool {
        self.filter.as_ref().is_none_or(|names| names.iter().any(|name| name == arm))
    }
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{word} {value}: not a number it can take"))
}

fn workload(value: &str) -> Result<char, String> {
    match value {
        "A" | "a" => Ok('A'),
        "B" | "b" => Ok('B'),
        "C" | "c" => Ok('C'),
        _ => Err(format!("--only {value}: A, B or C")),
    }
}

fn arms(value: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = value.split(',').map(str::to_owned).collect();
    match names.iter().find(|name| !ARMS.contains(&name.as_str())) {
        Some(unknown) => Err(format!("--filter {unknown}: one or more of {}, with commas", ARMS.join(", "))),
        None => Ok(names),
    }
}

fn help() {
    println!("Acquire and release on five masters of this machine, side by side.\n");
    println!("  --seconds S       the time to measure, 40 unless set; starting and mending come on top");
    println!("  --blocks N        into how many blocks each workload is divided, 8 unless set");
    println!("  --cycles N        slices of so many cycles a task, instead of a time");
    println!("  --only A|B|C      one task; 64 tasks; one task with masters frozen");
    println!("  --filter ARM,ARM  these arms only");
    println!("  --multi-thread    two worker threads, instead of one thread");
    println!("  --json            for programs\n\narms:");
    for Entry { name, what, .. } in entries() {
        println!("  {name:<16}  {what}");
    }
}

async fn run(options: &Options) -> Result<(), String> {
    let chance = &mut Chance::new();
    let bed = Testbed::start(5).map_err(|error| error.to_string())?;
    let urls = bed.urls();
    Redlock::builder().masters(&urls).init().await.map_err(|error| error.to_string())?;
    let mut contenders = Vec::new();
    for entry in entries().filter(|entry| options.wants(entry.name)) {
        contenders.push(entry.connect(&urls, Policy::new()).await?);
    }

    let watch = machine::Watch::begin(bed.masters().iter().filter_map(LocalMaster::pid).collect());
    let mut sections = Vec::new();
    for (letter, share) in SHARES {
        if options.only.is_some_and(|only| only != letter) {
            continue;
        }
        let plan = options.plan(share);
        let measured = match letter {
            'A' => blocks::side_by_side(&contenders, 1, plan, chance, async || Ok(())).await?,
            // Many tasks against one master would measure the master.
            'B' => {
                let of_five: Vec<Arm> = contenders.iter().filter(|arm| !of_one(arm.name)).cloned().collect();
                blocks::side_by_side(&of_five, 64, plan, chance, async || Ok(())).await?
            }
            // Long enough to see a connection given up after three timeouts, and dialled in vain.
            _ => match contenders.iter().find(|arm| arm.name == "quorlock") {
                Some(arm) => {
                    let blocks = options.blocks.div_ceil(3);
                    workload::frozen(arm, &bed, Plan { blocks, ..plan }, chance).await?
                }
                None => continue,
            },
        };
        sections.push(Section { letter, measured });
    }

    let info = bed[0].command(&["INFO"]).ok().and_then(|reply| reply.text()).unwrap_or_default();
    let runtime = if options.multi_thread { "two worker threads" } else { "one thread" };
    let machine = watch.end(format!("{} × 5", machine::server(&info)), runtime);
    let aims = report::aims(&sections, chance);
    if options.json {
        let sections: Vec<_> = sections.iter().map(|section| section.json(chance)).collect();
        let all = json!({ "environment": machine.json(), "workloads": sections, "aims": aims });
        println!("{all:#}");
    } else {
        println!("{machine}");
        println!("medians over blocks; [intervals]: 95 % of the medians of resampled blocks");
        sections.iter().for_each(|section| section.print(chance));
        report::print_aims(&aims);
    }
    Ok(())
}

fn of_one(arm: &str) -> bool {
    Entry::named(arm).is_some_and(|entry| entry.masters == 1)
}
