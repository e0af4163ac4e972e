//! The time line: a row for the faults' names, one for each client, one for each master.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{class, escape, since};
use crate::history::breach::Fault;
use crate::history::check::{Judgement, Kind, millis, stalls};
use crate::history::hold::Hold;
use crate::history::{History, Nanos};

const NAMES: u32 = 62;
const AXIS: f64 = 22.0;
const LABEL: f64 = 16.0;
const ROW: f64 = 30.0;
const BAR: f64 = 16.0;
/// About what a letter of the labels takes.
const LETTER: f64 = 6.2;

struct Chart<'a> {
    history: &'a History,
    judgement: &'a Judgement,
    /// Pixels a second.
    scale: f64,
    width: f64,
    /// By name, where it begins.
    rows: BTreeMap<String, f64>,
    labels: Vec<(&'a Fault, usize)>,
    clients_from: f64,
    height: f64,
    svg: String,
}

pub(super) fn draw(history: &History, judgement: &Judgement) -> String {
    let mut chart = Chart::new(history, judgement);
    let names = chart.names();
    chart.ground();
    chart.faults();
    chart.holds();
    chart.overlaps();
    let Chart { svg, width, height, .. } = chart;
    format!(
        "<h2>Who held what when</h2>\n<div class=\"chart\">\n<svg class=\"names\" width=\"{NAMES}\" height=\"{height}\" role=\"presentation\">\n{names}</svg>\n\
         <div class=\"time\" tabindex=\"0\" role=\"region\" aria-label=\"time line\"><svg width=\"{width:.0}\" height=\"{height}\">\n{svg}</svg></div>\n</div>\n{}",
        legend(judgement)
    )
}

impl<'a> Chart<'a> {
    fn new(history: &'a History, judgement: &'a Judgement) -> Self {
        let length = since(history, history.ended()).max(0.1);
        // The whole of a short run on a screen; a long one is for scrolling.
        let scale = (1_250.0 / length).clamp(45.0, 220.0);
        let (labels, lanes) = lanes(history, &judgement.faults, scale);
        let clients_from = AXIS + LABEL * lanes as f64 + 6.0;
        let mut clients: BTreeSet<&str> = history.records.iter().map(|record| record.by.as_str()).collect();
        clients.retain(|by| *by != "chaos" && *by != "register");
        let mut clients: Vec<&str> = clients.into_iter().collect();
        clients.sort_by_key(|name| (name.len(), *name));
        let masters = (1..=history.run.masters.min(64)).map(|number| format!("m{number}"));
        let names = clients.into_iter().map(String::from).chain(masters);
        let rows: BTreeMap<String, f64> =
            names.enumerate().map(|(index, name)| (name, clients_from + ROW * index as f64)).collect();
        let height = clients_from + ROW * rows.len() as f64 + 4.0;
        let width = length * scale + 30.0;
        Self { history, judgement, scale, width, rows, labels, clients_from, height, svg: String::new() }
    }

    fn x(&self, at: Nanos) -> f64 {
        since(self.history, at) * self.scale + 6.0
    }

    fn names(&self) -> String {
        let lanes = if self.judgement.faults.is_empty() { "" } else { "faults" };
        let mut text =
            format!("<text class=\"name faint\" x=\"8\" y=\"{:.0}\">{lanes}</text>\n", AXIS + 12.0);
        let _ = writeln!(text, "<text class=\"name faint\" x=\"8\" y=\"14\">seconds</text>");
        for (name, y) in &self.rows {
            let _ =
                writeln!(text, "<text class=\"name\" x=\"8\" y=\"{:.0}\">{}</text>", y + 20.0, escape(name));
        }
        text
    }

    /// Bands, so that the eye keeps to its row, and the seconds.
    fn ground(&mut self) {
        let mut ys: Vec<f64> = self.rows.values().copied().collect();
        ys.sort_by(f64::total_cmp);
        for y in ys.iter().step_by(2) {
            let _ = writeln!(
                self.svg,
                "<rect class=\"band\" x=\"0\" y=\"{y:.0}\" width=\"{:.0}\" height=\"{ROW}\"/>",
                self.width
            );
        }
        let length = since(self.history, self.history.ended());
        let step = if self.scale >= 90.0 { 1 } else { 2 };
        for second in (0..=length as u64).step_by(step) {
            let x = second as f64 * self.scale + 6.0;
            let _ = writeln!(
                self.svg,
                "<line class=\"tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"18\" y2=\"{:.0}\"/><text class=\"faint\" x=\"{x:.1}\" y=\"14\">{second}</text>",
                self.height
            );
        }
    }

    fn faults(&mut self) {
        for (fault, lane) in std::mem::take(&mut self.labels) {
            let (from, until) = (self.x(fault.from), self.x(fault.until));
            let (class, word) = (class(fault), escape(&fault.word));
            let title = format!(
                "{word} on {} at {:.3} s for {:.0} ms",
                escape(&fault.on.join(" ")),
                since(self.history, fault.from),
                millis(fault.until - fault.from)
            );
            let y = AXIS + LABEL * lane as f64;
            let _ = writeln!(
                self.svg,
                "<g><title>{title}</title><rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.0}\" width=\"3\" height=\"{:.0}\"/><text x=\"{:.1}\" y=\"{:.0}\">{word}</text></g>",
                LABEL - 3.0,
                from + 6.0,
                y + 11.0
            );
            for y in fault.on.iter().filter_map(|on| self.rows.get(on)) {
                let _ = writeln!(
                    self.svg,
                    "<rect class=\"{class} zone\" x=\"{from:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"{:.0}\" rx=\"2\"><title>{title}</title></rect>\
                     <rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.0}\" width=\"2\" height=\"{:.0}\"/>",
                    y + 2.0,
                    (until - from).max(3.0),
                    ROW - 4.0,
                    y + 2.0,
                    ROW - 4.0
                );
            }
        }
        for (client, from, until) in stalls(self.history) {
            let Some(y) = self.rows.get(&client) else { continue };
            let (from, until) = (self.x(from), self.x(until));
            let _ = writeln!(
                self.svg,
                "<rect class=\"frozen\" x=\"{from:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"3\"><title>{client} did not run</title></rect>",
                y + ROW - 4.0,
                (until - from).max(1.0)
            );
        }
    }

    fn holds(&mut self) {
        for hold in &self.judgement.holds {
            let Some(y) = self.rows.get(&hold.client) else { continue };
            let (asked, granted, until) = (self.x(hold.asked), self.x(hold.granted), self.x(hold.until()));
            let (top, middle) = (y + (ROW - BAR) / 2.0, y + ROW / 2.0);
            let colour = colour(&hold.resource);
            let _ = writeln!(
                self.svg,
                "<line class=\"wait\" x1=\"{asked:.1}\" x2=\"{granted:.1}\" y1=\"{middle:.0}\" y2=\"{middle:.0}\"/>\
                 <rect class=\"{colour}\" x=\"{granted:.1}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"><title>{}</title></rect>",
                (until - granted).max(1.5),
                self.title(hold)
            );
            for (class, sign, at) in
                [("risk", "!", hold.at_risk), ("lost", "✕", hold.lost.map(|loss| loss.told))]
            {
                if let Some(x) = at.map(|at| self.x(at)) {
                    let _ = writeln!(
                        self.svg,
                        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.0}\">{sign}</text>",
                        middle + 4.0
                    );
                }
            }
        }
    }

    fn title(&self, hold: &Hold) -> String {
        let token = if hold.fence == 0 { String::new() } else { format!(", token {}", hold.fence) };
        escape(&format!(
            "{} held {} from {:.3} s to {:.3} s, {} votes{token}{}",
            hold.name(),
            hold.resource,
            since(self.history, hold.granted),
            since(self.history, hold.until()),
            hold.votes,
            if hold.lost.is_some() { ", and lost it" } else { "" }
        ))
    }

    /// From the one's row to the other's.
    fn overlaps(&mut self) {
        for finding in self.judgement.findings.iter().filter(|finding| finding.kind == Kind::Overlap) {
            let rows: Vec<f64> =
                finding.clients.iter().filter_map(|client| self.rows.get(client)).copied().collect();
            let top = rows.iter().copied().fold(self.height, f64::min);
            let bottom = rows.iter().copied().fold(self.clients_from, f64::max) + ROW;
            let (from, until) = (self.x(finding.from), self.x(finding.until));
            let class = if finding.is_bug() { "overlap" } else { "overlap explained" };
            let _ = writeln!(
                self.svg,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{:.0}\"><title>{}</title></rect>",
                (until - from).max(2.0),
                (bottom - top).max(0.0),
                escape(&finding.to_string())
            );
        }
    }
}

/// Each fault's label in the first lane that has room for its word; and how many lanes that takes.
fn lanes<'a>(history: &History, faults: &'a [Fault], scale: f64) -> (Vec<(&'a Fault, usize)>, usize) {
    let mut ends: Vec<f64> = Vec::new();
    let labels = faults.iter().map(|fault| {
        let from = since(history, fault.from) * scale;
        let until = from + 12.0 + fault.word.len() as f64 * LETTER;
        let lane = ends.iter().position(|end| *end <= from).unwrap_or(ends.len());
        match ends.get_mut(lane) {
            Some(end) => *end = until,
            None => ends.push(until),
        }
        (fault, lane)
    });
    let labels = labels.collect();
    (labels, ends.len().max(1))
}

fn colour(resource: &str) -> &'static str {
    const COLOURS: [&str; 4] = ["r0", "r1", "r2", "r3"];
    let number = resource.rsplit(':').next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(1);
    COLOURS[number.wrapping_sub(1) % COLOURS.len()]
}

fn legend(judgement: &Judgement) -> String {
    let mut resources: Vec<&str> = judgement.holds.iter().map(|hold| hold.resource.as_str()).collect();
    resources.sort_unstable();
    resources.dedup();
    let swatch = |class: &str, what: &str| {
        format!(
            "<li><svg width=\"16\" height=\"14\"><rect class=\"{class}\" x=\"1\" y=\"1\" width=\"14\" height=\"12\" rx=\"2\"/></svg>{what}</li>\n"
        )
    };
    let mut items: String = resources
        .iter()
        .take(4)
        .map(|resource| swatch(colour(resource), &format!("{} held", escape(resource))))
        .collect();
    items += "<li><svg width=\"16\" height=\"14\"><line class=\"wait\" x1=\"0\" x2=\"16\" y1=\"7\" y2=\"7\"/></svg>waiting</li>\n";
    items += "<li><svg width=\"16\" height=\"14\"><text class=\"lost\" x=\"8\" y=\"12\">✕</text></svg>told that it is lost</li>\n";
    items += "<li><svg width=\"16\" height=\"14\"><text class=\"risk\" x=\"8\" y=\"12\">!</text></svg>told that it is at risk</li>\n";
    for (class, what) in [
        ("down", "killed, restarted"),
        ("frozen", "stopped, paused (thin: did not run)"),
        ("cut", "cut off, slow, reset"),
        ("clock", "clock runs fast"),
        ("breach", "outside the promise"),
        ("other", "other faults"),
    ] {
        items += &swatch(class, what);
    }
    items += &swatch("overlap", "two holders: a bug");
    items += &swatch("overlap explained", "two holders: explained");
    format!("<ul class=\"legend\">\n{items}</ul>\n")
}
