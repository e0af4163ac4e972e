//! Signals that are sent to the program reach the command, and never end the one without the other.

use super::scene::Traces;
use crate::stage::{BOUND, Stage, end, eventually, signal, start};

#[test]
fn each_signal_is_passed_on_once() {
    let stage = Stage::new();
    for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH"] {
        let traces = Traces::new();
        let script = format!(
            r#"trap 'echo {name} >> "$1/got"' {name}; touch "$1/ready"
            while ! [ -e "$1/got" ]; do sleep 0.02; done; sleep 0.3; exit 7"#
        );
        let running = start(&mut traces.command(&stage, &["a"], &script));
        traces.wait_for("ready");
        signal(&running, &format!("-{name}"));
        let ended = end(running, BOUND);
        assert_eq!((ended.code, traces.read("got")), (7, format!("{name}\n")), "{ended:?}");
    }
}

#[test]
fn a_signal_that_ends_the_command_ends_the_program_with_its_number_and_the_lock() {
    let stage = Stage::new();
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("USR1", 10), ("USR2", 12)] {
        let traces = Traces::new();
        // Two processes: all of the group gets it.
        let script = r#"ulimit -c 0; touch "$1/first"
            (touch "$1/second"; exec tail -f /dev/null "$1/second") & exec tail -f /dev/null "$1/first""#;
        let running = start(&mut traces.command(&stage, &["a"], script));
        eventually("both run", || traces.processes().len() == 2 && traces.has("second"));
        // A shell takes a background process's ears for INT and QUIT.
        let stays = matches!(name, "INT" | "QUIT");
        signal(&running, &format!("-{name}"));
        if stays {
            // So this one goes on, and the lock with it, until it is told otherwise.
            eventually("the first has ended", || traces.processes().len() == 1);
            std::thread::sleep(std::time::Duration::from_millis(300));
            assert!(stage.is_held("a"), "given back while a process of it lives");
            signal(&running, "-TERM");
        }
        let ended = end(running, BOUND);
        assert_eq!(ended.code, 128 + number, "{name}: {ended:?}");
        assert!(stage.is_free("a"));
        traces.are_alone();
    }
}

#[test]
fn a_command_that_will_not_end_keeps_its_lock() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = r#"trap 'echo >> "$1/got"' TERM; touch "$1/ready"; while ! [ -e "$1/go" ]; do sleep 0.02; done; exit 3"#;
    let mut running = start(&mut traces.command(&stage, &["a"], script));
    traces.wait_for("ready");
    for nth in 1..=2 {
        signal(&running, "-TERM");
        eventually("it got TERM", || traces.read("got").len() == nth);
        assert!(running.try_wait().unwrap().is_none() && stage.is_held("a"));
    }
    std::fs::write(traces.file("go"), "").unwrap();
    assert_eq!(end(running, BOUND).code, 3);
}

#[test]
fn a_signal_ends_the_waiting_and_the_command_never_begins() {
    let stage = Stage::new();
    let holder = stage.acquire_everywhere("a", &["--ttl", "60s"]).ok().to_owned();
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        let traces = Traces::new();
        let mut command = traces.command(&stage, &["a", "--wait", "10m"], r#"touch "$1/ran""#);
        let running = start(&mut command);
        // Connected, and so its signals are caught.
        eventually("it waits", || {
            let clients = stage.bed[0].command(&["CLIENT", "LIST"]).unwrap().text().unwrap();
            clients.lines().filter(|line| !line.contains("cmd=client")).count() > 0
        });
        // There is nobody yet to pass this on to.
        signal(&running, "-USR1");
        signal(&running, &format!("-{name}"));
        let ended = end(running, BOUND);
        ended.fails(128 + number, &["interrupted", "not started"]);
        assert!(!traces.has("ran"));
    }
    assert_eq!(stage.values("a"), vec![Some(holder); 5]);
}
