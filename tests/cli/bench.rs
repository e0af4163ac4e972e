//! bench: the whole harness in small, on real servers.

use std::io::Read;
use std::time::Duration;

use serde_json::Value;

use crate::stage::{Stage, end, eventually, quorlock, run, signal, start};

/// Tiny times; on a busy machine the faults' recoveries take longer.
const BENCH_BOUND: Duration = Duration::from_secs(240);

fn text<'a>(json: &'a Value, key: &str) -> &'a str {
    json[key].as_str().unwrap()
}

fn section<'a>(report: &'a Value, profile: &str) -> &'a Value {
    let mut sections = report["sections"].as_array().unwrap().iter();
    sections.find(|section| section["profile"] == profile).unwrap_or_else(|| panic!("no {profile}: {report}"))
}

fn rows(section: &Value) -> Vec<&str> {
    section["rows"].as_array().unwrap().iter().map(|row| text(row, "name")).collect()
}

#[test]
fn a_quick_run_fills_the_table_the_object_the_page_and_the_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html, charts) =
        (folder.path().join("a.json"), folder.path().join("a.html"), folder.path().join("charts"));
    let mut command = quorlock();
    command.args(["bench", "--quick", "--scale", "0.1"]);
    command.args(["--profile", "loopback,tasks,distance,timeline,rate,handoff,renewal"]);
    command.arg("--json").arg(&json).arg("--html").arg(&html).arg("--charts").arg(&charts);
    let ended = end(start(&mut command), BENCH_BOUND);
    let table = ended.ok();
    for words in ["Acquire and release, one task", "quorlock-7", "(≥ ", "overlapping holds: 0"] {
        assert!(table.contains(words), "{words:?} is missing: {table}");
    }
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((&report["schema"], &report["complete"]), (&1.into(), &true.into()), "{report}");
    assert_eq!(report["overlaps"], 0);
    let loopback = section(&report, "loopback");
    for row in ["quorlock", "quorlock-3", "quorlock-7", "min-votes-4", "single", "single-wait", "fred"] {
        assert!(rows(loopback).contains(&row), "{row} is missing: {loopback}");
    }
    let cost = section(&report, "cost");
    for row in cost["rows"].as_array().unwrap().iter().filter(|row| row["name"] == "single") {
        // SET and EVALSHA; and the GET and DEL within it.
        let [sent, executed] =
            [0, 1].map(|nth| (text(&row["figures"][nth], "name"), &row["figures"][nth]["median"]));
        assert_eq!((sent.0, sent.1.as_f64(), executed.0), ("commands", Some(2.0), "executed"), "{row}");
        assert!((3.5..6.0).contains(&executed.1.as_f64().unwrap()), "{row}");
    }
    let handoff = section(&report, "handoff");
    for row in handoff["rows"].as_array().unwrap().iter().filter(|row| row["name"] == "quorlock") {
        let figures = row["figures"].as_array().unwrap();
        let commands = figures.iter().find(|figure| figure["name"] == "commands").unwrap();
        // A release with a claim on five masters, at the least.
        assert!(commands["median"].as_f64().unwrap() >= 5.0, "{row}");
        assert!(figures[0]["name"] == "hand-off p50" && figures[0]["bound"].as_f64().unwrap() > 0.0, "{row}");
    }
    let renewal = section(&report, "renewal");
    let peers = cfg!(feature = "peers");
    let watchdogs = ["quorlock, 1000 locks", "rslock, 1000 locks"].into_iter().take(1 + usize::from(peers));
    let by_hand = ["quorlock", "rslock"].into_iter().take(1 + usize::from(peers));
    assert_eq!(rows(renewal), watchdogs.chain(by_hand).collect::<Vec<_>>(), "{renewal}");
    for row in renewal["rows"].as_array().unwrap() {
        let figures = row["figures"].as_array().unwrap();
        assert!(figures[0]["name"] == "client CPU" && figures[0]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    let html = std::fs::read_to_string(html).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
    assert!(!html.contains("<script") && !html.contains("http-equiv"), "it must be readable without either");
    let picture = std::fs::read_to_string(charts.join("percentiles.svg")).unwrap();
    assert!(picture.starts_with("<svg xmlns="), "{picture}");
}

#[test]
fn masters_in_use_keep_their_keys_and_get_none_and_rows_that_need_more_are_named() {
    let stage = Stage::new();
    stage.set(&[1, 2, 3, 4, 5], &["SET", "order:1", "theirs"]);
    let mut command = stage.command(["bench", "--quick", "--scale", "0.05", "--json"]);
    command.args(["--profile", "loopback,tasks,faults,handoff"]);
    let ended = end(start(&mut command), BENCH_BOUND);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(stage.keys(), vec![vec![b"order:1".to_vec()]; 5]);
    let report = ended.json();
    let skipped: Vec<(&str, &str)> = report["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skipped| (text(skipped, "what"), text(skipped, "why")))
        .collect();
    let why = |what| skipped.iter().find(|skipped| skipped.0 == what).map(|skipped| skipped.1);
    assert_eq!(why("quorlock-7"), Some("it needs 7 masters, 5 are given"), "{skipped:?}");
    assert!(why("single-wait").is_some_and(|why| why.contains("replica")), "{skipped:?}");
    assert!(why("faults").is_some_and(|why| why.contains("--masters")), "{skipped:?}");
}

#[test]
fn an_interrupted_run_writes_what_there_is_and_leaves_no_key() {
    let stage = Stage::new();
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("a.html");
    let mut command = stage.command(["bench", "--profile", "tasks,handoff", "--json", "--html"]);
    command.arg(&html);
    let mut bench = start(&mut command);
    // The keys that are measured end with a number; the one of the first look does not.
    let measured = |key: &Vec<u8>| key.last().is_some_and(u8::is_ascii_digit);
    eventually("it works", || stage.keys().iter().flatten().any(measured));
    signal(&bench, "-INT");
    let (mut out, mut err) = (String::new(), String::new());
    bench.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    bench.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(130), "{out}{err}");
    assert!(err.contains("interrupted"), "{err}");
    let report: Value = serde_json::Deserializer::from_str(&out).into_iter().next().unwrap().unwrap();
    assert_eq!(report["complete"], false, "{report}");
    assert!(std::fs::read_to_string(html).unwrap().contains("not the whole run"));
    assert_eq!(stage.keys(), vec![Vec::<Vec<u8>>::new(); 5]);
}

#[test]
fn a_run_that_became_slower_than_its_baseline_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let bench = |more: &[&str]| {
        let mut command = quorlock();
        command.args(["bench", "--quick", "--scale", "0.1", "--profile", "tasks", "--against", "single"]);
        command.args(more);
        end(start(&mut command), BENCH_BOUND)
    };
    let path = file.to_str().unwrap();
    bench(&["--json", path]).ok();
    // As if it had been a thousand times quicker then.
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    for row in report["sections"][0]["rows"].as_array_mut().unwrap() {
        for figure in row["figures"].as_array_mut().unwrap().iter_mut().filter(|it| it["unit"] == "µs") {
            for block in figure["blocks"].as_array_mut().unwrap() {
                *block = (block.as_f64().unwrap() / 1_000.0).into();
            }
        }
    }
    std::fs::write(&file, report.to_string()).unwrap();
    bench(&["--baseline", path, "--fail-above", "10%"]).fails(1, &["slower", "tasks, quorlock, acquire p50"]);
    bench(&["--baseline", path, "--fail-above", "1000000%"]).ok();
}

#[test]
fn what_is_not_there_is_named_with_what_there_is() {
    let bench = |arguments: &[&str]| run(quorlock().arg("bench").args(arguments));
    bench(&["--profile", "loopback,moon"]).fails(2, &["moon", "distance", "renewal", "handoff"]);
    bench(&["--against", "memcached"]).fails(2, &["memcached", "single-wait", "fred"]);
    bench(&["--baseline", "/nowhere.json", "--fail-above", "10%"]).fails(2, &["/nowhere.json"]);
    bench(&["--html", "/no/where.html"]).fails(2, &["/no/where.html"]);
    assert_eq!(bench(&["--baseline", "a.json", "--fail-above", "10"]).code, 2);
    assert_eq!(bench(&["report.json"]).code, 2, "a file without --json");
    let secret = "redis://:hunter2@127.0.0.1:1";
    let ended = run(quorlock().env("QUORLOCK_MASTERS", secret).args(["bench", "--quick"]));
    assert_ne!(ended.code, 0);
    assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
}
