use std::io;
use std::path::PathBuf;

/// Why a test bed could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// No server program was found in any of the places named.
    #[error(
        "no Valkey or Redis server found (looked for {looked}). Any of these gives one: set QUORLOCK_SERVER to \
         a server program; install valkey-server or redis-server into PATH; run `sh docker/run.sh test` in a \
         checkout of quorlock, which installs or downloads one"
    )]
    NoServer {
        /// The places, in order.
        looked: String,
    },
    /// A server was named, but it is no program.
    #[error("{variable}={value}: not an executable file; give the path of a valkey-server or redis-server")]
    NotAProgram {
        /// The environment variable that names it.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// The server ended, or stayed silent, before it answered for the first time.
    #[error("the master on port {port} did not start: {why}{log}")]
    NotStarted {
        /// Its port.
        port: u16,
        /// What happened instead.
        why: String,
        /// The last lines it wrote, indented, or nothing.
        log: String,
    },
    /// The master's process has to be running (or has to be down) for this.
    #[error("the master on port {port} is {condition}")]
    WrongCondition {
        /// Its port.
        port: u16,
        /// What it is instead.
        condition: &'static str,
    },
    /// Something that this machine or this master cannot do.
    #[error("{why}")]
    Cannot {
        /// What is missing.
        why: String,
    },
    /// `up` where something is up.
    #[error(
        "a test bed is already up: {what} ({path}). `quorlock testbed status` shows it, `quorlock testbed down` ends it"
    )]
    AlreadyUp {
        /// Its masters.
        what: String,
        /// The file that says so.
        path: PathBuf,
    },
    /// Containers where none can be had.
    #[error("no containers: {why}. Masters can be processes of this machine, too: `quorlock testbed up`")]
    NoEngine {
        /// What is missing.
        why: String,
    },
    /// Containers, or a folder, of a bed whose record is gone.
    #[error(
        "an earlier test bed left something of the project {project} behind: `quorlock testbed down` removes it"
    )]
    LeftBehind {
        /// The name that its containers, networks and volumes begin with.
        project: String,
    },
    /// A question to a bed that is not up.
    #[error("no test bed is up ({path} does not exist): start one with `quorlock testbed up`")]
    NotUp {
        /// The file that would say otherwise.
        path: PathBuf,
    },
    /// The record of a bed cannot be relied on, so that nothing was killed or removed by it.
    #[error("{path} is not a record of a test bed to act on: {why}; remove it by hand if it is of no use")]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A master that the bed does not have.
    #[error("no master {asked} in this bed: it has m1 to m{have}")]
    NoSuchMaster {
        /// The one asked for, counted from 1.
        asked: usize,
        /// How many there are.
        have: usize,
    },
    /// The operating system refused.
    #[error("could not {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The refusal.
        source: io::Error,
    },
}

/// Says what was being done when the operating system refused.
pub(super) trait Doing<T> {
    /// `what` completes the sentence "could not …".
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, TestbedError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, TestbedError> {
        self.map_err(|source| TestbedError::Io { doing: what(), source: source.into() })
    }
}
