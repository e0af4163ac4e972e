//! One master as a child process.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::testbed::binary::ServerBinary;
use crate::testbed::condition::{Condition, Data};
use crate::testbed::error::{Doing, TestbedError};
use crate::testbed::folder::Folder;
use crate::testbed::port::Port;
use crate::testbed::process::{Identity, Process};
use crate::testbed::skew::Preload;
use crate::testbed::timer::now;
use crate::testbed::wire::{Reply, Wire};

/// How long a master may take to answer for the first time: some 20 ms on an idle machine, loading aside.
const START_WITHIN: Duration = Duration::from_secs(20);

/// How often it is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// What every master runs with. A later argument of the same name wins.
const ARGUMENTS: &str = "--bind 127.0.0.1 --protected-mode no --daemonize no --appendonly no \
                         --maxmemory-policy noeviction";

/// One master on a loopback port of its own, in a temporary folder of its own, keeping nothing on disk unless told to.
///
/// Dropping it ends the process (also a stopped one) and removes the folder. Should this process be killed before it
/// can, a waiting shell does the same, within milliseconds. Masters of a [`StandingBed`](super::StandingBed) stay.
///
/// All methods take `&self`, so that one thread may break the master while others use it.
#[derive(Debug)]
pub struct LocalMaster {
    binary: ServerBinary,
    arguments: Vec<String>,
    port: Port,
    folder: Folder,
    preload: Option<Preload>,
    process: Mutex<Option<Process>>,
    pub(super) wire: Mutex<Option<Wire>>,
    ours: bool,
}

impl LocalMaster {
    /// Starts a master with these arguments after the usual ones, and waits until it answers.
    ///
    /// # Errors
    /// [`TestbedError::NotStarted`] with the last words of its log, or what the operating system refused.
    pub fn start(binary: &ServerBinary, arguments: &[&str]) -> Result<Self, TestbedError> {
        let arguments: Vec<String> = arguments.iter().copied().map(String::from).collect();
        let master = Self::launch(binary, &arguments, Port::any().doing(no_port)?, false)?;
        master.wait_until_up()?;
        Ok(master)
    }

    /// Starts a master; it may not answer yet.
    pub(super) fn launch(
        binary: &ServerBinary,
        arguments: &[String],
        port: Port,
        clock: bool,
    ) -> Result<Self, TestbedError> {
        let folder = Folder::create(port.number()).doing(|| "create a temporary folder".into())?;
        let mut master = Self {
            binary: binary.clone(),
            arguments: arguments.to_vec(),
            port,
            folder,
            preload: None,
            process: Mutex::new(None),
            wire: Mutex::new(None),
            ours: true,
        };
        if clock {
            master.preload = Some(Preload::compile(master.folder.path())?);
        }
        *master.process() = Some(master.spawn(&[])?);
        Ok(master)
    }

    /// A master that an earlier command left running.
    pub(super) fn adopted(
        binary: ServerBinary,
        arguments: Vec<String>,
        port: u16,
        folder: Folder,
        preload: Option<Preload>,
        identity: Option<Identity>,
    ) -> Self {
        Self {
            binary,
            arguments,
            port: Port::adopted(port),
            folder,
            preload,
            process: Mutex::new(identity.map(Process::adopted).filter(Process::is_alive)),
            wire: Mutex::new(None),
            ours: false,
        }
    }

    /// Its port on 127.0.0.1, the same after each restart.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://{}", self.port.address())
    }

    /// The directory that it works in: where `--unixsocket m.sock` puts its socket, say.
    pub fn directory(&self) -> PathBuf {
        self.folder.data()
    }

    /// Its process, unless it is down.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().filter(|process| process.is_alive()).map(Process::pid)
    }

    /// Up, frozen or down, by its process alone: nothing is sent.
    pub fn condition(&self) -> Condition {
        match self.process().as_ref().filter(|process| process.is_alive()) {
            None => Condition::Down,
            Some(process) if process.is_frozen() => Condition::Frozen,
            Some(_) => Condition::Up,
        }
    }

    /// `kill -9`, also while frozen. Returns when the process is gone; without an effect if it is already.
    ///
    /// # Errors
    /// The operating system's.
    pub fn kill(&self) -> Result<(), TestbedError> {
        match self.process().take() {
            Some(mut process) => process.end().doing(|| format!("kill the master on port {}", self.port())),
            None => Ok(()),
        }
    }

    /// Kills it unless it is down, starts it again on its port, and waits until it answers.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&self, with: Data) -> Result<(), TestbedError> {
        if with == Data::Old && !self.folder.snapshot().exists() {
            return Err(TestbedError::Cannot { why: "it has no snapshot: say `snapshot` before".into() });
        }
        self.kill()?;
        if with != Data::Kept {
            self.folder.wipe().doing(|| format!("empty {}", self.folder.data().display()))?;
        }
        // A log of commands would win over the snapshot, also an empty one.
        let old: &[&str] = if with == Data::Old { &["--appendonly", "no"] } else { &[] };
        if with == Data::Old {
            self.folder.recall().doing(|| "put a snapshot back".into())?;
        }
        // One that nobody watched over dies with us if it does not come up, and is let go again when it has.
        *self.process() = Some(self.spawn(old)?);
        self.wait_until_up()?;
        if self.ours { Ok(()) } else { self.let_go_process() }
    }

    /// SIGSTOP. Connections stay open, new ones are still accepted by the kernel, nothing is answered.
    ///
    /// # Errors
    /// If it is down, or the operating system's.
    pub fn freeze(&self) -> Result<(), TestbedError> {
        self.set_frozen(true)
    }

    /// SIGCONT. It answers what arrived meanwhile, as if no time had passed for its senders.
    ///
    /// # Errors
    /// As [`freeze`](Self::freeze).
    pub fn thaw(&self) -> Result<(), TestbedError> {
        self.set_frozen(false)
    }

    /// The value of `--NAME` that it was started with, if that was among the extra arguments.
    pub(super) fn argument(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().rposition(|argument| argument.strip_prefix("--") == Some(name))?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    pub(super) fn binary(&self) -> &ServerBinary {
        &self.binary
    }

    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    pub(super) fn preload(&self) -> Option<&Preload> {
        self.preload.as_ref()
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn identity(&self) -> Option<Identity> {
        self.process().as_ref().map(Process::identity)
    }

    /// Lets it outlive us.
    pub(super) fn let_go(&mut self) -> Result<(), TestbedError> {
        self.ours = false;
        self.let_go_process()
    }

    /// Waits for its first answer: its own pid, since another server could have taken the port.
    pub(super) fn wait_until_up(&self) -> Result<(), TestbedError> {
        let late = now().saturating_add(START_WITHIN);
        while self.condition() != Condition::Down {
            let last = match self.is_answering() {
                Ok(true) => return Ok(()),
                Ok(false) => "another server answers on its port".into(),
                Err(error) => error.to_string(),
            };
            if now() > late {
                return Err(self.not_started(format!("silent for {} s ({last})", START_WITHIN.as_secs())));
            }
            thread::sleep(ASK_EVERY);
        }
        Err(self.not_started("its process ended".into()))
    }

    fn is_answering(&self) -> io::Result<bool> {
        let mut wire = self.wire()?;
        // INFO is answered while the data is still being read from disk; PING is not.
        let pong = wire.command(&["PING"])?;
        if let Reply::Error(refusal) = pong {
            return Err(io::Error::other(refusal));
        }
        let info = wire.command(&["INFO", "server"])?.text().unwrap_or_default();
        let own = self.pid().map(|pid| format!("process_id:{pid}"));
        Ok(own.is_some_and(|own| info.lines().any(|line| line == own)))
    }

    fn not_started(&self, why: String) -> TestbedError {
        TestbedError::NotStarted { port: self.port(), why, log: self.folder.last_words() }
    }

    fn spawn(&self, more: &[&str]) -> Result<Process, TestbedError> {
        let starting = || format!("start {}", self.binary.path().display());
        let log = self.folder.log().doing(starting)?;
        let mut command = Command::new(self.binary.path());
        command.args(["--port", &self.port().to_string(), "--save", ""]).arg("--dir").arg(self.folder.data());
        command.args(ARGUMENTS.split_ascii_whitespace()).args(self.arguments.iter().map(OsString::from));
        command.args(more).envs(self.preload.iter().flat_map(Preload::variables));
        command.stdin(Stdio::null()).stderr(log.try_clone().doing(starting)?).stdout(log);
        Process::spawn(&mut command, &self.folder).doing(starting)
    }

    fn set_frozen(&self, frozen: bool) -> Result<(), TestbedError> {
        match self.process().as_ref().filter(|process| process.is_alive()) {
            Some(process) => {
                process.set_frozen(frozen).doing(|| format!("signal the master on port {}", self.port()))
            }
            None => Err(TestbedError::WrongCondition { port: self.port(), condition: "down" }),
        }
    }

    fn let_go_process(&self) -> Result<(), TestbedError> {
        match self.process().as_mut() {
            Some(process) => process.loosen().doing(|| "let a master go".into()),
            None => Ok(()),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LocalMaster {
    fn drop(&mut self) {
        if self.ours {
            let _ = self.kill();
            let _ = self.folder.remove();
        }
    }
}

pub(super) fn no_port() -> String {
    "find a free port on 127.0.0.1".into()
}
