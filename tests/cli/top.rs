//! top: in a terminal, and where there is none.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::openpty;
use quorlock::testbed::Fault;
use serde_json::Value;
use vt100::{Color, Parser};

use crate::stage::{BOUND, Ended, Stage, end, eventually, quorlock, signal};

const HOLDER: &str = "web-3:1842/0f2c3a4b-1111-4222-8333-123456789abc";
const ALL: [usize; 5] = [1, 2, 3, 4, 5];

fn size(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

/// A terminal that is looked at. A shell in it runs the program, and writes down how it found and left the terminal.
struct Terminal {
    keys: File,
    tty: PathBuf,
    screen: Arc<Mutex<Parser>>,
    shell: Child,
    reader: thread::JoinHandle<()>,
    notes: tempfile::TempDir,
}

impl Terminal {
    fn of(command: &mut Command, rows: u16, columns: u16) -> Self {
        let pty = openpty(None, None).unwrap();
        let notes = tempfile::tempdir().unwrap();
        let script = format!(
            "stty rows {rows} cols {columns}; stty -g > \"$NOTES/before\"; \"$@\"; code=$?; stty -g > \"$NOTES/after\"; exit $code"
        );
        let mut shell = Command::new("setsid");
        shell.args(["--ctty", "sh", "-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
        shell.env("NOTES", notes.path()).env("TERM", "xterm-256color").env_remove("NO_COLOR");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let shell_child = shell.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(shell);
        let tty = {
            use std::os::fd::AsRawFd;
            std::fs::read_link(format!("/proc/self/fd/{}", pty.slave.as_raw_fd())).unwrap()
        };
        drop(pty.slave);
        let keys = File::from(pty.master);
        let mut from = keys.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(Parser::new(size(rows), size(columns), 0)));
        let shown = screen.clone();
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { keys, tty, screen, shell: shell_child, reader, notes }
    }

    fn top(stage: &Stage, arguments: &[&str]) -> Self {
        Self::of(stage.command(["top", "--every", "200ms"]).args(arguments), 30, 120)
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    #[track_caller]
    fn shows(&self, words: &[&str]) {
        let missing = || words.iter().filter(|words| !self.contents().contains(**words)).collect::<Vec<_>>();
        for _ in 0..6_000 {
            if missing().is_empty() {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{:?} never shows: {}", missing(), self.contents());
    }

    #[track_caller]
    fn shows_no_more(&self, words: &str) {
        eventually(words, || !self.contents().contains(words));
    }

    fn resize(&self, rows: u16, columns: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(size(rows), size(columns));
        let settings = ["rows".to_owned(), rows.to_string(), "cols".to_owned(), columns.to_string()];
        assert!(Command::new("stty").arg("-F").arg(&self.tty).args(settings).status().unwrap().success());
    }

    /// Whether anything on the screen has a colour.
    fn has_colours(&self) -> bool {
        let screen = self.screen.lock().unwrap();
        let (rows, columns) = screen.screen().size();
        (0..rows.get()).any(|row| {
            (0..columns.get()).any(|column| {
                screen.screen().cell(row, column).is_some_and(|cell| cell.fgcolor() != Color::Default)
            })
        })
    }

    /// Its exit code, if the terminal is as it was before.
    #[track_caller]
    fn ends(self) -> i32 {
        let Ended { code, .. } = end(self.shell, BOUND);
        // Everything that was written is on the screen by then.
        self.reader.join().unwrap();
        let note = |name| std::fs::read_to_string(self.notes.path().join(name)).unwrap();
        assert_eq!(note("before"), note("after"), "the terminal's settings are not what they were");
        let screen = self.screen.lock().unwrap();
        assert!(
            !screen.screen().alternate_screen() && !screen.screen().hide_cursor(),
            "the screen is not back"
        );
        code
    }
}

#[test]
fn masters_locks_and_what_happens_to_them_show_as_it_goes_on() {
    let stage = Stage::new();
    stage.set(&ALL, &["SET", "order:1", HOLDER, "PX", "600000"]);
    stage.set(&ALL, &["SET", "stuck", "1"]);
    let mut terminal = Terminal::top(&stage, &[]);
    let first = stage.bed[0].address().to_string();
    terminal.shows(&["5 of 5 masters up, 2 locks held", &first, "order:1", "web-3:1842", "5/5", "█"]);
    terminal.shows(&["stuck", "no ttl", "q quit"]);

    stage.set(&ALL, &["SET", "order:2", HOLDER, "PX", "600000"]);
    terminal.shows(&["3 locks held", "taken       order:2"]);
    stage.set(&ALL, &["DEL", "order:2"]);
    terminal.shows(&["released    order:2", "2 locks held"]);
    stage.set(&ALL, &["SET", "order:3", HOLDER, "PX", "1500"]);
    terminal.shows(&["taken       order:3"]);
    terminal.shows(&["expired     order:3"]);
    stage.set(&ALL[..3], &["DEL", "order:1"]);
    terminal.shows(&["lost        order:1", "leftovers"]);
    assert!(stage.bed[1].inject(Fault::Kill).is_installed());
    terminal.shows(&["4 of 5 masters up", "down        m2"]);
    assert!(stage.bed[1].inject(Fault::Restart(quorlock::testbed::Data::Empty)).is_installed());
    terminal.shows(&["5 of 5 masters up", "not admitted yet"]);

    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn keys_filter_sort_help_and_quit() {
    let stage = Stage::new();
    for (name, ttl) in [("alpha", "900000"), ("beta", "600000"), ("gamma", "700000")] {
        stage.set(&ALL, &["SET", name, HOLDER, "PX", ttl]);
    }
    let mut terminal = Terminal::top(&stage, &[]);
    terminal.shows(&["alpha", "beta", "gamma", "resource ▼"]);
    let order = |terminal: &Terminal| {
        let contents = terminal.contents();
        let mut names: Vec<&str> =
            ["alpha", "beta", "gamma"].into_iter().filter(|name| contents.contains(name)).collect();
        names.sort_by_key(|name| contents.find(name));
        names.concat()
    };
    terminal.types("\x1b[D");
    terminal.shows(&["remaining ▼"]);
    eventually("sorted by what is left", || order(&terminal) == "betagammaalpha");
    terminal.types("r");
    eventually("the other way round", || order(&terminal) == "alphagammabeta");
    terminal.types("/mm");
    terminal.shows(&["show only: mm"]);
    eventually("only one", || order(&terminal) == "gamma");
    // A letter of a filter is no command.
    terminal.types("q\x7f\r");
    terminal.shows(&["only \"mm\""]);
    terminal.types("?");
    terminal.shows(&["help", "PageUp"]);
    terminal.types("?");
    terminal.shows_no_more("PageUp");
    terminal.types("\x1b");
    eventually("all of them", || order(&terminal) == "alphagammabeta");
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130);
}

#[test]
fn the_terminal_is_left_as_it_was_when_a_signal_ends_it() {
    let stage = Stage::new();
    let terminal = Terminal::top(&stage, &[]);
    terminal.shows(&["5 of 5 masters up"]);
    // The shell's only child.
    let pid = terminal.shell.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let status = Command::new("kill").args(["-TERM", children.trim()]).status().unwrap();
    assert!(status.success());
    assert_eq!(terminal.ends(), 143);
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let stage = Stage::new();
    stage.set(&ALL, &["SET", "order:1", HOLDER, "PX", "600000"]);
    let mut terminal = Terminal::top(&stage, &[]);
    terminal.shows(&["order:1", "q quit"]);
    for (rows, columns) in [(14, 60), (50, 200), (3, 10), (24, 80)] {
        terminal.resize(rows, columns);
        let last = move |terminal: &Terminal| {
            terminal.screen.lock().unwrap().screen().rows(0, columns).last().unwrap_or_default()
        };
        eventually("the foot is at the bottom", || last(&terminal).starts_with("q quit"));
    }
    terminal.shows(&["order:1"]);
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn colours_only_in_a_terminal_and_not_with_no_color() {
    let stage = Stage::new();
    let mut coloured = Terminal::top(&stage, &[]);
    coloured.shows(&["5 of 5 masters up"]);
    assert!(coloured.has_colours());
    coloured.types("q");
    assert_eq!(coloured.ends(), 0);
    let mut plain = Terminal::of(stage.command(["top"]).env("NO_COLOR", "1"), 30, 120);
    plain.shows(&["5 of 5 masters up"]);
    assert!(!plain.has_colours());
    plain.types("q");
    assert_eq!(plain.ends(), 0);

    // Other commands: clap's own words, and ours.
    for arguments in [&["--help"][..], &["inspect"], &["explain", "1"]] {
        let words = if arguments == ["inspect"] { "Usage" } else { "quorlock" };
        let terminal = Terminal::of(quorlock().args(arguments).env("NO_COLOR", "1"), 40, 120);
        terminal.shows(&[words]);
        assert!(!terminal.has_colours(), "{arguments:?}");
        end(terminal.shell, BOUND);
        let piped = crate::stage::run(quorlock().args(arguments));
        assert!(!piped.out.contains('\x1b') && !piped.err.contains('\x1b'), "{piped:?}");
    }
}

#[test]
fn without_a_terminal_there_are_lines_and_objects() {
    let stage = Stage::new();
    stage.set(&ALL, &["SET", "order:1", HOLDER, "PX", "600000"]);
    let lines = stage.quorlock(["top", "--count", "1"]);
    for words in ["5 of 5 masters up, 1 lock held", "order:1", HOLDER, "5/5", "round trip"] {
        assert!(lines.ok().contains(words), "{words}: {lines:?}");
    }
    assert!(!lines.out.contains('\x1b') && lines.err.is_empty(), "{lines:?}");
    let mut plain =
        Terminal::of(&mut stage.command(["top", "--plain", "--count", "2", "--every", "100ms"]), 30, 120);
    plain.shows(&["5 of 5 masters up, 1 lock held"]);
    assert!(!plain.screen.lock().unwrap().screen().alternate_screen());
    plain.types("q");
    assert_eq!(plain.ends(), 0);

    let objects = stage.quorlock(["top", "order:*", "--json", "--count", "2", "--every", "100ms"]);
    let objects: Vec<Value> = objects.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    let (lock, master) = (&objects[0]["locks"][0], &objects[0]["masters"][4]);
    assert_eq!(
        (&lock["resource"], &lock["votes"], &lock["outcome"]),
        (&"order:1".into(), &5.into(), &"held".into())
    );
    assert!(lock["remaining_ms"].as_u64().unwrap() > 500_000, "{lock}");
    assert_eq!((&master["state"], &master["error"]), (&"up".into(), &Value::Null), "{master}");
    assert!(master["round_trip_us"].as_u64().is_some() && objects[1]["events"] == Value::Array(Vec::new()));
}

#[test]
fn it_goes_on_without_a_quorum_and_ends_when_nobody_reads() {
    let stage = Stage::new();
    for master in [0, 1, 2] {
        assert!(stage.bed[master].inject(Fault::Kill).is_installed());
    }
    let lines = stage.quorlock(["top", "--count", "2", "--every", "100ms"]);
    assert!(lines.ok().contains("2 of 5 masters up, 3 needed, 0 locks held"), "{lines:?}");
    assert!(lines.out.contains("down: "), "{lines:?}");
    let mut unread = stage.command(["top", "--every", "100ms"]);
    let mut unread = unread.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    drop(unread.stdout.take());
    assert_eq!(end(unread, BOUND).code, 0);
    let interrupted = crate::stage::start(&mut stage.command(["top"]));
    thread::sleep(std::time::Duration::from_millis(300));
    signal(&interrupted, "-INT");
    let ended = end(interrupted, BOUND);
    assert!([130].contains(&ended.code) && !ended.err.contains("error"), "{ended:?}");
}

#[test]
fn looks_that_cannot_be_are_refused_before_any_traffic() {
    let nowhere = |arguments: &[&str]| {
        crate::stage::run(quorlock().args(["--masters", "redis://127.0.0.1:1", "top"]).args(arguments))
    };
    nowhere(&["--every", "1ms"]).fails(2, &["--every 1ms", "100ms"]);
    nowhere(&["--every", "5"]).fails(2, &["--every", "unit"]);
    nowhere(&["--count", "0"]).fails(2, &["--count"]);
}
