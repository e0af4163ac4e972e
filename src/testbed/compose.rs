//! Five masters in containers, brought up by Compose and taken away again.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::testbed::binary::ServerBinary;
use crate::testbed::containers::{Containers, MASTERS};
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::folder::Folder;
use crate::testbed::port::Port;
use crate::testbed::skew::{Preload, Skew};
use crate::testbed::timer::now;

/// Written where Compose and the shell read them, since a program that was installed has no checkout beside it.
const COMPOSE: &str = include_str!("../../docker/compose.yaml");
const IMAGES: &str = include_str!("../../docker/images.sh");

/// How long masters whose image is there may take to answer.
const START_WITHIN: Duration = Duration::from_secs(60);

/// How often they are asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How many networks are tried before there is none to be had.
const NETWORKS: u32 = 16;

/// The containers of one place, and the folder of what they were made by.
#[derive(Debug, Clone)]
pub(super) struct Compose {
    containers: Containers,
    folder: PathBuf,
}

/// How many masters were ended, and how many had ended before.
pub(super) struct Ended {
    pub(super) now: usize,
    pub(super) before: usize,
}

impl Compose {
    /// Those of the bed that is, or will be, written down at `record`. The name comes from the place alone, so that what a lost
    /// record leaves is found by the next bed of the same place.
    pub(super) fn of(record: &Path) -> Self {
        let place = std::path::absolute(record).unwrap_or_else(|_| record.to_owned());
        // FNV-1a: short, and the same in every program.
        let hash = place
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        Self::named(format!("quorlock-bed-{hash:08x}"), record)
    }

    /// Those of a bed that is written down at `record` under this project's name.
    pub(super) fn named(project: String, record: &Path) -> Self {
        let folder = record.with_extension("d");
        Self { containers: Containers::keeping(project, folder.join("faults")), folder }
    }

    pub(super) fn containers(&self) -> &Containers {
        &self.containers
    }

    /// What brings containers up here: `docker compose`, or `docker-compose`.
    pub(super) fn program() -> Result<&'static [&'static str], TestbedError> {
        let lacking = |why: String| TestbedError::NoEngine { why };
        let engine = quiet("docker", ["version", "--format", "{{.Server.Version}}"])
            .map_err(|error| lacking(format!("docker cannot be run: {error}")))?;
        if !engine.status.success() {
            return Err(lacking(format!("no Docker engine answers: {}", last_words(&engine))));
        }
        let programs: [&[&str]; 2] = [&["docker", "compose"], &["docker-compose"]];
        let works = |words: &[&str]| {
            let version = words.iter().skip(1).chain(&["version"]);
            quiet(words[0], version).is_ok_and(|output| output.status.success())
        };
        let found = programs.into_iter().find(|words| works(words));
        found.ok_or_else(|| lacking("there is no Compose (docker compose, or docker-compose)".into()))
    }

    /// Whether something of this name is there already.
    pub(super) fn is_there(&self) -> Result<bool, TestbedError> {
        // Volumes alone would make old data of fresh masters.
        let left = [("container", &["-a"][..]), ("network", &[]), ("volume", &[])];
        let left =
            left.into_iter().map(|(kind, more)| self.list(kind, more)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.folder.symlink_metadata().is_ok() || !left.concat().is_empty())
    }

    /// Makes and starts them, and waits until all answer. What a failure leaves is for [`remove`](Self::remove).
    pub(super) fn up(&self, program: &[&str], clocks: bool) -> Result<Vec<String>, TestbedError> {
        let make = || format!("create {}", self.folder.display());
        DirBuilder::new().mode(0o700).create(&self.folder).doing(make)?;
        for (name, text) in [("compose.yaml", COMPOSE), ("images.sh", IMAGES)] {
            fs::write(self.folder.join(name), text).doing(make)?;
        }
        let image = self.image()?;
        let net = self.free_network()?;
        let ports = (0..MASTERS)
            .map(|_| Port::standing(Folder::is_there_for))
            .collect::<Result<Vec<_>, _>>()
            .doing(|| "find free ports".into())?;
        let urls = ports.iter().map(|port| format!("redis://{}", port.address())).collect();
        let compose = |words: &[&str]| {
            let mut command = self.compose(program);
            command.env("QUORLOCK_IMAGE", &image).env("QUORLOCK_NET", &net).args(words);
            for (nth, port) in ports.iter().enumerate() {
                command.env(format!("QUORLOCK_PORT{}", nth + 1), port.number().to_string());
            }
            if clocks {
                command.env("QUORLOCK_PRELOAD", "/clock/skew.so");
            }
            done(&mut command, "bring the containers up")
        };
        if clocks {
            let folder = self.clocks()?;
            compose(&["up", "--no-start"])?;
            let into = format!("{}-m1:/clock", self.containers.project());
            self.containers.docker(&["cp", &format!("{}/.", folder.display()), &into])?;
        }
        compose(&["up", "-d"])?;
        self.wait_until_up(&ports)?;
        Ok(urls)
    }

    /// Ends and removes every container, network and volume of this project, and the folder. Whatever the labels that Compose
    /// gave them do not name is not touched.
    pub(super) fn remove(&self) -> Result<Ended, TestbedError> {
        let running = self.list("container", &[])?.len();
        let masters = self.list("container", &["-a"])?;
        let before = masters.len().saturating_sub(running);
        if !masters.is_empty() {
            self.remove_all(&["rm", "-f", "-v"], &masters)?;
        }
        for kind in ["network", "volume"] {
            let left = self.list(kind, &[])?;
            if !left.is_empty() {
                self.remove_all(&[kind, "rm"], &left)?;
            }
        }
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).doing(|| format!("remove {}", self.folder.display()))
            }
            _ => Ok(Ended { now: running, before }),
        }
    }

    fn compose(&self, program: &[&str]) -> Command {
        let mut command = Command::new(program[0]);
        // What the caller's variables say is about another bed.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("QUORLOCK_") || ["COMPOSE_PROFILES", "COMPOSE_ENV_FILES"].contains(&&*text) {
                command.env_remove(&name);
            }
        }
        let project = self.containers.project();
        command.args(&program[1..]).args(["-p", project, "-f"]).arg(self.folder.join("compose.yaml"));
        command.env("QUORLOCK_PROJECT", project);
        command
    }

    /// The public image of a server, or one that is made of this machine's.
    fn image(&self) -> Result<String, TestbedError> {
        let mut command = Command::new("sh");
        command.arg(self.folder.join("images.sh")).arg("server");
        match ServerBinary::find() {
            Ok(server) => {
                command.env("QUORLOCK_SERVER", server.path());
            }
            // Only where no image can be had otherwise.
            Err(TestbedError::NoServer { .. }) => {}
            Err(error) => return Err(error),
        }
        let output = done(&mut command, "have an image of a server")?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The first three numbers of addresses that no network of this engine has. It is asked by trying: what it creates it
    /// also checks.
    fn free_network(&self) -> Result<String, TestbedError> {
        let project = self.containers.project();
        let (label, name) = (label(project), format!("{project}-probe"));
        let mut refused = Ok(String::new());
        for nth in 0..NETWORKS {
            let net = format!("10.89.{}", 1 + (std::process::id() + nth * 13) % 250);
            let subnet = format!("{net}.0/24");
            let create = ["network", "create", "--label", &label, "--subnet", &subnet, &name];
            refused = self.containers.docker(&create);
            if refused.is_ok() {
                self.containers.docker(&["network", "rm", &name])?;
                return Ok(net);
            }
        }
        refused
    }

    /// Clocks that run true so far, and what makes masters look at them. The masters' user reads both.
    fn clocks(&self) -> Result<PathBuf, TestbedError> {
        let folder = self.folder.join("clock");
        let written = || -> io::Result<()> {
            for nth in 1..=MASTERS {
                fs::write(folder.join(format!("m{nth}")), Skew::Step(0).line())?;
            }
            for file in fs::read_dir(&folder)? {
                fs::set_permissions(file?.path(), Permissions::from_mode(0o755))?;
            }
            Ok(())
        };
        let make = || format!("create {}", folder.display());
        DirBuilder::new().mode(0o755).create(&folder).doing(make)?;
        Preload::compile(&folder)?;
        written().doing(make)?;
        Ok(folder)
    }

    fn wait_until_up(&self, ports: &[Port]) -> Result<(), TestbedError> {
        let deadline = now() + START_WITHIN;
        for (nth, port) in ports.iter().enumerate() {
            while !Containers::answers(port.address()) {
                let name = format!("{}-m{}", self.containers.project(), nth + 1);
                let running = ["container", "inspect", "-f", "{{.State.Running}}", &name];
                let has_ended = self.containers.docker(&running)?.trim() == "false";
                if has_ended || now() > deadline {
                    let what = if has_ended { "has ended" } else { "does not answer" };
                    let log = quiet("docker", ["logs", "--tail", "3", &name]);
                    let log = log.map(|output| last_words(&output)).unwrap_or_default();
                    return Err(TestbedError::Cannot { why: format!("{name} {what}: {log}") });
                }
                thread::sleep(ASK_EVERY);
            }
        }
        Ok(())
    }

    fn list(&self, kind: &str, more: &[&str]) -> Result<Vec<String>, TestbedError> {
        let label = format!("label={}", label(self.containers.project()));
        let words = [&[kind, "ls", "-q", "--filter", &label], more].concat();
        Ok(self.containers.docker(&words)?.lines().map(str::to_owned).collect())
    }

    fn remove_all(&self, words: &[&str], what: &[String]) -> Result<(), TestbedError> {
        let words: Vec<&str> = words.iter().copied().chain(what.iter().map(String::as_str)).collect();
        self.containers.docker(&words).map(drop)
    }
}

/// What Compose marks all that it makes with.
fn label(project: &str) -> String {
    format!("com.docker.compose.project={project}")
}

fn quiet(program: &str, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Output> {
    Command::new(program).args(words).stdin(Stdio::null()).output()
}

fn done(command: &mut Command, what: &str) -> Result<Output, TestbedError> {
    let output = command.stdin(Stdio::null()).output().doing(|| what.to_owned())?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.trim().to_owned())).doing(|| what.to_owned())
}

/// The last line that says something.
fn last_words(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
