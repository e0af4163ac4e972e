//! demo: the main job end to end.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use crate::stage::{BOUND, end, eventually, is_named_by_a_process, quorlock, signal, start};

/// Twenty seconds of play, where each act waits until it shows: on a busy machine that takes longer.
const PLAY_BOUND: Duration = Duration::from_secs(240);

#[test]
fn the_demo_shows_every_fault_and_no_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = quorlock();
    command.args(["demo", "--seconds", "20", "--json"]).env("TMPDIR", folder.path());
    let ended = end(start(&mut command), PLAY_BOUND);
    assert_eq!(ended.code, 0, "{ended:?}");
    let json = ended.json();
    assert_eq!((&json["outcome"], &json["overlaps"]), (&"ok".into(), &0.into()), "{json}");
    assert_eq!(json["increments_done"], json["increments_expected"], "{json}");
    assert!(json["increments_done"].as_u64().unwrap() > 0, "{json}");
    assert!(json["refused"].as_u64().unwrap() >= 1 && json["refused_after_thaw"] == true, "{json}");
    assert_eq!(json["acquisitions"].as_array().unwrap().len(), 8, "{json}");
    // A crashed holder's lock stays for what is left of its ttl, which was renewed a third of it ago at most.
    assert!(json["longest_gap_ms"].as_u64().unwrap() > 0, "{json}");
    for words in
        ["m2 is frozen", "m4 is killed", "m4 is in quarantine", "m4 votes again", "thaws", "is killed (-9)"]
    {
        assert!(ended.err.contains(words), "{words:?} is missing: {}", ended.err);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
    assert!(!is_named_by_a_process(folder.path()));
}

#[test]
fn an_interrupted_demo_leaves_no_process_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = quorlock();
    command.args(["demo", "--seconds", "600"]).env("TMPDIR", folder.path());
    let mut demo = start(&mut command);
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let begun = lines.any(|line| line.unwrap().contains("processes increment"));
    assert!(begun && is_named_by_a_process(folder.path()));
    signal(&demo, "-INT");
    let ended = end(demo, BOUND);
    ended.fails(130, &["interrupted"]);
    eventually("all are gone", || !is_named_by_a_process(folder.path()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
}

#[test]
fn a_demo_that_is_killed_takes_masters_and_contenders_with_it_frozen_ones_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = quorlock();
    command.args(["demo", "--seconds", "15"]).env("TMPDIR", folder.path());
    let mut demo = start(&mut command);
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("is frozen while it thinks")));
    signal(&demo, "-KILL");
    demo.wait().unwrap();
    eventually("all are gone", || !is_named_by_a_process(folder.path()));
}

#[test]
fn a_demo_too_short_to_show_everything_is_refused() {
    let ended = end(start(quorlock().args(["demo", "--seconds", "5"])), BOUND);
    ended.fails(2, &["--seconds", "15"]);
}
