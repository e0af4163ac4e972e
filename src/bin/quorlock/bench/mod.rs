//! `quorlock bench`: what a quorum costs beside a single instance, and what it gives for that.
//!
//! All rows of a scenario take turns in one process, against the same masters; figures of two runs are not comparable, ratios
//! within one are.
#![allow(clippy::disallowed_methods, reason = "stopwatches and short-lived tasks; no lock rests on them")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of some thousands"
)]

mod aims;
mod arms;
mod bare;
mod baseline;
mod blocks;
mod bound;
mod chance;
mod contender;
mod cost;
mod ear;
mod keys;
mod machine;
mod pace;
mod page;
mod progress;
mod report;
mod scenes;
mod site;
mod slice;
mod stop;
mod sums;
mod terminal;
#[cfg(test)]
mod tests;
mod ways;
pub(crate) mod worker;

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::args::Bench;
use crate::args::Global;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::{fleet, output};
use arms::{ENTRIES, Entry};
use chance::Chance;
use pace::{PROFILES, Pace};
use progress::Progress;
use report::{Report, SCHEMA, Section};
use scenes::set::Set;
use scenes::{distance, faults, handoff, rate, renewal, side, timeline};
use site::Site;

/// How `--baseline` ends if something became slower.
const SLOWER: Exit = Exit::NotHeld;

pub(crate) async fn run(global: &Global, args: &Bench) -> Result<Exit, Failure> {
    let profiles = profiles(args)?;
    check_rows(args)?;
    let baseline = args.baseline.as_deref().map(baseline::read).transpose().map_err(usage)?;
    for file in [&args.file, &args.html].into_iter().flatten() {
        check_writable(file)?;
    }
    let began = Instant::now();
    // Before the first key: from here on a signal leaves none.
    let mut signals = Signals::catch()?;
    let site = match until_stopped(&mut signals, site(global)).await {
        (Some(site), None) => site?,
        (_, exit) => {
            let exit = exit.unwrap_or(Exit::Signal(2));
            return Err(Failure::interrupted(exit, "interrupted before anything was measured"));
        }
    };
    let pace = Pace { quick: args.quick, scale: args.scale };
    let mut set = Set {
        site,
        pace,
        chance: Chance::new(),
        against: args.against.clone(),
        overlaps: 0,
        skipped: Vec::new(),
    };
    if !cfg!(feature = "peers") {
        set.skip("rslock", "this program was built without the feature `peers`");
    }
    let watch = machine::Watch::begin(set.site.pids());
    let mut sections = Vec::new();
    let played = play(global, &mut set, &profiles, &mut sections);
    let (ended, interrupted) = until_stopped(&mut signals, played).await;
    let failed = ended.and_then(Result::err);
    let left = set.site.clean().await;
    let info = set.site.asked.ask("INFO", &["server"]).await.unwrap_or_default();
    let server = machine::server(info.first().map_or("", String::as_str));
    let machine = watch.end(format!("{server} × {}", set.site.masters.len()), "one thread");
    let mut environment = machine.json();
    environment["command"] = json!(std::env::args().skip(1).map(hide).collect::<Vec<_>>().join(" "));
    environment["debug_build"] = json!(cfg!(debug_assertions));
    let mut report = Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").into(),
        complete: interrupted.is_none() && failed.is_none(),
        quick: args.quick,
        seconds: began.elapsed().as_secs_f64(),
        overlaps: set.overlaps,
        environment,
        sections,
        skipped: set.skipped,
        aims: Vec::new(),
    };
    report.aims = aims::of(&report, &mut set.chance);
    write(global, args, &report, &machine)?;
    match left {
        Ok(0) => {}
        Ok(keys) => {
            output::note(format_args!("{keys} keys of this run were left by a row and are deleted now"))
        }
        Err(error) => output::note(format_args!(
            "what this run left could not be looked for ({error}); it expires in 10 s"
        )),
    }
    conclude(args, &report, baseline.as_ref(), interrupted, failed, &mut set.chance)
}

/// Scenario after scenario; what is done stays, whatever ends the next.
async fn play(
    global: &Global,
    set: &mut Set,
    profiles: &[&'static str],
    sections: &mut Vec<Section>,
) -> Result<(), String> {
    let progress = Progress::begin(global, profiles.len());
    for (name, what) in PROFILES.iter().filter(|(name, _)| profiles.contains(name)) {
        if stop::is_raised() {
            break;
        }
        progress.step(&format!("{name}: {what}"));
        let done = match *name {
            "loopback" => side::one_task(set).await,
            "tasks" => side::crowd(set).await,
            "distance" => distance::run(set).await,
            "faults" => faults::run(set).await,
            "timeline" => timeline::run(set).await,
            "rate" => rate::run(set).await,
            "handoff" => handoff::run(set).await,
            _ => renewal::run(set).await,
        };
        sections.extend(done.map_err(|error| format!("{name}: {error}"))?);
        progress.done();
    }
    progress.end();
    Ok(())
}

/// The first signal ends it after the locks under way are given back, the second at once.
async fn until_stopped<T>(signals: &mut Signals, work: impl Future<Output = T>) -> (Option<T>, Option<Exit>) {
    let mut work = std::pin::pin!(work);
    match signals.or(&mut work).await {
        Ok(done) => (Some(done), None),
        Err(exit) => {
            stop::raise();
            (signals.or(&mut work).await.ok(), Some(exit))
        }
    }
}

fn profiles(args: &Bench) -> Result<Vec<&'static str>, Failure> {
    let all = PROFILES.iter().map(|(name, _)| *name);
    if args.profile.is_empty() {
        return Ok(all.collect());
    }
    let known = |name: &String| all.clone().find(|known| known == name);
    args.profile
        .iter()
        .map(|name| {
            known(name).ok_or_else(|| {
                let known: Vec<String> =
                    PROFILES.iter().map(|(name, what)| format!("  {name:<10} {what}")).collect();
                usage(format!("--profile {name}: there is no such profile. There are:\n{}", known.join("\n")))
            })
        })
        .collect()
}

fn check_rows(args: &Bench) -> Result<(), Failure> {
    let mut unknown = args.against.iter().filter(|name| Entry::named(name).is_none());
    if !cfg!(feature = "peers") && args.against.iter().any(|name| name == "rslock") {
        return Err(usage("--against rslock: build with `--features cli,peers` for that row"));
    }
    unknown.next().map_or(Ok(()), |name| {
        let known: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        Err(usage(format!("--against {name}: there is no such row. There are: {}", known.join(", "))))
    })
}

/// Before minutes are spent on what cannot be kept.
fn check_writable(file: &Path) -> Result<(), Failure> {
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    opened.map(drop).map_err(|error| usage(format!("{}: {error}", file.display())))
}

async fn site(global: &Global) -> Result<Site, Failure> {
    let config = global.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
    let policy = fleet::policy(global, &config)?;
    let given = if fleet::is_given(&global.masters) { &global.masters } else { &config.masters };
    if given.is_empty() {
        return Site::start(policy).await.map_err(Failure::other);
    }
    if config.password.is_some() || given.iter().any(|url| !url.starts_with("redis://")) {
        let why = "`bench` takes redis:// URLs, with passwords in them: what it compares with knows no more";
        return Err(Failure::config(why));
    }
    // Says what is wrong with the masters, in the library's words.
    let client = fleet::Fleet::of(global)?.builder.connect().await?;
    let lock = client.lock(format!("{}look", keys::prefix())).try_acquire().await?;
    let _ = lock.release().await;
    let _ = client.close().await;
    Site::of(given.clone(), policy).await.map_err(|error| Failure::new(Exit::NoQuorum, "no_quorum", error))
}

fn write(global: &Global, args: &Bench, report: &Report, machine: &machine::Machine) -> Result<(), Failure> {
    let json = serde_json::to_value(report).map_err(|error| Failure::other(error.to_string()))?;
    let keep = |file: &Path, text: &str| {
        std::fs::write(file, text).map_err(|error| Failure::other(format!("{}: {error}", file.display())))
    };
    if let Some(file) = &args.file {
        keep(file, &format!("{json:#}\n"))?;
    }
    if let Some(file) = &args.html {
        keep(file, &page::html(report))?;
    }
    if let Some(folder) = &args.charts {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::other(format!("{}: {error}", folder.display())))?;
        for (name, svg) in page::pictures(report) {
            keep(&folder.join(format!("{name}.svg")), &svg)?;
        }
    }
    let debug = if cfg!(debug_assertions) { "\na debug build: its figures mean nothing" } else { "" };
    let text = format!("{machine}{debug}\n{}", terminal::text(report));
    match &args.file {
        Some(_) => output::print(text),
        None => output::result(global, text, &json),
    }
    Ok(())
}

fn conclude(
    args: &Bench,
    report: &Report,
    baseline: Option<&Report>,
    interrupted: Option<Exit>,
    failed: Option<String>,
    chance: &mut Chance,
) -> Result<Exit, Failure> {
    if report.overlaps > 0 {
        return Err(Failure::new(Exit::Lost, "overlap", "two holders had one lock at once: see the report"));
    }
    if let Some(exit) = interrupted {
        return Err(Failure::interrupted(exit, "interrupted: what was measured until then is written"));
    }
    if let Some(why) = failed {
        return Err(Failure::other(format!("{why}\nWhat was measured until then is written.")));
    }
    if let (Some(then), Some(percent)) = (baseline, args.fail_above) {
        let worse = baseline::worse(report, then, percent, chance);
        if !worse.is_empty() {
            let text =
                format!("slower than the baseline by more than {percent} %:\n  {}", worse.join("\n  "));
            return Err(Failure::new(SLOWER, "slower", text));
        }
    }
    Ok(Exit::Done)
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, "bad_request", text)
}

/// An argument without a password that may be in it.
fn hide(argument: String) -> String {
    if argument.contains('@') { "…".into() } else { argument }
}
