//! The arithmetic, on values whose answer is known, and what is made of a report.

use super::chance::Chance;
use super::report::{Dot, Ratio, Report, Row, SCHEMA, Section, Skipped};
use super::scenes::contention::{Told, Turn};
use super::sums::{Estimate, quantile};
use super::{aims, baseline, page, terminal};

#[test]
fn a_quantile_is_the_smallest_sample_with_that_share_at_or_below_it() {
    let mut samples: Vec<u32> = (1..=1000).rev().collect();
    let found = [0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&mut samples, q));
    assert_eq!(found, [1, 500, 990, 999, 1000]);
    assert_eq!((quantile(&mut [], 0.5), quantile(&mut [7], 0.99)), (0, 7));
}

#[test]
fn the_interval_of_a_known_distribution_is_as_wide_as_theory_has_it() {
    let mut chance = Chance::new();
    let (mut covered, mut width) = (0, 0.0);
    for _ in 0..40 {
        let values: Vec<f64> = (0..100).map(|_| chance.below(1_000_001) as f64 / 1e6).collect();
        let estimate = Estimate::of(&values, &mut chance);
        covered += usize::from(estimate.low <= 0.5 && 0.5 <= estimate.high);
        width += (estimate.high - estimate.low) / 40.0;
    }
    // 95 of 100 in the long run; a median of a hundred uniform values has a deviation of 0.05.
    assert!(covered >= 30, "only {covered} of 40 intervals cover the median");
    assert!((0.12..0.28).contains(&width), "{width}");
}

#[test]
fn equal_values_leave_no_doubt() {
    let estimate = Estimate::of(&[2.0; 5], &mut Chance::new());
    assert_eq!(estimate, Estimate { median: 2.0, low: 2.0, high: 2.0 });
}

fn report() -> Report {
    let chance = &mut Chance::new();
    let mut loopback = Section::new("loopback", "One <task>", "a & b");
    for (name, p50) in [("quorlock", 150.0), ("single", 100.0), ("fred", 150.0)] {
        let mut row = Row::new("", name, "\"quoted\"")
            .with("acquire p50", "µs", vec![p50; 3], chance)
            .bounded(p50 / 2.0)
            .with("cycles", "/s", vec![1e6 / p50; 3], chance)
            .with("nothing", "µs", vec![f64::NAN], chance);
        row.curve = vec![(0.0, 10.0), (0.5, p50), (0.99, 3.0 * p50)];
        loopback.rows.push(row);
    }
    loopback.compare("single", &["acquire p50"], chance);
    let mut faults = Section::new("faults", "Faults", "");
    faults.rows.push(Row::new("", "three dead", "").with("success", "%", vec![0.0], chance).with(
        "error p50",
        "µs",
        vec![20.0],
        chance,
    ));
    let mut timeline = Section::new("timeline", "Over time", "");
    timeline.rows.push(Row::new("", "quorlock", "").with("claims", "", vec![2.0], chance));
    timeline.dots = vec![
        Dot { row: 0, at: 0.0, millis: 1.0, ok: true },
        Dot { row: 1, at: 2.0, millis: 500.0, ok: false },
    ];
    timeline.fault = Some((0.5, 1.5));
    let mut report = Report {
        schema: SCHEMA,
        version: "0.0.0".into(),
        complete: true,
        quick: true,
        seconds: 1.5,
        overlaps: 0,
        environment: serde_json::json!({ "cores": 2, "cpu": "a < b", "others_percent": 20.0 }),
        sections: vec![loopback, faults, timeline],
        skipped: vec![Skipped { what: "rslock".into(), why: "not <built>".into() }],
        aims: Vec::new(),
    };
    report.aims = aims::of(&report, chance);
    report
}

#[test]
fn the_fields_of_the_object_stay() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../../tests/cli/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    let text = serde_json::to_string_pretty(&report()).unwrap();
    settings.bind(|| insta::assert_snapshot!("bench__schema", text));
}

#[test]
fn a_report_reads_back_as_it_was_written() {
    let written = serde_json::to_value(report()).unwrap();
    let read: Report = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), written);
}

#[test]
fn a_renewal_is_measured_by_the_peers_of_the_same_run() {
    let chance = &mut Chance::new();
    let mut report = report();
    let mut renewal = Section::new("renewal", "Renewal", "");
    let mut met = |rows: &[(&str, &str, f64)]| -> Vec<(String, f64, bool)> {
        renewal.rows.clear();
        for (group, name, cpu) in rows {
            renewal.rows.push(Row::new(*group, *name, "").with(
                "client CPU",
                "µs/renewal",
                vec![*cpu; 3],
                chance,
            ));
        }
        report.sections = vec![renewal.clone()];
        aims::of(&report, chance).into_iter().map(|aim| (aim.asked, aim.measured.median, aim.met)).collect()
    };
    let (by_hand, thousand) = (("64 at once", "quorlock", 7.0), ("watchdog", "quorlock, 1000 locks", 12.0));
    let ten_thousand = ("watchdog", "quorlock, 10000 locks", 20.0);
    let peers = [("64 at once", "rslock", 14.0), ("watchdog", "rslock, 1000 locks", 100.0)];
    let all = met(&[by_hand, thousand, ten_thousand, peers[0], peers[1]]);
    let found: Vec<_> = all.iter().map(|(asked, ratio, met)| (asked.as_str(), *ratio, *met)).collect();
    assert_eq!(
        found,
        [("at most 0.5", 0.5, true), ("at most 0.15", 0.12, true), ("at most 0.15", 0.2, false)]
    );
    // Microseconds of one machine say nothing by themselves.
    assert_eq!(met(&[by_hand, thousand, ten_thousand]), []);
}

/// Every element that is opened is closed, in order, and no text holds a bare `<` or `&`.
fn is_well_formed(markup: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        let in_style = open.last() == Some(&"style");
        for part in text.split('&').skip(1).filter(|_| !in_style) {
            let known = ["amp;", "lt;", "gt;", "quot;"].iter().any(|entity| part.starts_with(entity));
            if !known {
                return Err(format!("a bare & before {part:?}"));
            }
        }
        let end = rest[at..].find('>').ok_or("a < that is never closed")? + at;
        let tag = &rest[at + 1..end];
        if tag.contains('<') {
            return Err(format!("a bare < in {tag:?}"));
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
        } else if !tag.starts_with('!') && !tag.ends_with('/') {
            open.push(tag.split([' ', '\n']).next().unwrap_or_default());
        }
        if tag.matches('"').count() % 2 == 1 {
            return Err(format!("quotes that do not match in {tag:?}"));
        }
        rest = &rest[end + 1..];
    }
    if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
}

#[test]
fn the_page_and_each_picture_are_well_formed() {
    let report = report();
    assert_eq!(is_well_formed(&page::html(&report)), Ok(()));
    let pictures = page::pictures(&report);
    let names: Vec<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["percentiles", "loopback", "faults", "timeline"]);
    for (name, picture) in &pictures {
        assert_eq!(is_well_formed(picture), Ok(()), "{name}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{name}: {picture}");
    }
    for bad in ["<p>", "<p></b>", "<p>a & b</p>", "<p a=\"></p>"] {
        assert!(is_well_formed(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_ratio_whose_interval_holds_1_is_no_difference() {
    let chance = &mut Chance::new();
    let differs = |these: &[f64], those: &[f64], chance: &mut Chance| {
        Ratio::of("x", these, those, chance).map(|ratio| ratio.differs)
    };
    assert_eq!(differs(&[0.9, 1.1, 0.9, 1.1], &[1.0; 4], chance), Some(false));
    assert_eq!(differs(&[1.2, 1.3, 1.25, 1.3], &[1.0; 4], chance), Some(true));
    assert_eq!(differs(&[1.0], &[0.0], chance), None);
    let text = terminal::text(&report());
    assert!(text.contains("1.50 [1.50–1.50] of single"), "{text}");
    assert!(text.contains("overlapping holds: 0"), "{text}");
}

#[test]
fn only_what_is_worse_beyond_chance_is_reported() {
    let chance = &mut Chance::new();
    let (then, mut now) = (report(), report());
    assert_eq!(baseline::worse(&now, &then, 10.0, chance), Vec::<String>::new());
    for block in &mut now.sections[0].rows[0].figures[1].blocks {
        *block /= 2.0;
    }
    let worse = baseline::worse(&now, &then, 10.0, chance);
    assert_eq!(worse, ["loopback, quorlock, cycles: 2 [2–2] (1 is the baseline)"]);
    // One quick block among slow ones is chance.
    now.sections[0].rows[0].figures[1].blocks[0] *= 2.0;
    assert_eq!(baseline::worse(&now, &then, 10.0, chance), Vec::<String>::new());
}

#[test]
fn turns_that_meet_are_an_overlap_and_gaps_count_only_for_who_waited() {
    let turn = |asked, got, gave| Turn { asked, got, gave };
    let told = Told::by(&[vec![turn(0, 1, 10), turn(20, 41, 50)], vec![turn(5, 12, 30), turn(45, 46, 60)]]);
    // 12 − 10 was a wait; 41 came after a free moment, but was asked for before 30; 46 lies within 41 to 50.
    assert_eq!((told.overlaps, told.gaps), (1, vec![2, 11]));
    assert_eq!(told.fairness, 1.0);
    // A long hold covers more than its successor.
    let told = Told::by(&[vec![turn(0, 0, 100)], vec![turn(0, 10, 20), turn(20, 30, 40)]]);
    assert_eq!((told.overlaps, told.fairness), (2, 2.0));
}
