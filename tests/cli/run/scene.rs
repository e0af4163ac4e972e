//! What several of these tests need: commands that leave traces, and looks at processes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use quorlock::testbed::{Fault, Outcome, Proxy};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::stage::{Stage, eventually, quorlock};

/// A folder for what commands leave, which also tells them from others' processes, since it stands among their arguments.
pub(crate) struct Traces {
    folder: TempDir,
}

impl Traces {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// The last whole line of a file, as a number.
    pub(crate) fn last_number(&self, name: &str) -> u128 {
        let text = self.read(name);
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().last().unwrap_or_default().parse().unwrap()
    }

    /// `quorlock run` with these arguments and a shell script in which `$1` is the folder.
    pub(crate) fn command(&self, stage: &Stage, arguments: &[&str], script: &str) -> Command {
        self.command_over(stage, &stage.urls(), arguments, script)
    }

    /// The same by way of these.
    pub(crate) fn command_over(
        &self,
        stage: &Stage,
        urls: &str,
        arguments: &[&str],
        script: &str,
    ) -> Command {
        let mut command = stage.run_over(urls, arguments);
        command.args(["--", "sh", "-c", script, "sh"]).arg(self.path());
        command
    }

    /// The processes of commands, without the program that runs them and its helpers.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let folder = self.path().to_str().unwrap();
        let ours = |arguments: &[u8]| {
            let text = String::from_utf8_lossy(arguments).into_owned();
            text.contains(folder) && !text.split('\0').next().unwrap().ends_with("quorlock")
        };
        processes().filter(|(_, arguments)| ours(arguments)).map(|(pid, _)| pid).collect()
    }

    pub(crate) fn are_alone(&self) {
        eventually("all processes of the command are gone", || self.processes().is_empty());
    }
}

/// Every process with its arguments, each ended by NUL.
fn processes() -> impl Iterator<Item = (u32, Vec<u8>)> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, fs::read(entry.path().join("cmdline")).ok()?))
    })
}

/// The second process of a run, which watches over the first.
pub(crate) fn warden_of(run: &Child) -> u32 {
    let is_child = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_ascii_whitespace().nth(1) == Some(&run.id().to_string())
    };
    let is_warden = |arguments: &[u8]| arguments.windows(10).any(|window| window == b"run-warden");
    processes().find(|(pid, arguments)| is_warden(arguments) && is_child(*pid)).unwrap().0
}

/// A command that writes the time, again and again, in two processes that will not hear of TERM.
pub(crate) const STUBBORN: &str = r#"trap "" TERM
    beat() { while :; do date +%s%N >> "$1"; sleep 0.02; done; }
    (beat "$1/second") &
    beat "$1/first""#;

/// The command of whoever has the lock next: writes the time, once.
pub(crate) const NEXT: &str = r#"date +%s%N > "$1/next""#;

impl Traces {
    /// That the stubborn command was over before the next one began.
    #[track_caller]
    pub(crate) fn show_no_overlap(&self) {
        let next = self.last_number("next");
        for last in ["first", "second"] {
            let last = self.last_number(last);
            assert!(last < next, "{} ms of overlap", (last - next) / 1_000_000);
        }
    }

    pub(crate) fn wait_for(&self, name: &str) {
        eventually(name, || self.has(name));
    }
}

impl Stage {
    /// `quorlock run` with every signal at its default, whoever started the tests.
    pub(crate) fn run_command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.run_over(&self.urls(), arguments)
    }

    pub(crate) fn run_over<A: AsRef<OsStr>>(
        &self,
        urls: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(quorlock().get_program());
        command.env("QUORLOCK_MASTERS", urls).args(["--master-timeout", "2s", "run"]).args(arguments);
        command
    }

    pub(crate) fn is_free(&self, key: &str) -> bool {
        self.values(key).iter().filter(|value| value.is_none()).count() >= 3
    }

    pub(crate) fn is_held(&self, key: &str) -> bool {
        self.values(key).iter().filter(|value| value.is_some()).count() >= 3
    }
}

/// A network of one's own between a client and the masters.
pub(crate) struct Network {
    runtime: Runtime,
    ways: Vec<Proxy>,
}

impl Network {
    pub(crate) fn to(stage: &Stage) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let way = |address: String| runtime.block_on(Proxy::start(address)).unwrap();
        let ways = stage.bed.masters().iter().map(|master| way(master.address().to_string())).collect();
        Self { runtime, ways }
    }

    pub(crate) fn urls(&self) -> String {
        self.ways.iter().map(Proxy::url).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn cut(&self) {
        self.inject(Fault::Cut);
    }

    pub(crate) fn join(&self) {
        self.inject(Fault::Join);
    }

    fn inject(&self, fault: Fault) {
        for way in &self.ways {
            assert_eq!(self.runtime.block_on(way.inject(fault)), Outcome::Installed);
        }
    }
}
