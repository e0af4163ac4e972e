//! Real masters, real clients, and whatever can go wrong between them: who held what when, and whether that may be.
//!
//! ```sh
//! cargo test --all-features --test chaos -- --seconds 60 --seed 7     # a run of one's own; --help has the flags
//! cargo nextest run --all-features --test chaos                       # the runs of the suite, with fixed seeds
//! ```
//!
//! A run is client processes of the real crate, five masters, a proxy on each way from a client to a master, and a
//! register: a process that keeps a counter for each resource and lets in whose fencing token is none too old. Faults
//! come from a seed ([`plan`]). Everybody writes down what happens; [`history`] reads that, and nothing else, and says what
//! it proves; [`page`] draws it. The tests of the checker itself are in `tests/checker.rs`.
//!
//! It is a test without the usual harness, rather than an example: so it is both, a program with flags of its own, and
//! named tests that `cargo test` and nextest list and run, without a second binary to be found from the first.

mod aim;
mod client;
mod crew;
mod dice;
mod fencing;
mod history;
mod log;
mod mutant;
mod nemesis;
mod operator;
mod options;
mod page;
mod plan;
mod register;
mod run;
#[path = "../splitmix/mod.rs"]
mod splitmix;
mod suite;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use crew::Role;
use options::Options;
use suite::{CASES, Case};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ended = match std::env::var(crew::ROLE) {
        Ok(role) => play(&role).map(|()| true),
        Err(_) if is_for_people(&words) => own_run(),
        Err(_) => Ok(tests(&words)),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::from(2)
        }
    }
}

fn play(role: &str) -> Result<(), Box<dyn Error>> {
    match serde_json::from_str(role)? {
        Role::Client { folder, part } => {
            let log = log::Log::open(&folder, &part.name)?;
            client::run(part, log)
        }
        Role::Register { folder } => {
            let log = log::Log::open(&folder, "register")?;
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            println!("{}", listener.local_addr()?);
            Ok(register::serve(listener, &log)?)
        }
    }
}

/// Flags that no test runner has.
fn is_for_people(words: &[String]) -> bool {
    let command = <Options as clap::CommandFactory>::command();
    let names: Vec<&str> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
    let is_ours = |word: &String| {
        let name = word.strip_prefix("--").map(|word| word.split('=').next().unwrap_or(word));
        name.is_some_and(|name| names.contains(&name) || name == "help")
    };
    words.iter().any(is_ours)
}

fn own_run() -> Result<bool, Box<dyn Error>> {
    let options = Options::parse();
    let seen = match &options.check {
        Some(file) => run::judge(file),
        None => run::run(&options),
    };
    let seen = seen.map_err(|error| error.to_string())?;
    print!("{}", run::tell(&seen));
    Ok(seen.judgement.bugs().next().is_none())
}

/// What `cargo test` and nextest ask of a test binary: `--list`, names to choose by, `--exact`, `--ignored`, `--skip`.
fn tests(words: &[String]) -> bool {
    let has = |flag: &str| words.iter().any(|word| word == flag);
    // None is ignored.
    let cases = CASES.iter().filter(|_| !has("--ignored"));
    let mut names = Vec::new();
    let mut skipped = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--skip" => skipped.extend(words.next()),
            "--format" | "--color" | "--test-threads" | "--logfile" | "-Z" => drop(words.next()),
            flag if flag.starts_with('-') => {}
            _ => names.push(word),
        }
    }
    let means = |word: &str, name: &str| if has("--exact") { word == name } else { name.contains(word) };
    let chosen: Vec<&Case> = cases
        .filter(|case| names.is_empty() || names.iter().any(|word| means(word, case.name)))
        .filter(|case| !skipped.iter().any(|word| means(word, case.name)))
        .collect();
    if has("--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.name));
        return true;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = 0;
    for case in &chosen {
        let ended = case.run();
        println!("test {} ... {}", case.name, if ended.is_ok() { "ok" } else { "FAILED" });
        if let Err(why) = ended {
            println!("{why}");
            failed += 1;
        }
    }
    let (word, passed, filtered) =
        (if failed == 0 { "ok" } else { "FAILED" }, chosen.len() - failed, CASES.len() - chosen.len());
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {filtered} filtered out\n"
    );
    failed == 0
}
