//! The processes of a run: clients, and the register. Ended when dropped.

use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::client::Part;
use crate::dice::Dice;

/// What a process of ours is to be, in its environment: the arguments are for people, and for the test runner.
pub(crate) const ROLE: &str = "QUORLOCK_CHAOS_ROLE";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    Client { folder: PathBuf, part: Part },
    Register { folder: PathBuf },
}

/// Claims of the next process of a client that was killed begin so much later.
const CLAIMS_OF_A_LIFE: u64 = 100_000;

/// A client may be in the midst of a claim on frozen masters, or asleep under a lock.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

pub(crate) struct Crew {
    folder: PathBuf,
    clients: Vec<(Part, Child)>,
}

impl Crew {
    pub(crate) fn start(folder: &Path, parts: Vec<Part>) -> io::Result<Self> {
        let clients = parts.into_iter().map(|part| {
            let child = spawn_client(folder, &part)?;
            Ok((part, child))
        });
        Ok(Self { folder: folder.to_owned(), clients: clients.collect::<io::Result<_>>()? })
    }

    pub(crate) fn signal(&self, client: usize, signal: Signal) -> io::Result<()> {
        let pid = self.clients[client].1.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(kill_process(pid.ok_or_else(|| io::Error::other("it is gone"))?, signal)?)
    }

    /// kill −9. Returns when it is gone.
    pub(crate) async fn kill(&mut self, client: usize) -> io::Result<()> {
        self.clients[client].1.kill().await
    }

    /// Another process of the same name.
    pub(crate) fn revive(&mut self, client: usize) -> io::Result<()> {
        let (part, child) = &mut self.clients[client];
        part.first_claim += CLAIMS_OF_A_LIFE;
        part.seed = Dice::new(part.seed).next();
        *child = spawn_client(&self.folder, part)?;
        Ok(())
    }

    /// Has all give back what they hold, and waits until they ended.
    pub(crate) async fn stop(&mut self) -> io::Result<()> {
        self.clients.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
        for (part, child) in &mut self.clients {
            match timeout(ENDS_WITHIN, child.wait()).await {
                Ok(Ok(status)) if status.success() => {}
                Ok(status) => {
                    return Err(io::Error::other(format!("client {} ended with {status:?}", part.name)));
                }
                Err(_) => return Err(io::Error::other(format!("client {} does not end", part.name))),
            }
        }
        Ok(())
    }
}

fn spawn_client(folder: &Path, part: &Part) -> io::Result<Child> {
    spawn(folder, &part.name, &Role::Client { folder: folder.to_owned(), part: part.clone() }, Stdio::null())
}

fn spawn(folder: &Path, name: &str, role: &Role, out: Stdio) -> io::Result<Child> {
    let errors = OpenOptions::new().create(true).append(true).open(folder.join(format!("{name}.stderr")))?;
    Command::new(std::env::current_exe()?)
        .env(ROLE, serde_json::to_string(role)?)
        .stdin(Stdio::piped())
        .stdout(out)
        .stderr(errors)
        // Ctrl-C in the terminal ends us, and that ends them.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

pub(crate) struct Register {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Register {
    pub(crate) async fn start(folder: &Path) -> io::Result<Self> {
        let role = Role::Register { folder: folder.to_owned() };
        let mut child = spawn(folder, "register", &role, Stdio::piped())?;
        let out = child.stdout.take().ok_or_else(|| io::Error::other("the register has no pipe"))?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).await?;
        let address = line.trim().parse().map_err(|_| io::Error::other("the register did not start"))?;
        Ok(Self { child, address })
    }

    /// It tells where its counters stand, and ends.
    pub(crate) async fn stop(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().await.map(drop)
    }
}
