//! The report as one page that needs nothing else, and its charts as pictures of their own.

mod charts;
mod draw;

use std::fmt::Write as _;

use super::report::{Figure, Report, Section};
use super::terminal::{interval, number};
use charts::Chart;
use draw::escape;

const STYLE: &str = include_str!("style.css");
const LAYOUT: &str = include_str!("layout.css");

/// Every chart by its name.
pub(super) fn pictures(report: &Report) -> Vec<(String, String)> {
    let charts = report.sections.iter().flat_map(charts::of);
    charts.map(|chart| (chart.name, chart.canvas.picture(&chart.title, &chart.legend, STYLE))).collect()
}

pub(super) fn html(report: &Report) -> String {
    let mut page = String::new();
    let kind = if report.quick { "quick run" } else { "full run" };
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>quorlock bench</title>\n\
         <style>\n{STYLE}{LAYOUT}</style>\n</head>\n<body>\n<main>\n\
         <h1>What a quorum costs, and what it gives</h1>\n"
    );
    head(&mut page, report, kind);
    for section in report.sections.iter().filter(|section| !section.rows.is_empty()) {
        write_section(&mut page, section);
    }
    tail(&mut page, report);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn head(page: &mut String, report: &Report, kind: &str) {
    if let Some(ratio) = headline(report) {
        let _ = writeln!(page, "<p>{}</p>", escape(&ratio));
    }
    let word = if report.overlaps == 0 { "good" } else { "bad" };
    let _ = writeln!(
        page,
        "<p>Two holders of one lock at once, in all contended scenarios: <span class=\"{word}\">{}</span> (must be 0).</p>",
        report.overlaps
    );
    let told = |key: &str| match &report.environment[key] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let others = report.environment["others_percent"].as_f64().unwrap_or(0.0);
    let _ = writeln!(
        page,
        "<p class=\"soft\">quorlock {} · {kind} of {:.0} s · {} cores ({}) · Linux {} · {} · {} · {} · load before {} · others \
         used {others:.0} % of the cores</p>",
        report.version,
        report.seconds,
        told("cores"),
        escape(&told("cpu")),
        escape(&told("kernel")),
        escape(&told("server")),
        escape(&told("rustc")),
        told("runtime"),
        told("load"),
    );
    if others > 10.0 {
        let _ = writeln!(
            page,
            "<p class=\"bad\">Other programs were busy: only ratios within this run tell something.</p>"
        );
    }
    if report.environment["debug_build"] == true {
        let _ = writeln!(page, "<p class=\"bad\">A debug build: its figures mean nothing.</p>");
    }
    if !report.complete {
        let _ = writeln!(page, "<p class=\"bad\">Interrupted: this is not the whole run.</p>");
    }
    let _ = writeln!(
        page,
        "<p class=\"soft\">Rows of a section take turns in one process against the same masters. [Intervals]: 95 % of the medians of \
         resampled blocks; where that of a ratio holds 1, it is no difference.</p>"
    );
}

/// The one sentence a hurried reader takes along.
fn headline(report: &Report) -> Option<String> {
    let figure = report.section("loopback")?.row("", "quorlock")?.figure("acquire p50")?;
    let ratio = figure.ratio.as_ref()?;
    let estimate = ratio.estimate;
    let shown = interval(estimate.median, estimate.low, estimate.high);
    Some(format!(
        "On this machine a lock on five masters took {shown} × as long to acquire as one on a single instance by bare fred: {} at \
         the median.",
        draw::micros(figure.estimate.median)
    ))
}

fn write_section(page: &mut String, section: &Section) {
    let _ = writeln!(
        page,
        "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"soft\">{}</p>\n<div class=\"charts\">",
        escape(&section.profile),
        escape(&section.title),
        escape(&section.note)
    );
    let charts = charts::of(section);
    for (nth, Chart { title, legend, canvas, .. }) in charts.iter().enumerate() {
        let _ = writeln!(page, "<figure>\n<h3>{}</h3>", escape(title));
        if !legend.is_empty() {
            page.push_str("<ul class=\"legend\">");
            for (nth, name) in legend.iter().enumerate() {
                let _ = write!(page, "<li class=\"k{nth}\"><i></i>{}</li>", escape(name));
            }
            page.push_str("</ul>\n");
        }
        page.push_str(&canvas.svg(title));
        let _ = writeln!(page, "\n<details><summary>The figures</summary>");
        if nth == 0 {
            table(page, section);
        } else {
            let _ = writeln!(page, "<p>In the table of the first chart of this section.</p>");
        }
        page.push_str("</details>\n</figure>\n");
    }
    page.push_str("</div>\n</section>\n");
}

fn table(page: &mut String, section: &Section) {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    for figure in section.rows.iter().flat_map(|row| &row.figures) {
        if !columns.iter().any(|(name, _)| *name == figure.name) {
            columns.push((&figure.name, &figure.unit));
        }
    }
    page.push_str("<div class=\"wide\"><table><thead><tr><th>row</th>");
    for (name, unit) in &columns {
        let _ = write!(page, "<th>{} {}</th>", escape(name), escape(unit));
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in &section.rows {
        let group = if row.group.is_empty() { String::new() } else { format!("{} · ", row.group) };
        let _ =
            write!(page, "<tr><td>{}<small>{}</small></td>", escape(&(group + &row.name)), escape(&row.what));
        for (name, _) in &columns {
            let _ = write!(page, "<td>{}</td>", row.figure(name).map_or_else(String::new, cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn cell(figure: &Figure) -> String {
    let mut cell = number(figure.estimate.median);
    if figure.blocks.len() > 1 {
        let _ =
            write!(cell, "<small>[{}–{}]</small>", number(figure.estimate.low), number(figure.estimate.high));
    }
    if let Some(bound) = figure.bound {
        let _ = write!(cell, "<small>bound {}</small>", number(bound));
    }
    if let Some(ratio) = &figure.ratio {
        let estimate = ratio.estimate;
        let shown = if ratio.differs {
            format!("{} × {}", interval(estimate.median, estimate.low, estimate.high), escape(&ratio.to))
        } else {
            format!("no difference to {}", escape(&ratio.to))
        };
        let _ = write!(cell, "<small>{shown}</small>");
    }
    cell
}

fn tail(page: &mut String, report: &Report) {
    if !report.aims.is_empty() {
        page.push_str(
            "<section><h2>What was aimed at</h2>\n<div class=\"wide\"><table class=\"words\"><thead><tr><th>what</th><th>measured</th>\
             <th>asked</th><th></th></tr></thead><tbody>\n",
        );
        for aim in &report.aims {
            let (word, met) = if aim.met { ("good", "met") } else { ("bad", "missed") };
            let measured = interval(aim.measured.median, aim.measured.low, aim.measured.high);
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td>{measured}</td><td>{}</td><td class=\"{word}\">{met}</td></tr>",
                escape(&aim.what),
                escape(&aim.asked)
            );
        }
        page.push_str("</tbody></table></div></section>\n");
    }
    if !report.skipped.is_empty() {
        page.push_str("<section><h2>Skipped</h2>\n<ul>\n");
        for skipped in &report.skipped {
            let _ = writeln!(page, "<li>{}: {}</li>", escape(&skipped.what), escape(&skipped.why));
        }
        page.push_str("</ul></section>\n");
    }
}
