//! top: in a terminal, and where there is none.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use quorlock::testbed::Fault;
use serde_json::Value;
use vt100::{Color, Parser};

use crate::stage::{BOUND, Ended, Stage, end, eventually, quorlock, signal, terminal};

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
        let (keys, slave) = terminal();
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
        let end = || Stdio::from(slave.try_clone().unwrap());
        let shell_child = shell.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(shell);
        let tty = {
            use std::os::fd::AsRawFd;
            std::fs::read_link(format!("/proc/self/fd/{}", slave.as_raw_fd())).unwrap()
        };
        drop(slave);
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

    /// The first letter of a text on the screen, if it is there: its colour, and whether it is marked.
    fn letter(&self, text: &str) -> Option<(Color, bool)> {
        let screen = self.screen.lock().unwrap();
        let (rows, columns) = screen.screen().size();
        let found = screen.screen().rows(0, columns.get()).enumerate().take(rows.get().into()).find_map(
            |(row, line)| {
                let before = &line[..line.find(text)?];
                Some((u16::try_from(row).unwrap(), u16::try_from(before.chars().count()).unwrap()))
            },
        );
        let cell = screen.screen().cell(found?.0, found?.1)?;
        Some((cell.fgcolor(), cell.inverse()))
    }

    #[track_caller]
    fn shows_in(&self, colour: u8, text: &str) {
        eventually(text, || self.letter(text).is_some_and(|(is, _)| is == Color::Idx(colour)));
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
fn each_column_sorts_and_the_mark_moves() {
    let stage = Stage::new();
    let name = |letter: char| HOLDER.replacen('w', &letter.to_string(), 1);
    stage.set(&ALL, &["SET", "alpha", &name('z'), "PX", "700000"]);
    stage.set(&ALL[..1], &["SET", "beta", &name('y'), "PX", "900000"]);
    stage.set(&ALL[..4], &["SET", "gamma", &name('x'), "PX", "600000"]);
    let mut terminal = Terminal::top(&stage, &[]);
    terminal.shows(&["alpha", "beta", "gamma", "resource ▼", "5/5", "1/5", "4/5"]);
    let order = |terminal: &Terminal| {
        let contents = terminal.contents();
        let mut names = ["alpha", "beta", "gamma"];
        names.sort_by_key(|name| contents.find(name));
        names.concat()
    };
    for (column, sorted) in [
        ("state ▼", "alphagammabeta"),
        ("holder ▼", "gammabetaalpha"),
        ("votes ▼", "betagammaalpha"),
        ("remaining ▼", "gammaalphabeta"),
        ("resource ▼", "alphabetagamma"),
    ] {
        terminal.types("\x1b[C");
        terminal.shows(&[column]);
        eventually(column, || order(&terminal) == sorted);
    }
    let marked = |terminal: &Terminal, name: &str| terminal.letter(name).is_some_and(|(_, marked)| marked);
    terminal.types("\x1b[B");
    eventually("the first is marked", || marked(&terminal, "alpha"));
    terminal.types("\x1b[B");
    eventually("the second is marked", || marked(&terminal, "beta") && !marked(&terminal, "alpha"));
    terminal.types("\x1b[A");
    eventually("the first again", || marked(&terminal, "alpha") && !marked(&terminal, "beta"));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn colours_and_bars_say_how_it_is() {
    const RED: u8 = 1;
    const GREEN: u8 = 2;
    const YELLOW: u8 = 3;
    let stage = Stage::new();
    stage.set(&ALL, &["SET", "order:1", HOLDER, "PX", "900000"]);
    stage.set(&ALL[..2], &["SET", "order:2", HOLDER, "PX", "900000"]);
    stage.set(&ALL, &["SET", "stuck", "1"]);
    let mut terminal = Terminal::top(&stage, &[]);
    terminal.shows(&["order:1"]);
    for master in stage.bed.masters() {
        terminal.shows(&[&master.address().to_string()]);
    }
    for (colour, text) in [
        (GREEN, "5 of 5 masters up"),
        (GREEN, "held       web-3"),
        (YELLOW, "leftovers"),
        (RED, "no ttl"),
        (GREEN, "████████████ 8"),
    ] {
        terminal.shows_in(colour, text);
    }
    // A quarter of the longest that was seen.
    stage.set(&ALL, &["PEXPIRE", "order:1", "225000"]);
    terminal.shows_in(YELLOW, "███░░░░░░░░░ 2");
    stage.set(&ALL, &["SET", "order:3", HOLDER, "PX", "900000"]);
    terminal.shows(&["taken       order:3"]);
    stage.set(&ALL[..3], &["DEL", "order:3"]);
    terminal.shows_in(RED, &first_letter_of(&terminal, "lost        order:3"));
    assert!(stage.bed[4].inject(Fault::Kill).is_installed());
    terminal.shows_in(RED, "down: ");
    terminal.shows_in(GREEN, "4 of 5 masters up");
    for master in [1, 2] {
        assert!(stage.bed[master].inject(Fault::Kill).is_installed());
    }
    terminal.shows_in(RED, "2 of 5 masters up, 3 needed");
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

/// An event's line has its colour from its beginning; this waits for the event.
fn first_letter_of(terminal: &Terminal, event: &str) -> String {
    terminal.shows(&[event]);
    event.to_owned()
}

#[test]
fn a_master_that_hangs_is_no_reason_to_show_old_things_as_new() {
    let stage = Stage::new();
    let mut terminal = Terminal::top(&stage, &["--connect-timeout", "20s"]);
    terminal.shows(&["5 of 5 masters up"]);
    assert!(!terminal.contents().contains("seen"));
    let frozen = stage.bed[1].injected(Fault::Freeze);
    assert!(frozen.outcome().is_installed());
    terminal.shows(&["seen ", " ago"]);
    drop(frozen);
    terminal.shows_no_more("seen ");
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
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
fn what_happens_shows_in_lines_and_objects_too() {
    let stage = Stage::new();
    stage.set(&ALL, &["SET", "order:0", "1"]);
    stage.set(&ALL, &["SET", "other", HOLDER, "PX", "600000"]);
    let watch = |more: &[&str]| {
        let mut command = stage.command(["top", "order:*", "--every", "300ms", "--count", "12"]);
        crate::stage::start(command.args(more))
    };
    let (lines, objects) = (watch(&[]), watch(&["--json"]));
    thread::sleep(std::time::Duration::from_millis(900));
    stage.set(&ALL, &["SET", "order:1", HOLDER, "PX", "600000"]);
    thread::sleep(std::time::Duration::from_millis(900));
    stage.set(&ALL, &["DEL", "order:1"]);
    assert!(stage.bed[1].inject(Fault::Kill).is_installed());
    let lines = end(lines, BOUND);
    for words in ["taken       order:1  web-3", "released    order:1", "down        m2", "down: ", "no ttl"] {
        assert!(lines.ok().contains(words), "{words}: {lines:?}");
    }
    assert!(!lines.out.contains("other"), "{lines:?}");
    assert_eq!(lines.out.matches("masters up").count(), 12);
    let objects = end(objects, BOUND);
    let objects: Vec<Value> = objects.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&Value> =
        objects.iter().flat_map(|object| object["events"].as_array().unwrap()).collect();
    let told = |what: &str, of: &str| {
        events.iter().any(|event| event["event"] == what && event["of"].as_str().unwrap().starts_with(of))
    };
    assert!(told("taken", "order:1") && told("released", "order:1") && told("down", "m2 "), "{events:?}");
    let last = &objects[objects.len() - 1];
    assert!(last["masters"][1]["error"].as_str().unwrap().contains("refused"), "{last}");
    assert_eq!(last["masters"][1]["round_trip_us"], Value::Null);
    let names = |object: &Value| {
        let locks = object["locks"].as_array().unwrap().clone();
        locks.iter().map(|lock| lock["resource"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(last), ["order:0"]);
    // Masters that abstain, and more locks than are shown.
    stage.set(&ALL[2..3], &["DEL", "quorlock:admitted"]);
    stage.quorlock(["acquire", "b", "--wait", "0s"]).ok();
    let object = stage.quorlock(["top", "--json", "--count", "1", "--limit", "1"]).json();
    assert_eq!((names(&object).len(), &object["complete"]), (1, &false.into()));
    let third = &object["masters"][2];
    assert!(third["state"] == "quarantined" && third["quarantined_ms"].as_u64() > Some(1_000), "{third}");
    let lines = stage.quorlock(["top", "--count", "1", "--limit", "1"]);
    assert!(lines.ok().contains("4 of 5 masters up, 1 lock held, and more than --limit shows"), "{lines:?}");
}

#[test]
fn it_ends_after_so_many_looks_in_a_terminal_too() {
    let stage = Stage::new();
    let terminal = Terminal::top(&stage, &["--count", "3"]);
    assert_eq!(terminal.ends(), 0);
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
