//! The report for a terminal.

use std::fmt::Write as _;

use super::report::{Figure, Report, Section};

const BAR: usize = 12;

/// The whole of it.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    for section in report.sections.iter().filter(|section| !section.rows.is_empty()) {
        table(&mut text, section);
    }
    for skipped in &report.skipped {
        let _ = writeln!(text, "skipped: {}: {}", skipped.what, skipped.why);
    }
    if !report.aims.is_empty() {
        let _ = writeln!(text, "\naims");
        for aim in &report.aims {
            let met = if aim.met { "met" } else { "missed" };
            let measured = interval(aim.measured.median, aim.measured.low, aim.measured.high);
            let _ = writeln!(text, "  {:<50}{measured:>24}   {:<14}{met}", aim.what, aim.asked);
        }
    }
    let _ = write!(text, "\noverlapping holds: {} (must be 0)", report.overlaps);
    if !report.complete {
        let _ = write!(text, "\ninterrupted: this is not the whole run");
    }
    text
}

fn table(text: &mut String, section: &Section) {
    let _ = writeln!(text, "\n{}", section.title);
    let mut columns: Vec<(&str, &str)> = Vec::new();
    for figure in section.rows.iter().flat_map(|row| &row.figures) {
        if !columns.iter().any(|(name, _)| *name == figure.name) {
            columns.push((&figure.name, &figure.unit));
        }
    }
    // The bar is of the first time there is.
    let drawn =
        columns.iter().find(|(_, unit)| ["µs", "ms", "µs/renewal"].contains(unit)).map(|(name, _)| *name);
    let value = |figure: &Figure| figure.estimate.median;
    let largest = |group: &str| {
        let rows = section.rows.iter().filter(|row| row.group == group);
        rows.filter_map(|row| row.figure(drawn?).map(value)).fold(f64::MIN_POSITIVE, f64::max)
    };
    let mut rows = vec![vec![String::new(), String::new()]];
    for (name, unit) in &columns {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        rows[0].push(format!("{name}{unit}"));
    }
    rows[0].push("ratio".into());
    let mut group = "";
    for row in &section.rows {
        if row.group != group {
            group = &row.group;
            rows.push(vec![format!("{group}:")]);
        }
        let figure = drawn.and_then(|name| row.figure(name));
        let mut cells = vec![row.name.clone()];
        cells.push(figure.map_or_else(String::new, |figure| bar(value(figure) / largest(&row.group))));
        for (name, _) in &columns {
            cells.push(row.figure(name).map_or_else(String::new, cell));
        }
        let ratio = row.figures.iter().find_map(|figure| figure.ratio.as_ref().map(|ratio| (figure, ratio)));
        cells.push(ratio.map_or_else(String::new, |(figure, ratio)| {
            if ratio.differs {
                let estimate = ratio.estimate;
                let shown = interval(estimate.median, estimate.low, estimate.high);
                format!("{} {shown} of {}", figure.name, ratio.to)
            } else {
                format!("{}: no difference to {}", figure.name, ratio.to)
            }
        }));
        rows.push(cells);
    }
    lay_out(text, &rows);
}

fn lay_out(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let full = rows.iter().filter(|row| row.len() > 1);
    let width = |column: usize| {
        full.clone().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            // Names and words to the left, numbers to the right.
            if column < 2 || column + 1 == columns {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn cell(figure: &Figure) -> String {
    let shown = number(figure.estimate.median);
    match figure.bound {
        Some(bound) => format!("{shown} (≥ {})", number(bound)),
        None => shown,
    }
}

/// In eighths of a letter.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * BAR as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

pub(crate) fn interval(median: f64, low: f64, high: f64) -> String {
    format!("{} [{}–{}]", number(median), number(low), number(high))
}

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value == value.trunc() => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
