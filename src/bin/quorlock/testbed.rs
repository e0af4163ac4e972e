//! `quorlock testbed`: masters on this machine that outlive the command.

use quorlock::Redlock;
use quorlock::testbed::{Containers, MasterStatus, Outcome, StandingBed, Testbed as Bed};
use serde_json::json;

use crate::args::{Global, Testbed};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::{fleet, output};

pub(crate) async fn run(global: &Global, command: &Testbed) -> Result<Exit, Failure> {
    let bed = StandingBed::usual();
    match command {
        Testbed::Up { local: _, docker, clocks } => up(global, &bed, *docker, *clocks).await,
        Testbed::Down => down(global, &bed),
        Testbed::Status { containers } => match named(containers) {
            Some(containers) => {
                let (text, masters) = (containers.status()?, containers.masters()?);
                output::result(
                    global,
                    text.trim_end(),
                    &json!({ "outcome": "up", "masters": masters, "text": text }),
                );
                Ok(Exit::Done)
            }
            None => status(global, &bed),
        },
        Testbed::Fault { master, fault, undo, containers } => {
            let outcome = match (named(containers), undo) {
                (Some(containers), false) => containers.inject(*master, *fault),
                (Some(containers), true) => containers.undo(*master, *fault),
                (None, false) => bed.fault(*master, *fault)?,
                (None, true) => bed.undo(*master, *fault)?,
            };
            let what = if *undo { format!("undo {fault}") } else { fault.to_string() };
            let word = outcome.word();
            match &outcome {
                Outcome::Installed => {
                    let json = json!({ "outcome": word, "master": format!("m{master}"), "fault": what });
                    output::result(global, format!("m{master}: {what}: {word}"), &json);
                    Ok(Exit::Done)
                }
                Outcome::Skipped { .. } | Outcome::Indeterminate { .. } => {
                    let failure = Failure::new(Exit::NotHeld, word, format!("m{master}: {what}: {outcome}"));
                    Err(failure.with(json!({ "master": format!("m{master}"), "fault": what })))
                }
            }
        }
    }
}

/// An empty variable counts as none.
fn named(containers: &Option<String>) -> Option<Containers> {
    containers.as_deref().filter(|project| !project.is_empty()).map(Containers::of)
}

async fn up(global: &Global, bed: &StandingBed, docker: bool, clocks: bool) -> Result<Exit, Failure> {
    let masters = how_many(global)?;
    let policy = fleet::policy(global, &Config::default())?;
    let urls = if docker {
        if masters != 5 {
            return Err(Failure::new(
                Exit::Usage,
                "bad_request",
                "there are five containers: leave --masters out",
            ));
        }
        if !global.json && !global.quiet {
            output::note(
                "five containers are brought up; where their image must be pulled or made first, that takes a minute",
            );
        }
        bed.up_containers(clocks)?
    } else {
        let builder = Bed::builder().masters(masters);
        bed.up(if clocks { builder.clocks() } else { builder })?
    };
    let admitted = Redlock::builder().masters(&urls).policy(policy).init().await;
    if let Err(error) = admitted {
        // Half a bed is of no use to anybody.
        let _ = bed.down()?;
        return Err(error.into());
    }
    let text = format!("export QUORLOCK_MASTERS={}", urls.join(","));
    output::result(global, text, &json!({ "outcome": "up", "masters": urls }));
    if !global.json && !global.quiet {
        output::note(format_args!("{masters} masters are up; `quorlock testbed down` ends them"));
    }
    Ok(Exit::Done)
}

/// Here `--masters` is a number. The variable, which may name the masters of an earlier bed, does not count.
fn how_many(global: &Global) -> Result<usize, Failure> {
    let given = global.masters.join(",");
    let from_variable = std::env::var("QUORLOCK_MASTERS").is_ok_and(|variable| variable == given);
    if !fleet::is_given(&global.masters) || from_variable {
        return Ok(5);
    }
    given.parse().ok().filter(|masters| (1..=32).contains(masters)).ok_or_else(|| {
        Failure::new(Exit::Usage, "bad_request", "`testbed up --masters` takes a number from 1 to 32")
    })
}

fn down(global: &Global, bed: &StandingBed) -> Result<Exit, Failure> {
    let down = bed.down()?;
    let text = match (down.was_up, down.ended) {
        (false, _) => "no test bed was up".to_owned(),
        (true, ended) => format!("ended {ended} masters ({} had ended before)", down.already_gone),
    };
    let json = json!({ "outcome": "down", "was_up": down.was_up, "ended": down.ended, "already_gone": down.already_gone });
    output::result(global, text, &json);
    Ok(Exit::Done)
}

fn status(global: &Global, bed: &StandingBed) -> Result<Exit, Failure> {
    let masters = bed.status()?;
    let lines: Vec<String> = masters.iter().map(line).collect();
    output::result(global, lines.join("\n"), &json!({ "outcome": "up", "masters": masters }));
    Ok(Exit::Done)
}

fn line(master: &MasterStatus) -> String {
    let pid = master.pid.map_or_else(String::new, |pid| format!("pid {pid}"));
    let rest = match (&master.report, &master.trouble) {
        (Some(report), _) => {
            format!("{}, {} keys, up {} s", report.role, report.keys, report.uptime)
        }
        (None, Some(trouble)) => trouble.clone(),
        (None, None) => String::new(),
    };
    format!("{:<3} {:<25} {:<7} {:<12} {rest}", master.name, master.url, master.condition.as_str(), pid)
        .trim_end()
        .to_owned()
}
