//! How fast a contended lock goes from hand to hand on five masters of this machine, and what it costs to wait.
//!
//! ```text
//! cargo bench --features testbed --bench handoff -- [--seconds 5] [--only one|eight|waiters] [--json]
//! ```
//!
//! Eight contenders hold for 5 ms and pause for 20 ms, as tasks of one client or as eight processes; the hand-off is the
//! time per acquisition less the measured hold. Each arm runs once for the clock and once more, listened to, for the
//! commands. `polling` is the same client under a user that may not be told of changes.
#![allow(clippy::disallowed_methods, reason = "stopwatches and short-lived tasks; no lock rests on them")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "counts of some thousands")]

mod contend;
mod crowd;
mod heard;

use std::process::ExitCode;
use std::time::Duration;

use quorlock::Redlock;
use quorlock::testbed::Testbed;
use serde_json::{Value, json};

use contend::Round;

const RESOURCE: &str = "handoff";
const CONTENDERS: usize = 8;
/// A user that may do everything but be told of changes.
const POLLER: [&str; 7] = ["ACL", "SETUSER", "poller", "on", ">poller", "~*", "+@all"];

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Options {
    time: Duration,
    only: Option<String>,
    json: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let done = runtime.map_err(Failure::from).and_then(|runtime| {
        runtime.block_on(async {
            match words.as_slice() {
                [child, urls] if child == "--child" => contend::child(urls).await,
                words => run(&Options::parse(words)?).await,
            }
        })
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
    fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut options = Self { time: Duration::from_secs(5), only: None, json: false };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--seconds" => {
                    options.time =
                        Duration::from_secs(words.next().ok_or("--seconds needs a number")?.parse()?);
                }
                "--only" => options.only = words.next().map(ToOwned::to_owned),
                "--json" => options.json = true,
                // cargo adds it.
                "--bench" => {}
                other => {
                    return Err(format!("{other}: use --seconds N, --only one|eight|waiters, --json").into());
                }
            }
        }
        Ok(options)
    }

    fn wants(&self, section: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == section)
    }
}

async fn run(options: &Options) -> Result<(), Failure> {
    let bed = Testbed::start(5)?;
    Redlock::builder().masters(bed.urls()).init().await?;
    for master in bed.masters() {
        master.command(&POLLER)?;
        master.command(&["ACL", "SETUSER", "poller", "-client|tracking"])?;
    }
    let mut rows = Vec::new();
    for (arm, urls) in [("told", bed.urls()), ("polling", poller_urls(&bed))] {
        for (section, processes) in [("one", 1), ("eight", CONTENDERS)] {
            if options.wants(section) {
                let round = contend::round(&urls, processes, options.time).await?;
                let ear = heard::Ear::on(&bed)?;
                let counted = contend::round(&urls, processes, options.time / 2).await?;
                let commands = ear.commands_per(&counted)?;
                rows.push(row(arm, section, &round, commands));
            }
        }
    }
    if options.wants("waiters") {
        rows.extend(crowd::rows(&bed).await?);
    }
    for row in rows {
        if options.json { println!("{row}") } else { println!("{}", in_words(&row)) }
    }
    Ok(())
}

fn poller_urls(bed: &Testbed) -> Vec<String> {
    bed.urls().iter().map(|url| url.replace("redis://", "redis://poller:poller@")).collect()
}

fn row(arm: &str, section: &str, round: &Round, commands: f64) -> Value {
    let mine = round.turns.iter().map(|turns| turns.count as f64);
    let (least, most) =
        mine.fold((f64::MAX, 0.0f64), |(least, most), count| (least.min(count), most.max(count)));
    json!({
        "arm": arm,
        "processes": section,
        "acquired": round.count(),
        "handoff_ms": round.handoff().as_secs_f64() * 1e3,
        "hold_ms": round.hold().as_secs_f64() * 1e3,
        "commands": commands,
        "fairness": most / least,
        "failed": round.turns.iter().map(|turns| turns.failed).sum::<u64>(),
    })
}

fn in_words(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten().map(|(name, value)| match value.as_f64() {
        Some(number) if number.fract() != 0.0 => format!("{name} {number:.2}"),
        _ => format!("{name} {value}"),
    });
    fields.collect::<Vec<_>>().join("  ")
}
