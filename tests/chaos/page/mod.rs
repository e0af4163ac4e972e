//! A run as a page: one file, no script, readable in light and dark, on paper and on a phone.

mod timeline;

use std::fmt::Write as _;

use crate::history::breach::Fault;
use crate::history::check::{Finding, Judgement, Kind, millis};
use crate::history::{History, Nanos};

const STYLE: &str = include_str!("page.css");

/// More than these make no page readable; the history has them all.
const FINDINGS: usize = 100;

pub(crate) fn draw(history: &History, judgement: &Judgement) -> String {
    let run = &history.run;
    let bugs = judgement.bugs().count();
    let explained = judgement.findings.len() - bugs;
    let mutant =
        run.mutant.as_ref().map(|word| format!(", clients broken on purpose: {word}")).unwrap_or_default();
    let title = format!("quorlock chaos, seed {}{}", run.seed, escape(&mutant));
    let (class, verdict) = match (bugs, explained) {
        (0, 0) => ("good", "Nothing happened that should not.".to_owned()),
        (0, _) => (
            "good",
            format!(
                "No bug. {explained} things happened that lie outside the promise: each has a cause below."
            ),
        ),
        _ => ("bad", format!("{bugs} bugs.")),
    };
    let fencing = if run.fenced { "with fencing tokens" } else { "without fencing tokens" };
    let setting = format!(
        "{} clients, {} masters, ttl {:.0} ms, {fencing}, {:.1} s in all.",
        run.clients,
        run.masters,
        millis(run.ttl),
        seconds(history.ended() - history.began()),
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p class=\"verdict {class}\">{verdict}</p>\n<p>{setting}</p>\n<p>Again: <code>{}</code></p>\n{}{}{}{}{}</body>\n</html>\n",
        escape(&run.command),
        figures(judgement),
        timeline::draw(history, judgement),
        findings(history, judgement),
        fairness(judgement),
        faults(history, judgement),
    )
}

fn figures(judgement: &Judgement) -> String {
    let struck = judgement.faults.iter().filter(|fault| !fault.skipped).count();
    let figures = [
        ("locks granted", judgement.holds.len().to_string()),
        ("asked for while held", judgement.contended.to_string()),
        ("claims refused", judgement.refused.to_string()),
        ("faults", struck.to_string()),
        ("locks lost", judgement.lost.to_string()),
        ("latest word of a loss", format!("{:.0} ms", millis(judgement.worst_told_late))),
        ("increments", judgement.increments.to_string()),
        ("increments lost", judgement.lost_updates.to_string()),
        ("turned away by token", judgement.turned_away.to_string()),
        ("overlaps, bugs", judgement.count(Kind::Overlap, true).to_string()),
        ("overlaps, explained", judgement.count(Kind::Overlap, false).to_string()),
    ];
    let figure = |(what, number)| format!("<li><b>{number}</b><span>{what}</span></li>\n");
    format!("<ul class=\"figures\">\n{}</ul>\n", figures.map(figure).concat())
}

fn findings(history: &History, judgement: &Judgement) -> String {
    if judgement.findings.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&Finding> = judgement.findings.iter().collect();
    sorted.sort_by_key(|finding| (!finding.is_bug(), finding.from));
    let mut text = "<h2>What should not be</h2>\n<ul class=\"findings\">\n".to_owned();
    for finding in sorted.iter().take(FINDINGS) {
        let class = if finding.is_bug() { "bug" } else { "explained" };
        let when = if finding.from == 0 {
            String::new()
        } else {
            format!("{:.3} s: ", since(history, finding.from))
        };
        let _ = writeln!(text, "<li class=\"{class}\">{when}{}</li>", escape(&finding.to_string()));
    }
    if let Some(more) = sorted.len().checked_sub(FINDINGS).filter(|more| *more > 0) {
        let _ = writeln!(text, "<li>and {more} more</li>");
    }
    text + "</ul>\n"
}

fn fairness(judgement: &Judgement) -> String {
    let mut text = "<h2>Who got how many locks</h2>\n<div class=\"table\"><table>\n<tr><th>client</th><th class=\"number\">locks</th></tr>\n".to_owned();
    for (client, number) in &judgement.grants {
        let _ = writeln!(text, "<tr><td>{}</td><td class=\"number\">{number}</td></tr>", escape(client));
    }
    text + "</table></div>\n"
}

fn faults(history: &History, judgement: &Judgement) -> String {
    if judgement.faults.is_empty() {
        return String::new();
    }
    let mut text = "<h2>Faults</h2>\n<div class=\"table\"><table>\n<tr><th class=\"number\">at, s</th><th class=\"number\">for, ms</th><th>fault</th><th>on</th></tr>\n".to_owned();
    for fault in &judgement.faults {
        let skipped = if fault.skipped { " (not everywhere)" } else { "" };
        let _ = writeln!(
            text,
            "<tr><td class=\"number\">{:.3}</td><td class=\"number\">{:.0}</td><td>{}{skipped}</td><td>{}</td></tr>",
            since(history, fault.from),
            millis(fault.until - fault.from),
            escape(&fault.word),
            escape(&fault.on.join(" ")),
        );
    }
    text + "</table></div>\n"
}

/// How a fault looks.
fn class(fault: &Fault) -> &'static str {
    match fault.name() {
        "kill" | "kill-client" | "restart-empty" | "restart-old-snapshot" | "three-at-once" => "down",
        "freeze" | "freeze-client" | "pause-writes" => "frozen",
        name if name.starts_with("cut") || name.starts_with("lose") => "cut",
        "refuse" | "slow" | "reset" | "client-kill" => "cut",
        "clock-slew" => "clock",
        "clock-step" | "flush" | "evict" | "del" => "breach",
        _ => "other",
    }
}

fn since(history: &History, at: Nanos) -> f64 {
    seconds(at.saturating_sub(history.began()))
}

fn seconds(nanos: Nanos) -> f64 {
    millis(nanos) / 1_000.0
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
