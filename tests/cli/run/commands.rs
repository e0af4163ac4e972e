//! The command is run as it would be without us.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use super::scene::Traces;
use crate::stage::{BOUND, Stage, end, eventually, run};

#[test]
fn input_arguments_and_output_reach_it_and_come_back_byte_for_byte() {
    let stage = Stage::new();
    let script = r#"cat; printf '[%s]' "$@"; printf err >&2"#;
    let mut command =
        stage.run_command(["a", "--", "sh", "-c", script, "x", "a b", "", "$HOME", "--json", "*"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    let ended = end(child, BOUND);
    assert_eq!(ended.ok(), "in\n[a b][][$HOME][--json][*]");
    assert_eq!(ended.err, "err", "a run that goes well has nothing to say");
}

#[test]
fn megabytes_pass_through_a_pipe() {
    let stage = Stage::new();
    let sent: Vec<u8> = (0..20_000_000_u32).map(|number| (number / 7).to_le_bytes()[0]).collect();
    let mut command = stage.run_command(["a", "--", "cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = child.stdout.take().unwrap();
    let bytes = sent.clone();
    let writer = thread::spawn(move || to.write_all(&bytes).unwrap());
    let mut got = Vec::new();
    from.read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert_eq!(end(child, BOUND).code, 0);
    assert!(got == sent);
}

#[test]
fn its_environment_is_the_callers_but_for_what_help_says() {
    let stage = Stage::new();
    let lines = |out: &str| -> BTreeSet<String> { out.lines().map(str::to_owned).collect() };
    let mut command = stage.run_command(["order:1", "--label", "web-3", "--", "env"]);
    let inside = run(command.env("ODD", "a b=c").env("QUORLOCK_CONTAINERS", ""));
    let inside = lines(inside.ok());
    let outside = run(Command::new("env").env("ODD", "a b=c").env("QUORLOCK_CONTAINERS", ""));
    let outside = lines(outside.ok());
    let added: Vec<&String> = inside.difference(&outside).collect();
    assert_eq!(added.len(), 2, "{added:?}");
    assert!(added[0].starts_with("QUORLOCK_HOLDER=web-3/"), "{added:?}");
    assert_eq!(added[1], "QUORLOCK_RESOURCE=order:1");
    let removed: Vec<&String> = outside.difference(&inside).collect();
    assert!(removed.iter().all(|line| line.starts_with("QUORLOCK_MASTERS=")), "{removed:?}");
}

#[test]
fn no_process_of_a_run_but_the_first_knows_the_masters() {
    let stage = Stage::new();
    let secret = stage.urls();
    let script = r#"for of in self $PPID $(cat /proc/$PPID/task/$PPID/children); do
        printf '%s:' "$of"; tr '\0' '\n' < /proc/$of/environ | grep -c QUORLOCK_MASTERS; done"#;
    let ended = run(&mut stage.run_over(&secret, ["a", "--", "sh", "-c", script]));
    let found: Vec<&str> = ended.out.lines().filter(|line| line.ends_with(":1")).collect();
    // This command, the program, its warden: three were looked at, at least.
    assert!(ended.out.lines().count() >= 4, "{ended:?}");
    assert_eq!(found.len(), 1, "{ended:?}");
}

#[test]
fn what_the_caller_ignores_stays_ignored_and_nothing_else_is() {
    let stage = Stage::new();
    // Bit n − 1 stands for signal n; 32 and 33 are the C library's own.
    let script = r#"trap "" HUP; exec "$@""#;
    let mut command = Command::new("sh");
    let inner = stage.run_command(["a", "--", "grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"]);
    command.args(["-c", script, "sh"]).arg(inner.get_program());
    command.args(inner.get_args().map(|argument| {
        // The shell's word about HUP must stand.
        if argument == "--default-signal" { "--default-signal=INT,QUIT,TERM,PIPE".as_ref() } else { argument }
    }));
    command.env("QUORLOCK_MASTERS", stage.urls());
    let ended = run(&mut command);
    let mask = |name: &str| {
        let line = ended.out.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap() & 0x7fff_ffff
    };
    assert_eq!((mask("SigBlk:"), mask("SigIgn:")), (0, 1), "{ended:?}");
}

#[test]
fn a_reader_that_goes_away_ends_it_as_ever() {
    let stage = Stage::new();
    let mut command = stage.run_command(["a", "--", "yes"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 2];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!((&first, end(child, BOUND).code), (b"y\n", 128 + 13));
}

#[test]
fn whoever_reads_its_output_sees_its_end_when_it_closes_it() {
    let stage = Stage::new();
    let traces = Traces::new();
    let script = r#"echo all; exec >&-; while ! [ -e "$1/go" ]; do sleep 0.02; done; exit 3"#;
    let mut command = traces.command(&stage, &["a"], script);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut from = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut out = String::new();
        from.read_to_string(&mut out).unwrap();
        out
    });
    eventually("its end is seen", || reader.is_finished());
    assert_eq!(reader.join().unwrap(), "all\n");
    assert!(child.try_wait().unwrap().is_none(), "it waits for us");
    std::fs::write(traces.file("go"), "").unwrap();
    assert_eq!(end(child, BOUND).code, 3);
}
