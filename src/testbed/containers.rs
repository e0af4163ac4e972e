//! Masters in containers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::testbed::condition::Condition;
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::fault::{Fault, Outcome};
use crate::testbed::status::MasterStatus;
use crate::testbed::wire::Wire;

/// The one program for faults on containers, here and for people.
const SCRIPT: &str = include_str!("../../docker/faults.sh");

/// How many masters `docker/compose.yaml` has.
pub(super) const MASTERS: usize = 5;

/// Which port of a container is looked for, in which container: through the proxy, if there is one.
const DIRECT: &str = "6379/tcp";

/// What the engine is asked of each container: name, state, process, networks, and the port it was given on this machine, which
/// it keeps while it is down.
const LOOK: &str = "{{.Name}} {{.State.Status}} {{.State.Pid}} {{len .NetworkSettings.Networks}} \
                    {{(index (index .HostConfig.PortBindings \"6379/tcp\") 0).HostPort}}";

/// The five masters that `docker/compose.yaml` brought up under a project's name, with `docker/run.sh`, by hand,
/// or as a [`StandingBed`](super::StandingBed). They are not taken down when this is dropped.
#[derive(Debug, Clone)]
pub struct Containers {
    project: String,
    /// Where snapshots for `restart-old-snapshot` are kept, unless where the script keeps them.
    kept: Option<PathBuf>,
}

impl Containers {
    /// Those of this project: `$QUORLOCK_PROJECT` of the one who brought them up, `quorlock` unless it was set.
    pub fn of(project: impl Into<String>) -> Self {
        Self { project: project.into(), kept: None }
    }

    pub(super) fn keeping(project: String, kept: PathBuf) -> Self {
        Self { project, kept: Some(kept) }
    }

    /// Those that `docker/run.sh` brought up for the command that is running: `$QUORLOCK_CONTAINERS`.
    pub fn from_env() -> Option<Self> {
        std::env::var("QUORLOCK_CONTAINERS").ok().filter(|project| !project.is_empty()).map(Self::of)
    }

    /// The project's name.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Where the proxies in front of the masters listen on this machine, or the masters themselves if there are no
    /// proxies.
    ///
    /// # Errors
    /// Without an engine, or if a container is not up.
    pub fn urls(&self) -> Result<Vec<String>, TestbedError> {
        if self.docker(&["inspect", &format!("{}-proxy", self.project)]).is_err() {
            return self.direct_urls();
        }
        (1..=MASTERS).map(|nth| self.published("proxy", &format!("{}/tcp", 7100 + nth))).collect()
    }

    /// Where the masters themselves listen on this machine. A container that is down or cut off has no such place.
    ///
    /// # Errors
    /// As [`urls`](Self::urls).
    pub fn direct_urls(&self) -> Result<Vec<String>, TestbedError> {
        (1..=MASTERS).map(|nth| self.published(&format!("m{nth}"), DIRECT)).collect()
    }

    /// Puts a fault in place at one master, counted from 1 as their names are.
    pub fn inject(&self, master: usize, fault: Fault) -> Outcome {
        self.run(master, fault, "--keep")
    }

    /// Takes a fault away again.
    pub fn undo(&self, master: usize, fault: Fault) -> Outcome {
        self.run(master, fault, "--undo")
    }

    /// How all masters are, a line each, for people.
    ///
    /// # Errors
    /// If the shell cannot be run.
    pub fn status(&self) -> Result<String, TestbedError> {
        let output = self.script(&["status"]).output().doing(|| "run sh".into())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// How each master is, in order: what the engine says of its container, and what it says of itself.
    ///
    /// # Errors
    /// Without an engine, or if one of the containers is not there. A master that is down, frozen, cut off or silent is a
    /// status, not an error.
    pub fn masters(&self) -> Result<Vec<MasterStatus>, TestbedError> {
        let names: Vec<String> = (1..=MASTERS).map(|nth| format!("{}-m{nth}", self.project)).collect();
        let words: Vec<&str> = ["container", "inspect", "-f", LOOK]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .collect();
        let said = self.docker(&words)?;
        said.lines()
            .filter(|line| !line.is_empty())
            .enumerate()
            .map(|(index, line)| status(index, line))
            .collect()
    }

    /// Whether a master answers there.
    pub(super) fn answers(address: SocketAddr) -> bool {
        Wire::connect(address)
            .and_then(|mut wire| wire.command(&["PING"]))
            .is_ok_and(|reply| reply.text().as_deref() == Some("PONG"))
    }

    fn run(&self, master: usize, fault: Fault, how: &str) -> Outcome {
        let output = match self.script(&[&format!("m{master}"), &fault.to_string(), how]).output() {
            Ok(output) => output,
            Err(error) => return Outcome::skipped(format!("sh cannot be run: {error}")),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        // `m1: undo freeze: skipped: why`, the last line.
        let outcome = said.lines().last().and_then(|line| line.splitn(3, ": ").nth(2));
        match outcome.map(|outcome| outcome.split_once(": ").unwrap_or((outcome, ""))) {
            Some(("installed", _)) => Outcome::Installed,
            Some(("skipped", why)) => Outcome::skipped(why),
            Some(("indeterminate", why)) => Outcome::Indeterminate { why: why.into() },
            _ => Outcome::Indeterminate { why: String::from_utf8_lossy(&output.stderr).trim().into() },
        }
    }

    fn script(&self, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "faults.sh"]).args(words).env("QUORLOCK_PROJECT", &self.project);
        if let Some(kept) = &self.kept {
            command.env("QUORLOCK_STATE", kept);
        }
        command.stdin(Stdio::null());
        command
    }

    fn published(&self, container: &str, port: &str) -> Result<String, TestbedError> {
        let container = format!("{}-{container}", self.project);
        // One line for each address; the test bed publishes at one.
        let said = self.docker(&["port", &container, port])?;
        match said.lines().next().filter(|address| !address.is_empty()) {
            Some(address) => Ok(format!("redis://{address}")),
            None => Err(TestbedError::Cannot { why: format!("{container} is not up") }),
        }
    }

    pub(super) fn docker(&self, words: &[&str]) -> Result<String, TestbedError> {
        let asking = || format!("ask docker for {}", words.join(" "));
        let output = Command::new("docker").args(words).stdin(Stdio::null()).output().doing(asking)?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(io::Error::other(why)).doing(asking)
        }
    }
}

fn status(index: usize, line: &str) -> Result<MasterStatus, TestbedError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let strange = || TestbedError::Cannot { why: format!("the engine says of a container: {line}") };
    let [_, state, pid, networks, port] = words[..] else { return Err(strange()) };
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse().map_err(|_| strange())?));
    let condition = match (state, networks) {
        ("running", "0") => Condition::Cut,
        ("running", _) => Condition::Up,
        ("paused", _) => Condition::Frozen,
        _ => Condition::Down,
    };
    let pid = pid.parse().ok().filter(|pid| *pid > 0);
    Ok(MasterStatus::of(index, format!("redis://{address}"), condition, pid, || Wire::connect(address)))
}

impl fmt::Display for Containers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "containers of {}", self.project)
    }
}
