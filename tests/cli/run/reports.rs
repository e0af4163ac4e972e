//! Events for a program, lines for a person.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::scene::Traces;
use crate::stage::{Stage, run};

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

#[test]
fn every_event_is_one_object_on_a_line_of_standard_error() {
    let stage = Stage::new();
    let ended = run(&mut stage.run_command(["a", "--json", "--", "sh", "-c", "echo out; exit 5"]));
    assert_eq!((ended.code, ended.out.as_str()), (5, "out\n"), "{ended:?}");
    let events = events(&ended.err);
    assert_eq!(names(&events), ["acquired", "started", "ended", "released", "exit"]);
    assert_eq!(events[0]["resource"], "a");
    assert!(
        events[0]["validity_ms"].as_u64().unwrap() > 0 && events[0]["holder"].as_str().unwrap().contains('/')
    );
    assert_eq!((&events[2]["code"], &events[4]["code"]), (&5.into(), &5.into()));
}

#[test]
fn renewals_are_events_and_the_lock_outlasts_its_ttl() {
    let stage = Stage::new();
    let ended = run(&mut stage.run_command(["a", "--ttl", "3s", "--json", "--", "sleep", "5"]));
    let events = events(&ended.err);
    assert!(names(&events).iter().filter(|name| **name == "renewed").count() >= 2, "{events:?}");
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn events_go_to_a_descriptor_while_lines_stay_on_standard_error() {
    let stage = Stage::new();
    let traces = Traces::new();
    let run_to = |more: &str| {
        let command = stage.run_command(["a", "--json-fd", "3"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!(r#"to=$1; shift; exec "$@" {more} -- sh -c 'exit 5' 3>> "$to""#), "sh"]);
        shell.arg(traces.file("events")).arg(command.get_program()).args(command.get_args());
        run(shell.env("QUORLOCK_MASTERS", stage.urls()))
    };
    let quiet = run_to("");
    assert_eq!((quiet.code, quiet.err.as_str()), (5, ""), "{quiet:?}");
    let told = run_to("-v");
    assert!(
        told.err.contains("quorlock: holds \"a\" as ") && told.err.contains("quorlock: released"),
        "{told:?}"
    );
    let events = events(&fs::read_to_string(traces.file("events")).unwrap());
    let one = ["acquired", "started", "ended", "released", "exit"];
    assert_eq!(names(&events), [one, one].concat());
}

#[test]
fn a_refusal_is_an_event_with_its_reason_and_the_code() {
    let stage = Stage::new();
    stage.acquire_everywhere("a", &["--ttl", "60s"]);
    let ended = run(&mut stage.run_command(["a", "-n", "-E", "9", "--json", "--", "true"]));
    let events = events(&ended.err);
    assert_eq!((ended.code, names(&events)), (9, vec!["busy", "exit"]));
    assert!(events[0]["error"].as_str().unwrap().contains("busy") && events[0]["resource"] == "a");
    assert_eq!(events[1]["code"], 9);
}
