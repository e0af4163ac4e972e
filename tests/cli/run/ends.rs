//! Exit codes, and when the lock is given back.

use std::ffi::OsStr;
use std::time::Duration;

use tokio::time::Instant;

use super::scene::Traces;
use crate::stage::{BOUND, Ended, Stage, end, eventually, quorlock, run, signal, start};

#[test]
fn the_commands_own_code_is_passed_on() {
    let stage = Stage::new();
    let code = |script: &str| run(&mut stage.run_command(["a", "--", "sh", "-c", script])).code;
    for (script, expected) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 7", 7),
        ("exit 75", 75),
        ("exit 255", 255),
        ("ulimit -c 0; kill -SEGV $$", 128 + 11),
        ("kill -KILL $$", 128 + 9),
    ] {
        assert_eq!(code(script), expected, "{script}");
    }
    assert!(stage.is_free("a"));
}

#[test]
fn what_cannot_be_executed_costs_no_lock() {
    let nowhere = "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3";
    let refused =
        |name: &str| run(quorlock().env("QUORLOCK_MASTERS", nowhere).args(["run", "a", "--", name]));
    refused("no-such-command").fails(127, &["no-such-command", "not found", "PATH"]);
    refused("/no/such/command").fails(127, &["/no/such/command", "not found"]);
    refused("/etc/passwd").fails(126, &["/etc/passwd", "chmod +x"]);
    refused("/tmp").fails(126, &["/tmp"]);
    refused("").fails(127, &["not found"]);
}

#[test]
fn what_cannot_be_executed_after_all_gives_the_lock_back() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = traces.file("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let ended = run(&mut stage.run_command([OsStr::new("a"), OsStr::new("--"), script.as_os_str()]));
    ended.fails(127, &["script", "not found"]);
    assert!(stage.is_free("a"));
}

#[test]
fn a_held_lock_is_busy_with_the_code_asked_for_and_nothing_is_run() {
    let stage = Stage::new();
    let traces = Traces::new();
    let holder = stage.acquire_everywhere("a", &["--ttl", "60s"]).ok().to_owned();
    let attempt = |more: &[&str]| -> Ended {
        let mut command = traces.command(&stage, &[&["a"], more].concat(), r#"touch "$1/ran""#);
        let ended = run(&mut command);
        assert!(ended.out.is_empty() && !traces.has("ran"), "{ended:?}");
        ended
    };
    attempt(&["-n"]).fails(75, &["busy", "\"a\"", "--wait"]);
    attempt(&["--wait", "300ms"]).fails(75, &["busy", &holder]);
    attempt(&["-n", "-E", "3"]).fails(3, &["busy"]);
    attempt(&["-n", "-E", "0"]).fails(0, &["busy"]);
    let skipped = attempt(&["-n", "--skip-if-busy"]);
    assert_eq!((skipped.code, skipped.err.as_str()), (0, ""), "no mail from cron");
    assert_eq!(stage.values("a"), vec![Some(holder); 5]);
}

#[test]
fn without_a_quorum_nothing_is_run() {
    let stage = Stage::new();
    let traces = Traces::new();
    for master in 0..3 {
        stage.bed[master].kill().unwrap();
    }
    // Busy is not what this is.
    for more in [&["a", "-n"][..], &["a", "-n", "--skip-if-busy"], &["a", "-n", "-E", "0"]] {
        let mut command = traces.command(&stage, more, r#"touch "$1/ran""#);
        run(&mut command).fails(69, &["no quorum", "refused"]);
        assert!(!traces.has("ran"));
    }
}

#[test]
fn the_lock_is_held_until_the_last_of_the_group_has_ended() {
    let stage = Stage::new();
    // A child, and a grandchild whose parent is gone, which only we can see end.
    for script in [
        r#"(while ! [ -e "$1/go" ]; do sleep 0.02; done; touch "$1/done") & touch "$1/left"; exit 4"#,
        r#"( (while ! [ -e "$1/go" ]; do sleep 0.02; done; touch "$1/done") & ); touch "$1/left"; exit 4"#,
    ] {
        let traces = Traces::new();
        let mut running = start(&mut traces.command(&stage, &["a"], script));
        traces.wait_for("left");
        std::thread::sleep(Duration::from_millis(700));
        assert!(running.try_wait().unwrap().is_none() && stage.is_held("a"), "given back while it works");
        std::fs::write(traces.file("go"), "").unwrap();
        assert_eq!(end(running, BOUND).code, 4);
        assert!(traces.has("done") && stage.is_free("a"));
        traces.are_alone();
    }
}

#[test]
fn what_left_the_group_is_not_waited_for() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = r#"setsid sh -c 'while ! [ -e "$1/go" ]; do sleep 0.02; done' sh "$1" > /dev/null 2>&1 &"#;
    assert_eq!(run(&mut traces.command(&stage, &["a"], script)).code, 0);
    assert!(stage.is_free("a"), "{:?}", stage.values("a"));
    // One that is just beginning a program has no arguments for a moment.
    eventually("it is seen to live on", || !traces.processes().is_empty());
    std::fs::write(traces.file("go"), "").unwrap();
    traces.are_alone();
}

#[test]
fn hundreds_of_orphans_leave_no_zombie() {
    let stage = Stage::new();
    let script = r#"for i in $(seq 200); do (true &) ; done; sleep 0.3
        cat /proc/[0-9]*/stat 2> /dev/null | grep -c ") Z $PPID " "#;
    let ended = run(&mut stage.run_command(["a", "--", "sh", "-c", script]));
    assert_eq!(ended.out.trim(), "0", "{ended:?}");
}

#[test]
fn a_lock_held_at_least_so_long_outlives_a_quick_command() {
    let stage = Stage::new();
    let traces = Traces::new();
    let began = Instant::now();
    let mut command = traces.command(&stage, &["a", "--hold-at-least", "3s"], r#"touch "$1/done"; exit 6"#);
    let running = start(&mut command);
    traces.wait_for("done");
    traces.are_alone();
    // The clocks of cron differ: here comes another machine.
    run(&mut stage.run_command(["a", "-n", "--", "true"])).fails(75, &[]);
    assert_eq!(end(running, BOUND).code, 6);
    assert!(began.elapsed() >= Duration::from_secs(3) && stage.is_free("a"));
}

#[test]
fn a_signal_ends_holding_at_least_so_long_and_leaves_the_lock_to_its_ttl() {
    let stage = Stage::new();
    let traces = Traces::new();
    let mut command = traces.command(&stage, &["a", "--hold-at-least", "10m"], r#"touch "$1/done""#);
    let running = start(&mut command);
    traces.wait_for("done");
    traces.are_alone();
    signal(&running, "-TERM");
    assert_eq!(end(running, BOUND).code, 0);
    assert!(stage.is_held("a"), "another machine could run it once more");
}

#[test]
fn a_command_is_ended_when_it_was_held_for_the_longest() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = r#"trap 'touch "$1/term"; exit 0' TERM; while :; do sleep 0.02; done"#;
    let mut command = traces.command(&stage, &["a", "--max-hold", "3s", "--kill-grace", "2s"], script);
    let ended = run(&mut command);
    ended.fails(76, &["--max-hold 3.00 s"]);
    assert!(traces.has("term"));
    eventually("the lock is free", || stage.is_free("a"));
}

#[test]
fn several_resources_are_held_all_or_none() {
    let stage = Stage::new();
    let ended = run(&mut stage.run_command(["a", "b", "--", "sh", "-c", "printf %s \"$QUORLOCK_RESOURCE\""]));
    assert_eq!(ended.ok(), "a\nb");
    let holder = stage.acquire_everywhere("b", &["--ttl", "60s"]).ok().to_owned();
    run(&mut stage.run_command(["a", "b", "-n", "--", "true"])).fails(75, &["busy"]);
    assert!(stage.is_free("a"));
    assert_eq!(stage.values("b"), vec![Some(holder); 5]);
}
