//! Which charts a section has.

use super::super::report::{Row, Section};
use super::super::terminal::number;
use super::draw::{Canvas, Scale, WIDTH, micros};

/// A picture with its name, its title, and what its colours mean.
pub(super) struct Chart {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) legend: Vec<String>,
    pub(super) canvas: Canvas,
}

pub(super) const HUES: usize = 6;

pub(super) fn of(section: &Section) -> Vec<Chart> {
    if section.rows.is_empty() {
        return Vec::new();
    }
    match section.profile.as_str() {
        "loopback" => vec![
            curves(
                section,
                "percentiles",
                "Acquire: how many are done within which time",
                &["quorlock", "quorlock-3", "quorlock-7", "quorlock-1", "single", "rslock"],
            ),
            bars(section, "loopback", "Acquire p50; the tick is the bound", "acquire p50"),
        ],
        "tasks" => vec![bars(section, "tasks", "Cycles a second, 64 tasks", "cycles")],
        "distance" => {
            vec![bars(section, "distance", "Acquire p50 by round trip; the tick is the bound", "acquire p50")]
        }
        "faults" => vec![strip(section)],
        "timeline" => vec![timeline(section)],
        "rate" => vec![knee(section)],
        "handoff" => vec![
            bars(section, "handoff", "Hand-off p50", "hand-off p50"),
            bars(
                section,
                "fairness",
                "Turns of the luckiest by those of the unluckiest",
                "luckiest/unluckiest",
            ),
            bars(section, "handoff-commands", "Commands a turn, all masters", "commands"),
        ],
        "renewal" => vec![bars(section, "renewal", "Client CPU a renewal", "client CPU")],
        "cost" => vec![
            bars(section, "cost-cpu", "Client CPU a cycle", "client CPU"),
            bars(section, "cost-commands", "Commands a cycle, all masters", "commands"),
        ],
        _ => Vec::new(),
    }
}

fn chart(name: &str, title: &str, canvas: Canvas) -> Chart {
    Chart { name: name.into(), title: title.into(), legend: Vec::new(), canvas }
}

/// The same row has the same colour throughout a chart.
fn hue(section: &Section, row: &Row) -> usize {
    let mut names: Vec<&str> = Vec::new();
    for row in &section.rows {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    match row.name.as_str() {
        "quorlock" => 0,
        name if name.starts_with("quorlock, ") => 0,
        "single" => 1,
        "fred" => 5,
        name if name.starts_with("rslock") => 3,
        name if name.starts_with("quorlock") || name == "min-votes-4" => 2,
        "single-wait" => 4,
        name => names.iter().position(|known| *known == name).unwrap_or(0) % HUES,
    }
}

/// A bar a row, its name above it; the interval as a whisker, the bound as a tick. Each group has its own scale.
fn bars(section: &Section, name: &str, title: &str, figure: &str) -> Chart {
    const ROW: f64 = 30.0;
    const GROUP: f64 = 26.0;
    const LETTER: f64 = 8.0;
    let rows: Vec<&Row> = section.rows.iter().filter(|row| row.figure(figure).is_some()).collect();
    let mut groups: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
    groups.dedup();
    let heads = groups.iter().filter(|group| !group.is_empty()).count() as f64;
    let mut canvas = Canvas::new(rows.len() as f64 * ROW + heads * GROUP + 6.0);
    let mut y = 4.0;
    for group in groups {
        if !group.is_empty() {
            y += GROUP;
            canvas.text("name", (0.0, y - 8.0), group);
        }
        let within = || rows.iter().filter(|row| row.group == group);
        let most = within().filter_map(|row| row.figure(figure)).map(|found| found.estimate.high);
        let most = most.fold(f64::MIN_POSITIVE, f64::max);
        let place = |value: f64| (value / most).clamp(0.0, 1.0) * (WIDTH - 2.0);
        for row in within() {
            let Some(found) = row.figure(figure) else { continue };
            let estimate = found.estimate;
            let shown = match found.unit.as_str() {
                "µs" => micros(estimate.median),
                "ms" => micros(estimate.median * 1e3),
                unit => format!("{} {unit}", number(estimate.median)),
            };
            let beside = match &found.ratio {
                Some(ratio) if ratio.differs => format!("{} × {}", number(ratio.estimate.median), ratio.to),
                Some(ratio) => format!("no difference to {}", ratio.to),
                None => String::new(),
            };
            canvas.text("", (0.0, y + 11.0), &row.name);
            // Left of the value, whose unit may be long; a letter of it is this wide at the most.
            let room = (shown.chars().count() as f64 * LETTER).max(88.0);
            canvas.text("soft end", (WIDTH - room, y + 11.0), beside);
            canvas.text("end name", (WIDTH, y + 11.0), shown);
            let class = format!("bar k{}", hue(section, row));
            canvas.rect("back", (0.0, y + 16.0), (WIDTH, 8.0), "");
            let told = format!("{}: {}", row.name, row.what);
            canvas.rect(&class, (0.0, y + 16.0), (place(estimate.median), 8.0), &told);
            let middle = y + 20.0;
            canvas.line("whisker", (place(estimate.low), middle), (place(estimate.high), middle));
            if let Some(bound) = found.bound {
                canvas.line("tick", (place(bound), y + 14.0), (place(bound), y + 26.0));
            }
            y += ROW;
        }
    }
    chart(name, title, canvas)
}

/// Where charts with two axes are drawn.
const LEFT: f64 = 56.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 236.0;

fn time_axis(canvas: &mut Canvas, scale: Scale) {
    for mark in scale.marks() {
        let y = scale.at(mark);
        canvas.line("grid", (LEFT, y), (RIGHT, y));
        canvas.text("soft end", (LEFT - 6.0, y + 4.0), micros(mark));
    }
}

fn curves(section: &Section, name: &str, title: &str, names: &[&str]) -> Chart {
    let rows: Vec<&Row> = section.rows.iter().filter(|row| names.contains(&row.name.as_str())).collect();
    let points = || rows.iter().flat_map(|row| &row.curve);
    let nines = |share: f64| -(1.0 - share).max(1e-9).log10();
    let most = points().map(|point| nines(point.0)).fold(2.0, f64::max);
    let scale = Scale::over(points().map(|point| point.1), BOTTOM, TOP);
    let across = |share: f64| LEFT + nines(share) / most * (RIGHT - LEFT);
    let mut canvas = Canvas::new(BOTTOM + 42.0);
    time_axis(&mut canvas, scale);
    for (share, shown) in
        [(0.0, "0"), (0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99")]
    {
        if nines(share) <= most {
            canvas.line("grid", (across(share), TOP), (across(share), BOTTOM));
            canvas.text("soft mid", (across(share).min(WIDTH - 18.0), BOTTOM + 16.0), shown);
        }
    }
    canvas.text("soft end", (RIGHT, BOTTOM + 34.0), "percent of all acquires");
    let mut legend = Vec::new();
    for (nth, row) in rows.iter().enumerate() {
        let places: Vec<(f64, f64)> =
            row.curve.iter().map(|(share, micros)| (across(*share), scale.at(*micros))).collect();
        canvas.curve(&format!("k{nth}"), &places);
        legend.push(row.name.clone());
    }
    Chart { legend, ..chart(name, title, canvas) }
}

/// From p50 to p99 of each state, how many claims succeeded, and how soon the others failed.
fn strip(section: &Section) -> Chart {
    const ROW: f64 = 34.0;
    let values = section.rows.iter().flat_map(|row| &row.figures).filter(|figure| figure.unit == "µs");
    let scale = Scale::over(values.map(|figure| figure.estimate.median), 4.0, WIDTH - 10.0);
    let bottom = section.rows.len() as f64 * ROW + 6.0;
    let mut canvas = Canvas::new(bottom + 22.0);
    for mark in scale.marks() {
        canvas.line("grid", (scale.at(mark), 0.0), (scale.at(mark), bottom));
        canvas.text("soft mid", (scale.at(mark).clamp(16.0, WIDTH - 20.0), bottom + 16.0), micros(mark));
    }
    for (nth, row) in section.rows.iter().enumerate() {
        let y = nth as f64 * ROW + 6.0;
        let figure = |name| row.figure(name).map(|figure| figure.estimate.median);
        let success = figure("success").unwrap_or(0.0);
        canvas.text("name", (0.0, y + 10.0), &row.name);
        let mut told = format!("{} % granted", number(success));
        if let (Some(p50), Some(p99)) = (figure("acquire p50"), figure("acquire p99")) {
            let (from, to) = (scale.at(p50), scale.at(p99));
            canvas.rect("bar k0", (from, y + 16.0), ((to - from).max(3.0), 8.0), "acquire, p50 to p99");
            told = format!("{told}, p50 {}, p99 {}", micros(p50), micros(p99));
        }
        if let Some(error) = figure("error p50") {
            canvas.dot("failed", (scale.at(error), y + 20.0), 4.5);
            told = format!("{told}, refused in {}", micros(error));
        }
        canvas.text("soft end", (WIDTH, y + 10.0), told);
    }
    let title = "A claim while masters fail: p50 to p99; dot: refused";
    chart("faults", title, canvas)
}

fn timeline(section: &Section) -> Chart {
    let scale = Scale::over(section.dots.iter().map(|dot| dot.millis * 1e3), BOTTOM, TOP);
    let last = section.dots.iter().map(|dot| dot.at).fold(0.1, f64::max);
    let across = |at: f64| LEFT + at / last * (RIGHT - LEFT);
    let mut canvas = Canvas::new(BOTTOM + 26.0);
    if let Some((from, to)) = section.fault {
        canvas.rect("fault", (across(from), TOP), (across(to) - across(from), BOTTOM - TOP), "the fault");
        canvas.text("soft mid", (across(from.midpoint(to)), TOP + 14.0), "two masters frozen");
    }
    time_axis(&mut canvas, scale);
    for second in 0..=last as u32 {
        canvas.text("soft mid", (across(f64::from(second)), BOTTOM + 18.0), format_args!("{second} s"));
    }
    // The rarer ones on top.
    for row in [0, 1] {
        for dot in section.dots.iter().filter(|dot| dot.row == row) {
            let class = if dot.ok { format!("dot k{row}") } else { "failed".into() };
            canvas.dot(&class, (across(dot.at), scale.at(dot.millis * 1e3)), if dot.ok { 2.2 } else { 3.5 });
        }
    }
    let legend = section.rows.iter().map(|row| row.name.clone()).collect();
    Chart { legend, ..chart("timeline", "Each claim's latency; red: it failed", canvas) }
}

/// Latency against the rate of arrivals, p50 drawn through, p99 dashed.
fn knee(section: &Section) -> Chart {
    let figure = |row: &Row, name: &str| row.figure(name).map_or(f64::NAN, |figure| figure.estimate.median);
    let values = section.rows.iter().flat_map(|row| [figure(row, "acquire p50"), figure(row, "acquire p99")]);
    let scale = Scale::over(values, BOTTOM, TOP);
    let rates = Scale::over(section.rows.iter().map(|row| figure(row, "arrivals")), LEFT, RIGHT);
    let mut canvas = Canvas::new(BOTTOM + 42.0);
    time_axis(&mut canvas, scale);
    for mark in rates.marks() {
        canvas.line("grid", (rates.at(mark), TOP), (rates.at(mark), BOTTOM));
        canvas.text("soft mid", (rates.at(mark).clamp(LEFT, RIGHT - 14.0), BOTTOM + 16.0), number(mark));
    }
    canvas.text("soft end", (RIGHT, BOTTOM + 34.0), "arrivals a second");
    let mut legend: Vec<String> = Vec::new();
    for row in &section.rows {
        if !legend.contains(&row.group) {
            legend.push(row.group.clone());
        }
    }
    for (nth, name) in legend.iter().enumerate() {
        for (percentile, dash) in [("acquire p50", ""), ("acquire p99", " dash")] {
            let rows = section.rows.iter().filter(|row| row.group == *name);
            let points: Vec<(f64, f64)> = rows
                .map(|row| (rates.at(figure(row, "arrivals")), scale.at(figure(row, percentile))))
                .collect();
            canvas.curve(&format!("k{nth}{dash}"), &points);
        }
    }
    Chart { legend, ..chart("rate", "Acquire by rate: p50, and dashed p99", canvas) }
}
