//! At a terminal: reading it, Ctrl-C, Ctrl-Z.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use super::scene::Traces;
use crate::stage::{BOUND, Stage, end, eventually, quorlock, terminal};

/// A terminal with a shell at it that has job control.
struct Terminal {
    keys: File,
    screen: Arc<Mutex<String>>,
    shell: Child,
}

impl Terminal {
    fn new(stage: &Stage) -> Self {
        let (keys, slave) = terminal();
        let mut command = Command::new("setsid");
        command.args([
            "--ctty",
            "env",
            "--default-signal",
            "bash",
            "--norc",
            "--noprofile",
            "--noediting",
            "-i",
        ]);
        command.env("PS1", "$ ").env("TERM", "dumb").env("Q", quorlock().get_program());
        command.env("QUORLOCK_MASTERS", stage.urls());
        let end = || Stdio::from(slave.try_clone().unwrap());
        let shell = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(command);
        drop(slave);
        let mut from = keys.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = screen.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { keys, screen, shell }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is on the screen. What is typed is shown, too, so these words must not be part of that.
    #[track_caller]
    fn shows(&self, words: &str) {
        for _ in 0..6_000 {
            if self.screen().contains(words) {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{words:?} never shows: {:?}", self.screen());
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    fn ends(mut self) {
        self.types("exit 0\n");
        assert_eq!(end(self.shell, BOUND).code, 0);
    }
}

#[test]
fn a_command_reads_the_terminal_and_the_shell_has_it_back_afterwards() {
    let stage = Stage::new();
    let mut terminal = Terminal::new(&stage);
    terminal.types("$Q run a -- sh -c 'read word; echo \"<$word>\"; exit 9'; echo \"code=$?\"\n");
    terminal.types("hello\n");
    terminal.shows("<hello>");
    terminal.shows("code=9");
    terminal.types("echo \"back$((1+1))\"\n");
    terminal.shows("back2");
    terminal.ends();
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let stage = Stage::new();
    let traces = Traces::new();
    let mut terminal = Terminal::new(&stage);
    // With the terminal to itself, and as one of a pipeline, where the terminal stays with its neighbours' group.
    for (nth, end) in ["", " | cat"].iter().enumerate() {
        let got = traces.file(&format!("got{nth}"));
        let script = format!(
            "trap \"echo >> {0}\" INT; touch {0}.ready; while ! [ -s {0} ]; do sleep 0.02; done; sleep 0.5; exit 9",
            got.display()
        );
        terminal.types(&format!(
            "(trap '' PIPE; $Q run a -- sh -c '{script}'; echo \"code{nth}=$?\" >&2){end}\n"
        ));
        let ready = format!("got{nth}.ready");
        eventually("it runs", || traces.has(&ready));
        terminal.types("\x03");
        terminal.shows(&format!("code{nth}=9"));
        assert_eq!(traces.read(&format!("got{nth}")), "\n", "{}", terminal.screen());
    }
    terminal.ends();
}

#[test]
fn ctrl_z_stops_it_with_its_command_and_fg_continues_both() {
    let stage = Stage::new();
    let mut terminal = Terminal::new(&stage);
    terminal.types(
        "$Q run a -- sh -c 'echo \"started $((1+1))\"; read word; echo \"<$word>\"'; echo \"code=$?\"\n",
    );
    terminal.shows("started 2");
    terminal.types("\x1a");
    terminal.shows("stopped, and so is renewal");
    terminal.shows("code=1");
    terminal.types("jobs; echo \"listed$((1+1))\"\n");
    terminal.shows("listed2");
    assert!(terminal.screen().contains("Stopped"), "{}", terminal.screen());
    terminal.types("fg; echo \"after=$?\"\n");
    terminal.types("hello\n");
    terminal.shows("<hello>");
    terminal.shows("after=0");
    assert!(stage.is_free("a"));
    terminal.ends();
}

#[test]
fn one_stopped_by_ctrl_z_past_the_deadline_is_killed_and_lost() {
    let stage = Stage::new();
    let traces = Traces::new();
    let mut terminal = Terminal::new(&stage);
    let ready = traces.file("ready");
    // Nothing but the shell's own words: one that is just beginning a program cannot stop before that has begun.
    terminal.types(&format!("$Q run a --ttl 3s -- sh -c ': > {}; read word'\n", ready.display()));
    eventually("it runs", || traces.has("ready"));
    terminal.types("\x1a");
    terminal.shows("Stopped");
    traces.are_alone();
    terminal.types("fg; echo \"after=$?\"\n");
    terminal.shows("after=76");
    terminal.ends();
}

#[test]
fn one_of_a_pipeline_gets_the_terminal_when_it_asks() {
    let stage = Stage::new();
    let mut terminal = Terminal::new(&stage);
    terminal.types("$Q run a -- sh -c 'read word < /dev/tty; echo \"<$word>\"' | cat\n");
    terminal.types("hello\n");
    terminal.shows("<hello>");
    terminal.ends();
}

#[test]
fn one_in_the_background_that_reads_is_stopped_until_it_is_in_the_foreground() {
    let stage = Stage::new();
    let mut terminal = Terminal::new(&stage);
    terminal.types("$Q run a -- sh -c 'read word; echo \"<$word>\"' &\n");
    terminal.shows("stopped, and so is renewal");
    terminal.types("fg\n");
    terminal.types("hello\n");
    terminal.shows("<hello>");
    terminal.ends();
}
