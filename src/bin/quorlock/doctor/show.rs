//! The report, for people and for programs.

use std::io::Write;
use std::time::Duration;

use quorlock::{Abstention, MasterFacts, SurveyedMaster};
use serde_json::{Value, json};

use super::clocks::deviations;
use super::finding::{Finding, Note, Verdict};
use super::masters::{Health, name, slowest};
use super::report::Report;
use super::servers::version;
use crate::args::{Doctor, Global};
use crate::duration::{millis, show};
use crate::explain::catalog::Lang;
use crate::output;
use crate::table::Table;

pub(super) fn print(global: &Global, args: &Doctor, report: &Report) {
    if global.json {
        output::result(global, "", &object(report));
        return;
    }
    let mut out = anstream::stdout().lock();
    let text = text(report, global.verbose > 0);
    // Whoever does not read to the end has had enough.
    let _ = writeln!(out, "{text}{}", if args.watch.is_some() { "\n" } else { "" });
    let _ = out.flush();
}

fn text(report: &Report, verbose: bool) -> String {
    let mut lines = vec![headline(report), String::new()];
    lines.extend(table(report));
    lines.push(String::new());
    for finding in &report.findings {
        lines.extend(paragraph(finding, verbose));
    }
    lines.join("\n")
}

fn headline(report: &Report) -> String {
    let quorum = report.survey.quorum;
    let of = |verdict| report.findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (needed, spare) = (quorum.needed(), report.up.saturating_sub(quorum.needed()));
    let votes = match report.health {
        Health::NoQuorum => format!("no quorum, {needed} needed"),
        Health::NoSpare => format!("{needed} needed, no spare"),
        Health::Ok | Health::Degraded => format!("{needed} needed, {spare} may fail"),
    };
    format!(
        "{} of {} masters up ({votes}); {}, {}, {} not checked",
        report.up,
        quorum.masters(),
        output::count(of(Verdict::Error), "error"),
        output::count(of(Verdict::Warning), "warning"),
        of(Verdict::Unchecked)
    )
}

fn table(report: &Report) -> Vec<String> {
    let clocks = deviations(&report.survey);
    let mut table =
        Table::new(["", "master", "software", "role", "up for", "slowest answer", "clock", "votes"]);
    for (nth, master) in report.survey.masters.iter().enumerate() {
        let clock =
            clocks.iter().find(|(known, _)| *known == name(nth, master)).map(|(_, micros)| micros / 1000);
        table.row(row(nth, master, clock), None);
    }
    table.lines()
}

fn row(nth: usize, master: &SurveyedMaster, clock: Option<i128>) -> [String; 8] {
    let of = |tell: fn(&MasterFacts) -> String| master.facts.as_ref().map(tell).unwrap_or_default();
    [
        format!("m{}", nth + 1),
        master.master.clone(),
        of(version),
        master.facts.as_ref().map_or("unseen", |facts| facts.info("role").unwrap_or("?")).to_owned(),
        of(|facts| since(facts.number("uptime_in_seconds").unwrap_or(0))),
        of(|facts| show(slowest(facts))),
        clock.map(|millis| format!("{millis:+} ms")).unwrap_or_default(),
        of(|facts| match (facts.unfit.is_some(), facts.abstains) {
            (true, _) => "no".to_owned(),
            (_, None) => "yes".to_owned(),
            (_, Some(Abstention::Quarantined(left))) => format!("abstains for {}", show(left)),
            (_, Some(Abstention::NeverAdmitted)) => "abstains".to_owned(),
        }),
    ]
}

/// `3 d`, `5 h`: how long a server is up.
fn since(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn paragraph(finding: &Finding, verbose: bool) -> Vec<String> {
    let (colour, word) = match finding.verdict {
        Verdict::Ok => ("\x1b[32m", "ok       "),
        Verdict::Unchecked => ("\x1b[2m", "unchecked"),
        Verdict::Warning => ("\x1b[33m", "WARNING  "),
        Verdict::Error => ("\x1b[31m", "ERROR    "),
    };
    let id = finding.check.id;
    let (title, what) = (finding.check.title(Lang::En), finding.what());
    let head = match finding.verdict {
        Verdict::Ok => what.to_owned(),
        _ if what.is_empty() => title.to_owned(),
        _ => format!("{title}: {what}"),
    };
    let mut lines = vec![format!("{colour}{word}\x1b[0m  {id:<3}  {head}")];
    let grave = finding.verdict >= Verdict::Warning;
    let shown = finding.notes.iter().filter(|note| note.verdict > Verdict::Ok || verbose || !grave);
    for (subjects, note) in together(shown) {
        let mark = if note.verdict == finding.verdict {
            String::new()
        } else {
            format!(" ({})", note.verdict.as_str())
        };
        lines.push(format!("             {}: {}{mark}", subjects.join(", "), note.what));
    }
    if grave {
        lines.push(format!("      why    {}", finding.check.why(Lang::En)));
    }
    if finding.verdict > Verdict::Ok {
        let label = if grave { "fix" } else { "try" };
        lines.extend(finding.fix.iter().map(|command| format!("      {label}    {command}")));
    }
    lines
}

/// What is said of several is said once.
fn together<'a>(notes: impl Iterator<Item = &'a Note>) -> Vec<(Vec<&'a str>, &'a Note)> {
    let mut together: Vec<(Vec<&str>, &Note)> = Vec::new();
    for note in notes {
        let same =
            |other: &&mut (Vec<&str>, &Note)| (other.1.verdict, &other.1.what) == (note.verdict, &note.what);
        match together.iter_mut().find(same) {
            Some((subjects, _)) => subjects.push(&note.subject),
            None => together.push((vec![&note.subject], note)),
        }
    }
    together
}

fn object(report: &Report) -> Value {
    let clocks = deviations(&report.survey);
    let masters = report.survey.masters.iter().enumerate().map(|(nth, master)| {
        let clock =
            clocks.iter().find(|(known, _)| *known == name(nth, master)).map(|(_, micros)| micros / 1000);
        master_object(master, clock.and_then(|millis| i64::try_from(millis).ok()))
    });
    json!({
        "outcome": report.outcome(),
        "health": report.health.as_str(),
        "up": report.up,
        "needed": report.survey.quorum.needed(),
        "masters": masters.collect::<Vec<_>>(),
        "findings": report.findings.iter().map(Finding::json).collect::<Vec<_>>(),
    })
}

fn master_object(master: &SurveyedMaster, clock: Option<i64>) -> Value {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let facts = master.facts.as_ref().ok();
    json!({
        "master": master.master,
        "error": master.facts.as_ref().err(),
        "software": facts.map(version),
        "role": facts.and_then(|facts| facts.info("role")),
        "uptime_s": facts.and_then(|facts| facts.number("uptime_in_seconds")),
        "votes": facts.map(|facts| facts.unfit.is_none() && facts.abstains.is_none()),
        "abstains": facts.and_then(|facts| facts.abstains).map(|abstention| match abstention {
            Abstention::Quarantined(left) => json!({ "quarantined_ms": millis(left) }),
            Abstention::NeverAdmitted => json!("never_admitted"),
        }),
        "round_trip_us": facts.map(|facts| json!({
            "p50": micros(facts.round_trips[facts.round_trips.len() / 2]),
            "max": micros(slowest(facts)),
        })),
        "clock_ahead_ms": clock,
    })
}
