//! Masters, and the program run on them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::openpty;
use quorlock::testbed::{Reply, Testbed};
use serde_json::Value;

/// Far above what any command here takes, so that only a hang meets it.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// What a command left.
#[derive(Debug)]
pub(crate) struct Ended {
    /// 128+N if signal N ended it.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The one object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// That exit code, and all these words on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains("error: "), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is missing: {self:?}");
        }
        self
    }

    /// Standard output without its last line end, if all went well.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        self.out.trim_end()
    }
}

/// The program, without what the caller's environment has for it.
pub(crate) fn quorlock() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock"));
    command.env_remove("QUORLOCK_MASTERS");
    command
}

/// Runs it to its end; one that does not end is killed and fails the test.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Ended {
    end(start(command), BOUND)
}

pub(crate) fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
pub(crate) fn end(mut child: Child, bound: Duration) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    fn reader(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        })
    }
    let out = child.stdout.take().map(reader);
    let err = child.stderr.take().map(reader);
    let look_every = Duration::from_millis(5);
    let mut status = None;
    for _ in 0..bound.as_millis() / look_every.as_millis() {
        status = child.try_wait().unwrap();
        if status.is_some() {
            break;
        }
        thread::sleep(look_every);
    }
    if status.is_none() {
        child.kill().unwrap();
    }
    let ended = child.wait().unwrap();
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.map(|reader| reader.join().unwrap()).unwrap_or_default()
    };
    let code = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal)).unwrap();
    let ended = Ended { code, out: text(out), err: text(err) };
    assert!(status.is_some(), "still running after {bound:?}: {ended:?}");
    ended
}

/// A terminal: what it shows and what is typed, and the end for programs. No child inherits the first, so that whoever is at it
/// is hung up when the test is over, be it by a failure.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let pty = openpty(None, None).unwrap();
    for end in [&pty.master, &pty.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
    }
    (File::from(pty.master), pty.slave)
}

/// Sends a signal by the system's own program.
pub(crate) fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Waits for what another process is about to do.
pub(crate) fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if reached() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("never: {what}");
}

/// Five masters, and the program pointed at them by its variable.
pub(crate) struct Stage {
    pub(crate) bed: Testbed,
}

impl Stage {
    /// Admitted already.
    pub(crate) fn new() -> Self {
        let stage = Self::fresh();
        stage.quorlock(["init"]).ok();
        stage
    }

    /// As they come.
    pub(crate) fn fresh() -> Self {
        Self { bed: Testbed::start(5).unwrap() }
    }

    pub(crate) fn urls(&self) -> String {
        self.bed.urls().join(",")
    }

    /// With a time limit that masters on a busy machine keep, too.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = quorlock();
        command.env("QUORLOCK_MASTERS", self.urls()).args(["--master-timeout", "2s"]).args(arguments);
        command
    }

    #[track_caller]
    pub(crate) fn quorlock<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        run(&mut self.command(arguments))
    }

    /// The value of a key on each master.
    pub(crate) fn values(&self, key: &str) -> Vec<Option<String>> {
        let text = |value: Vec<u8>| String::from_utf8(value).unwrap();
        self.bed.masters().iter().map(|master| master.get(key).unwrap().map(text)).collect()
    }

    /// Acquires, and returns what was printed. A client does not wait long for the last masters' connections, so on a
    /// busy machine a lock may sit on fewer than five at times; not so each time.
    #[track_caller]
    pub(crate) fn acquire_everywhere(&self, resource: &str, more: &[&str]) -> Ended {
        for _ in 0..20 {
            let ended = self.quorlock(["acquire", resource, "--wait", "50s"].iter().chain(more));
            let holder = ended.ok();
            let holder = serde_json::from_str::<Value>(holder)
                .map_or_else(|_| holder.to_owned(), |json| json["holder"].as_str().unwrap().to_owned());
            if self.values(resource) == vec![Some(holder.clone()); 5] {
                return ended;
            }
            self.quorlock(["release", resource, "--holder", &holder]);
        }
        panic!("the lock never sat on all five");
    }

    /// Puts a key by hand on some masters, counted from 1.
    pub(crate) fn set(&self, masters: &[usize], command: &[&str]) {
        for master in masters {
            let reply = self.bed[master - 1].command(command).unwrap();
            assert!(!matches!(reply, Reply::Error(_)), "{command:?}: {reply:?}");
        }
    }

    /// All keys but quorlock's own.
    pub(crate) fn keys(&self) -> Vec<Vec<Vec<u8>>> {
        let own = |key: &Vec<u8>| key.starts_with(b"quorlock:");
        let keys = |master: &quorlock::testbed::LocalMaster| {
            master.keys().unwrap().into_iter().filter(|key| !own(key)).collect()
        };
        self.bed.masters().iter().map(keys).collect()
    }
}

/// A text without what differs from run to run: ports, ids, times, versions, and the width of columns.
pub(crate) fn plain(stage: &Stage, text: &str) -> String {
    let mut text = text.to_owned();
    for (nth, master) in stage.bed.masters().iter().enumerate() {
        text = text.replace(&master.port().to_string(), &format!("PORT{}", nth + 1));
    }
    // Whatever server there is.
    text = text.replace("valkey", "redis");
    let lines = text.lines().filter(|line| !line.contains("compare")).map(|line| {
        let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut shown: Vec<String> = Vec::new();
        for (nth, word) in words.iter().enumerate() {
            let unit = words.get(nth + 1).map_or("", |next| next.trim_end_matches([',', ';', ')', '"']));
            let before = nth.checked_sub(1).map_or("", |before| words[before]);
            let is_number = word.trim_start_matches(['+', '-']).parse::<f64>().is_ok();
            let is_time = is_number && ["s", "ms", "min"].contains(&unit);
            let field = before.trim_matches(['"', ':']);
            let is_measured = [
                "max",
                "p50",
                "uptime_s",
                "clock_ahead_ms",
                "remaining_ms",
                "round_trip_us",
                "validity_ms",
                "expire_in_ms",
            ]
            .contains(&field)
                && before.starts_with('"');
            let is_version = ["redis", "\"redis"].contains(&before);
            shown.push(match word {
                _ if is_time => "TIME".to_owned(),
                _ if is_measured && !word.starts_with(['n', '{']) => "NUMBER,".to_owned(),
                _ if is_version => "VERSION".to_owned(),
                word if word.contains('/') && word.len() > 40 => "HOLDER".to_owned(),
                word => (*word).to_owned(),
            });
        }
        let joined =
            shown.join(" ").replace("TIME ms", "TIME").replace("TIME min", "TIME").replace("TIME s", "TIME");
        format!("{indent}{joined}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether any process was called with this path.
pub(crate) fn is_named_by_a_process(path: &Path) -> bool {
    let path = path.to_str().unwrap().as_bytes();
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        command.windows(path.len()).any(|window| window == path)
    })
}
