//! `quorlock doctor`: the five pitfalls, and what leads to them, found from outside.
//!
//! | file | is |
//! |---|---|
//! | `finding` | what a check came to |
//! | `masters`, `servers`, `rights`, `clocks`, `locks`, `times` | the checks |
//! | `listen` | what MONITOR tells of others |
//! | `paste` | commands that mend |
//! | `report`, `show` | all of it together, for people and for programs |

mod clocks;
mod finding;
mod listen;
mod locks;
mod masters;
mod paste;
mod report;
mod rights;
mod servers;
mod show;
mod times;

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use quorlock::Survey;

use crate::args::{Doctor, Global};
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};
use crate::inspect::whole;
use crate::output::note;
use crate::signals::Signals;
use clocks::Clocks;
use finding::{Finding, Verdict};
use listen::Ear;
use masters::Health;
use report::Report;

/// How many commands of one master are listened to, at most.
const COMMANDS: usize = 200_000;
/// Longer would be an attack.
const LONGEST_MONITOR: Duration = Duration::from_secs(60);
/// How many keys are looked at for a ttl.
const KEYS: usize = 500;
/// How long they are searched for: among millions of keys of other types it would take minutes.
const SEARCH: Duration = Duration::from_secs(3);

pub(crate) async fn run(global: &Global, args: &Doctor) -> Result<Exit, Failure> {
    let fleet = Fleet::of(global)?;
    for resource in &args.resources {
        fleet::resource(resource)?;
    }
    check(args)?;
    let mut signals = Signals::catch()?;
    let mut clocks = Clocks::default();
    let interrupted = |exit| Failure::interrupted(exit, "interrupted");
    loop {
        let report = signals.or(examine(&fleet, args, &mut clocks)).await.map_err(interrupted)??;
        show::print(global, args, &report);
        let Some(pause) = args.watch else { return Ok(report.exit()) };
        signals.or(tokio::time::sleep(pause)).await.map_err(interrupted)?;
    }
}

/// Before any traffic.
fn check(args: &Doctor) -> Result<(), Failure> {
    let usage = |text: String| Err(Failure::new(Exit::Usage, "bad_request", text));
    match args {
        Doctor { monitor: Some(lasting), .. } if lasting.is_zero() || *lasting > LONGEST_MONITOR => {
            usage(format!(
                "--monitor {lasting:?} is out of range: 1ms to {LONGEST_MONITOR:?}, it costs the masters a lot"
            ))
        }
        Doctor { p99: Some(p99), .. } if p99.is_zero() => {
            usage("--p99 is zero: give the time that the work takes".into())
        }
        Doctor { watch: Some(pause), .. } if *pause < Duration::from_millis(100) => {
            usage(format!("--watch {pause:?} is too often: 100ms or more"))
        }
        _ => Ok(()),
    }
}

async fn examine(fleet: &Fleet, args: &Doctor, clocks: &mut Clocks) -> Result<Report, Failure> {
    let resources: Vec<&[u8]> =
        args.resources.iter().map(|resource| fleet::resource(resource)).collect::<Result<_, _>>()?;
    let survey = fleet.builder.survey(&resources).await?;
    let listing = match tokio::time::timeout(SEARCH, fleet.builder.list("*", KEYS)).await {
        Ok(listing) => listing?,
        Err(_) => locks::not_searched(&survey, SEARCH),
    };
    let policy = &fleet.policy;
    let looks = locks::looks(args, &survey, policy);

    let d = [
        masters::reachable(&survey, policy),
        masters::roles(&survey),
        masters::distinct(&survey),
        masters::fleet(&survey),
        servers::restarts(&survey, policy),
        servers::eviction(&survey),
        locks::without_ttl(&survey, &listing),
        locks::types(&survey, &looks),
        locks::votes(&looks),
        clocks.check(&survey, policy),
        servers::stalls(&survey, policy),
        servers::connections(&survey),
        rights::check(&survey, &looks),
        servers::software(&survey),
        times::policy(args, policy, &survey, &looks),
        servers::replicas(&survey),
    ];
    let mut p = [
        locks::owners(&looks, &listing),
        times::work(args, policy, &looks),
        locks::expiries(&survey, &looks),
        Finding::unchecked(
            "P4",
            "how locks are released shows only while they are",
            "quorlock doctor --monitor 5s   # off the peak: MONITOR halves what a master can do",
        ),
        failover(&d),
    ];
    if let Some(lasting) = args.monitor {
        listen_for(fleet, args, lasting, &survey, &mut p).await?;
    }
    let mut findings: Vec<Finding> = p.into_iter().chain(d).collect();
    if masters::seen(&survey).next().is_none() {
        let blind =
            findings.iter_mut().filter(|finding| finding.verdict == Verdict::Ok && finding.check.id != "D15");
        blind.for_each(|finding| {
            *finding = Finding::unchecked(finding.check.id, "no master answers", "quorlock doctor")
        });
    }
    let up = masters::up(&survey);
    let health = Health::of(&survey, up);
    Ok(Report { up, health, findings, survey })
}

/// Pitfall 5 is what others lead to.
fn failover(checks: &[Finding]) -> Finding {
    let mut finding = Finding::of("P5", "five independent masters, none promoted, none that forgot");
    let leads = |finding: &&Finding| ["D02", "D03", "D05", "D16"].contains(&finding.check.id);
    for lead in checks.iter().filter(leads).filter(|lead| lead.verdict >= Verdict::Warning) {
        finding.note(lead.verdict, lead.check.id, format!("{} found, see there", lead.notes.len()));
        finding.fix("quorlock explain 5");
    }
    finding
}

async fn listen_for(
    fleet: &Fleet,
    args: &Doctor,
    lasting: Duration,
    survey: &Survey,
    pitfalls: &mut [Finding; 5],
) -> Result<(), Failure> {
    note(format_args!(
        "warning: MONITOR runs on {} masters for {lasting:?}; it may halve what they can do meanwhile",
        survey.quorum.masters()
    ));
    let ear = Ear::default();
    let heard = fleet.builder.overhear(lasting, COMMANDS, |master, said| ear.hear(master, &said)).await?;
    let named: Vec<Vec<u8>> = args.resources.iter().map(|resource| resource.as_bytes().to_vec()).collect();
    let deaf = heard.iter().zip(&survey.masters).enumerate();
    let deaf: Vec<(String, &String)> = deaf
        .filter_map(|(nth, (heard, master))| Some((masters::name(nth, master), heard.as_ref().err()?)))
        .collect();
    let commands: usize = heard.iter().flatten().sum();
    let listened = format!("{commands} commands and {} locks heard in {lasting:?}", ear.locks());
    let blames = ear.blames(&named);
    for (pitfall, number) in pitfalls.iter_mut().take(4).zip(1..) {
        if pitfall.verdict == Verdict::Unchecked && deaf.len() < survey.masters.len() {
            *pitfall = Finding::of(pitfall.check.id, format!("nobody was heard to do it: {listened}"));
        }
        for blame in &blames {
            let Some(what) = blame.story.about(number) else { continue };
            pitfall.note(Verdict::Error, &whole(&blame.key), what);
            pitfall.fix(format!("quorlock explain {number}"));
        }
    }
    for (nth, master) in survey.masters.iter().enumerate() {
        if heard.get(nth).is_some_and(|heard| *heard == Ok(COMMANDS)) {
            let what = format!("it is so busy that listening ended after {COMMANDS} commands");
            pitfalls[3].note(Verdict::Unchecked, &masters::name(nth, master), what);
        }
    }
    for (name, why) in deaf {
        pitfalls[3].note(Verdict::Unchecked, &name, format!("cannot listen: {why}"));
    }
    if ear.not_followed() > 0 {
        let what = format!("{} commands about further keys were not followed", ear.not_followed());
        pitfalls[3].note(Verdict::Unchecked, "keys", what);
        pitfalls[3].fix("quorlock doctor --monitor 1s RESOURCE…");
    }
    Ok(())
}
