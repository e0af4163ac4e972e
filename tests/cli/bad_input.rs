//! What is wrong is named, with the way out, before any traffic where that is possible.

use std::process::Command;

use crate::stage::{Ended, Stage, quorlock, run};

/// Five masters that are not there: whoever asks them gets 69, not 2 or 78.
const NOWHERE: &str =
    "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3,redis://127.0.0.1:4,redis://127.0.0.1:5";

fn nowhere(arguments: &[&str]) -> Ended {
    run(quorlock().env("QUORLOCK_MASTERS", NOWHERE).args(arguments))
}

fn masters(urls: &str) -> Ended {
    run(quorlock().env("QUORLOCK_MASTERS", urls).args(["acquire", "a"]))
}

#[test]
fn without_masters_every_way_to_name_them_is_shown() {
    let ways = ["no masters given", "QUORLOCK_MASTERS=redis://", "--config", "--masters", "ps", "testbed up"];
    for command in [
        &["acquire", "a"][..],
        &["extend", "a", "--holder", "h"],
        &["release", "a", "--holder", "h"],
        &["inspect", "a"],
        &["list"],
        &["doctor"],
        &["init"],
    ] {
        run(quorlock().args(command)).fails(78, &ways);
    }
    run(quorlock().env("QUORLOCK_MASTERS", "").args(["init"])).fails(78, &ways);
    let ended = run(quorlock().args(["init", "--json"]));
    assert_eq!(ended.json()["outcome"], "bad_configuration");
}

#[test]
fn a_list_that_cannot_be_one_is_refused() {
    masters("http://a,redis://b,redis://c").fails(78, &["m1", "`http`", "redis"]);
    masters("redis://a,b:6379,redis://c").fails(78, &["m2", "no scheme", "redis://b:6379"]);
    masters("redis://a,redis://b,").fails(78, &["m3", "stray comma"]);
    masters("redis-sentinel://a").fails(78, &["redis-sentinel", "independent"]);
    masters("redis://a:99999").fails(78, &["99999", "65535"]);
    masters("redis://a,redis://b,redis://A:6379").fails(78, &["m1 and m3", "same master"]);
    masters("redis://me@a").fails(78, &["m1", "user or a password"]);
    if cfg!(not(feature = "tls")) {
        masters("rediss://a").fails(78, &["rediss", "--features tls"]);
    }
}

#[test]
fn one_server_under_two_names_is_refused() {
    let stage = Stage::new();
    let port = stage.bed[0].port();
    let urls = format!("{},redis://localhost:{port}", stage.urls());
    let list = run(quorlock().env("QUORLOCK_MASTERS", urls).args(["acquire", "a"]));
    list.fails(78, &["m1", "m6", "localhost", "same server"]);
    assert_eq!(stage.values("a"), vec![None; 5]);
}

#[test]
fn a_resource_or_holder_that_cannot_be_one_is_refused() {
    nowhere(&["acquire", ""]).fails(2, &["resource is empty"]);
    nowhere(&["inspect", ""]).fails(2, &["resource is empty"]);
    nowhere(&["release", "", "--holder", "h"]).fails(2, &["resource is empty"]);
    nowhere(&["acquire", "quorlock:admitted"]).fails(2, &["quorlock:admitted", "another name"]);
    nowhere(&["release", "a", "--holder", ""]).fails(2, &["holder"]);
    nowhere(&["extend", "a", "--holder", "h|1"]).fails(2, &["h|1", "acquire printed"]);
    nowhere(&["acquire", "a", "--label", "a b"]).fails(2, &["a b", "label"]);
    nowhere(&["acquire"]).fails(2, &["RESOURCE"]);
    let many: Vec<String> = (0..65).map(|nth| nth.to_string()).collect();
    let many: Vec<&str> = ["acquire"].into_iter().chain(many.iter().map(String::as_str)).collect();
    nowhere(&many).fails(2, &["65 resources", "64"]);
    nowhere(&["release", "a", "", "--holder", "h"]).fails(2, &["resource is empty"]);
    nowhere(&["release", "a"]).fails(2, &["--holder"]);
}

#[test]
fn a_duration_needs_a_unit_and_a_ttl_must_be_able_to_win() {
    nowhere(&["acquire", "a", "--ttl", "30"]).fails(2, &["30", "30s", "30ms", "--ttl"]);
    nowhere(&["acquire", "a", "--wait", "1.5"]).fails(2, &["1.5s", "--wait"]);
    nowhere(&["acquire", "a", "--ttl", "soon"]).fails(2, &["soon", "250ms"]);
    nowhere(&["acquire", "a", "--ttl=-1s"]).fails(2, &["-1s"]);
    nowhere(&["acquire", "a", "--ttl", "0s"]).fails(2, &["0ns", "500ms", "longer ttl"]);
    nowhere(&["acquire", "a", "--ttl", "300ms"]).fails(2, &["300ms", "5ms", "500ms"]);
    nowhere(&["acquire", "a", "--ttl", "61s"]).fails(2, &["61s", "60s", "max_ttl"]);
    nowhere(&["extend", "a", "--holder", "h", "--ttl", "61s"]).fails(2, &["61s", "60s"]);
    nowhere(&["acquire", "a", "--master-timeout", "0s"]).fails(78, &["master timeout", "1 ms"]);
    nowhere(&["inspect", "a", "--max-ttl", "100ms"]).fails(78, &["longest ttl", "100ms"]);
    nowhere(&["acquire", "a", "--min-votes", "2"]).fails(78, &["min_votes(2)", "3"]);
    nowhere(&["inspect", "a", "--min-votes", "6"]).fails(78, &["min_votes(6)", "5"]);
}

#[test]
fn a_configuration_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.toml");
    let with = |text: &str| {
        std::fs::write(&path, text).unwrap();
        run(quorlock().arg("--config").arg(&path).args(["inspect", "a"]))
    };
    with("mastres = []").fails(78, &["q.toml", "`mastres`", "did you mean `masters`"]);
    with("masters = []").fails(78, &["no masters given"]);
    with("masters = 5").fails(78, &["`masters`", "list"]);
    with("max_ttl = 60").fails(78, &["`max_ttl`", "30s"]);
    with("masters = ['redis://a']\nuser = 'me'").fails(78, &["`user`", "`password`"]);
    with("label = 'x'\nmasters = [").fails(78, &["line 2"]);
    run(quorlock().args(["--config", "/no/such.toml", "init"])).fails(78, &["/no/such.toml"]);
}

#[test]
fn a_password_is_never_shown() {
    let stage = Stage::new();
    let wrong: Vec<String> =
        stage.bed.masters().iter().map(|master| format!("redis://me:hunter2@{}", master.address())).collect();
    let wrong = wrong.join(",");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.toml");
    std::fs::write(
        &path,
        format!("masters = [\"{}\"]\npassword = \"hunter2", stage.bed.urls().join("\", \"")),
    )
    .unwrap();
    let by_variable = |urls: &str, arguments: &[&str]| -> Command {
        let mut command = quorlock();
        command.env("QUORLOCK_MASTERS", urls).args(arguments);
        command
    };
    let mut commands = vec![
        by_variable(&wrong, &["acquire", "a", "--wait", "0s", "-vv"]),
        by_variable(&wrong, &["acquire", "a", "--wait", "0s", "--json"]),
        by_variable(&wrong, &["inspect", "a", "-vv"]),
        by_variable(&wrong, &["init", "-vv"]),
        by_variable(&wrong, &["release", "a", "--holder", "h", "-vv"]),
        by_variable(&wrong, &["--help"]),
        by_variable(&wrong, &["acquire", "--help"]),
        by_variable(&wrong, &["acquire"]),
        by_variable("redis://me:hunter2", &["acquire", "a"]),
        by_variable("redis://:hun/ter2@a", &["acquire", "a"]),
        by_variable("http://:hunter2@a", &["acquire", "a"]),
        by_variable("redis://:hunter2@a,redis://:hunter2@a", &["acquire", "a"]),
        by_variable("", &["acquire", "a", "redis://:hunter2@a"]),
        by_variable("", &["redis://:hunter2@a", "acquire"]),
        by_variable("", &["--master=redis://:hunter2@a", "init"]),
        by_variable("", &["testbed", "up", "--masters", "redis://:hunter2@a"]),
    ];
    let mut by_file = quorlock();
    by_file.arg("--config").arg(&path).args(["inspect", "a"]);
    commands.push(by_file);
    for command in &mut commands {
        let ended = run(command);
        for secret in ["hunter2", "ter2"] {
            assert!(!ended.err.contains(secret) && !ended.out.contains(secret), "{command:?}: {ended:?}");
        }
    }
}

#[test]
fn an_even_number_of_masters_works_with_a_warning() {
    let stage = Stage::new();
    let four = stage.bed.urls()[..4].join(",");
    let acquire = |resource: &str, more: &[&str]| {
        run(quorlock().env("QUORLOCK_MASTERS", &four).args(["acquire", resource]).args(more))
    };
    let ended = acquire("a", &[]);
    assert!(ended.ok().contains('/') && ended.err.contains("even number of masters"), "{ended:?}");
    let quiet = acquire("b", &["-q"]);
    assert!(quiet.ok().contains('/') && quiet.err.is_empty(), "{quiet:?}");
}

#[test]
fn what_there_is_is_in_the_help_and_nothing_else_exists() {
    run(quorlock().args(["unlock", "a"])).fails(2, &["unrecognized subcommand"]);
    let help = run(quorlock().arg("--help"));
    for word in [
        "run",
        "acquire",
        "extend",
        "release",
        "inspect",
        "list",
        "doctor",
        "explain",
        "init",
        "testbed",
        "demo",
        "drill",
        "bench",
        "top",
        "Exit codes",
    ] {
        assert!(help.ok().contains(word), "{word}: {help:?}");
    }
    assert!(!help.out.contains("demo-worker"));
}

#[test]
fn the_help_of_every_command_has_an_example() {
    let help = run(quorlock().arg("--help"));
    let commands = help.ok().lines().skip_while(|line| *line != "Commands:").skip(1);
    // Descriptions that are wrapped begin further right.
    let names: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() >= 10 && names.contains(&"doctor"), "{names:?}");
    for name in names {
        let help = run(quorlock().args([name, "--help"]));
        assert!(help.ok().contains("Example"), "{name}: {help:?}");
    }
}

/// In a terminal, made by script(1).
#[test]
fn colours_are_for_terminals_that_want_them() {
    let on_a_terminal = |arguments: &str, no_colour: Option<&str>| {
        let program = env!("CARGO_BIN_EXE_quorlock");
        let mut script = Command::new("script");
        script.env("QUORLOCK_MASTERS", NOWHERE).env("TERM", "xterm").env_remove("NO_COLOR");
        script.envs(no_colour.map(|value| ("NO_COLOR", value)));
        run(script.args(["-qec", &format!("{program} {arguments}"), "/dev/null"])).out
    };
    for arguments in ["doctor", "--help", "no-such-command"] {
        assert!(on_a_terminal(arguments, None).contains("\x1b["), "{arguments}");
        let plain = on_a_terminal(arguments, Some("1"));
        assert!(!plain.contains('\x1b') && !plain.is_empty(), "{plain}");
        let piped = nowhere(&[arguments]);
        assert!(!piped.out.contains('\x1b') && !piped.err.contains('\x1b'), "{piped:?}");
    }
}
