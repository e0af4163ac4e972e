//! What cannot work is refused before any traffic, with the flags to change.

use crate::stage::{Ended, quorlock, run};

const NOWHERE: &str = "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3";

fn nowhere(arguments: &[&str]) -> Ended {
    let ended = run(quorlock().env("QUORLOCK_MASTERS", NOWHERE).arg("run").args(arguments));
    assert!(ended.out.is_empty(), "standard output is the command's: {ended:?}");
    ended
}

#[test]
fn times_that_contradict_each_other_are_named_with_their_flags() {
    nowhere(&["a", "--ttl", "6s", "--kill-grace", "6s", "--", "true"])
        .fails(2, &["--kill-grace 6.00 s", "--ttl 6.00 s", "at most 3.44 s"]);
    nowhere(&["a", "--max-hold", "4s", "--kill-grace", "4s", "--", "true"])
        .fails(2, &["--kill-grace 4.00 s", "--max-hold 4.00 s"]);
    nowhere(&["a", "--max-hold", "4s", "--hold-at-least", "1m", "--", "true"])
        .fails(2, &["--hold-at-least 60.0 s", "--max-hold 4.00 s"]);
    nowhere(&["a", "--ttl", "61s", "--", "true"]).fails(2, &["61s", "60s", "max_ttl"]);
    nowhere(&["a", "--ttl", "300ms", "--", "true"]).fails(2, &["300ms", "500ms", "longer ttl"]);
    for flag in ["--ttl", "--wait", "--max-hold", "--hold-at-least", "--kill-grace"] {
        nowhere(&["a", flag, "30", "--", "true"]).fails(2, &[flag, "30s"]);
    }
    nowhere(&["a", "-n", "--wait", "1s", "--", "true"]).fails(2, &["--no-wait", "--wait"]);
    nowhere(&["a", "-E", "256", "--", "true"]).fails(2, &["256", "0..=255"]);
    nowhere(&["a", "-E", "3", "--skip-if-busy", "--", "true"]).fails(2, &["--skip-if-busy"]);
}

#[test]
fn without_a_command_or_a_resource_the_usage_is_shown() {
    for arguments in [&["a", "true"][..], &["a"], &["a", "--"], &["--", "true"], &[]] {
        nowhere(arguments).fails(2, &["quorlock run", "<RESOURCE>... -- <COMMAND>"]);
    }
    nowhere(&["", "--", "true"]).fails(2, &["resource is empty"]);
    nowhere(&["quorlock:admitted", "--", "true"]).fails(2, &["quorlock:admitted", "another name"]);
}

#[test]
fn without_masters_every_way_to_name_them_is_shown() {
    let ended = run(quorlock().args(["run", "a", "--json", "--", "true"]));
    assert_eq!((ended.code, ended.out.as_str()), (78, ""), "{ended:?}");
    assert!(ended.err.contains("bad_configuration") && ended.err.contains("QUORLOCK_MASTERS="), "{ended:?}");
}

#[test]
fn a_descriptor_for_events_must_be_open() {
    nowhere(&["a", "--json-fd", "99", "--", "true"]).fails(2, &["--json-fd 99", "99>FILE"]);
}

#[test]
fn help_has_examples_and_hides_what_is_not_for_people() {
    let help = run(quorlock().args(["run", "--help"]));
    for words in
        ["Examples:", "quorlock run nightly-report", "Exit codes:", "--kill-grace", "QUORLOCK_HOLDER"]
    {
        assert!(help.ok().contains(words), "{words:?}: {help:?}");
    }
    let help = run(quorlock().arg("--help"));
    assert!(!help.ok().contains("run-warden") && !help.out.contains("run-command"));
}
