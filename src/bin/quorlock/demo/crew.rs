//! The contenders' processes: started, heard, ordered, frozen, killed. Ended when dropped.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::event::{Event, Order};
use crate::exit::Failure;

/// One line of one contender, or its end.
pub(crate) type Heard = (usize, Option<Event>);

pub(crate) struct Crew {
    contenders: Vec<Contender>,
    heard: UnboundedReceiver<Heard>,
    /// Ended when dropped.
    _readers: JoinSet<()>,
}

struct Contender {
    child: Child,
    orders: ChildStdin,
}

/// What a contender is started with.
pub(crate) struct Part<'a> {
    pub(crate) masters: &'a [String],
    pub(crate) counter: &'a Path,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) master_timeout: Duration,
}

impl Crew {
    pub(crate) fn start(number: usize, part: &Part<'_>, folder: &Path) -> Result<Self, Failure> {
        let (tell, heard) = unbounded_channel();
        let mut readers = JoinSet::new();
        let mut contenders = Vec::new();
        for contender in 0..number {
            let mut child = spawn(contender, part, folder)
                .map_err(|error| Failure::other(format!("cannot start a contender: {error}")))?;
            let (Some(orders), Some(says)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(Failure::other("a contender has no pipes"));
            };
            readers.spawn(listen(contender, says, tell.clone()));
            contenders.push(Contender { child, orders });
        }
        Ok(Self { contenders, heard, _readers: readers })
    }

    /// The next thing said.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        self.heard.recv().await
    }

    /// What was said already and not heard yet.
    pub(crate) fn heard_already(&mut self) -> Option<Heard> {
        self.heard.try_recv().ok()
    }

    pub(crate) async fn order(&mut self, contender: usize, order: Order) -> Result<(), Failure> {
        let orders = &mut self.contenders[contender].orders;
        let told = async {
            orders.write_all(order.word().as_bytes()).await?;
            orders.flush().await
        };
        told.await.map_err(|error| of(contender, "does not listen", &error))
    }

    /// To all that are left.
    pub(crate) async fn stop(&mut self) {
        for contender in 0..self.contenders.len() {
            let _ = self.order(contender, Order::Stop).await;
        }
    }

    /// SIGSTOP or SIGCONT.
    pub(crate) fn signal(&self, contender: usize, signal: Signal) -> Result<(), Failure> {
        let pid = self.contenders[contender].child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let Some(pid) = pid else {
            return Err(Failure::other(format!("contender {} is gone", contender + 1)));
        };
        kill_process(pid, signal).map_err(|error| of(contender, "cannot be signalled", &error.into()))
    }

    /// kill −9. Returns when it is gone.
    pub(crate) async fn kill(&mut self, contender: usize) -> Result<(), Failure> {
        let killed = self.contenders[contender].child.kill().await;
        killed.map_err(|error| of(contender, "cannot be killed", &error))
    }
}

/// Waits until they are gone, so that none writes into a folder that is being removed.
impl Drop for Crew {
    fn drop(&mut self) {
        for contender in &mut self.contenders {
            let _ = contender.child.start_kill();
        }
        for contender in &mut self.contenders {
            for _ in 0..400 {
                if !matches!(contender.child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn of(contender: usize, what: &str, error: &std::io::Error) -> Failure {
    Failure::other(format!("contender {} {what}: {error}", contender + 1))
}

fn spawn(contender: usize, part: &Part<'_>, folder: &Path) -> std::io::Result<Child> {
    let log = File::create(folder.join(format!("contender-{}.log", contender + 1)))?;
    let millis = |duration: Duration| format!("{}ms", duration.as_millis());
    Command::new(std::env::current_exe()?)
        .args(["demo-worker", "--ttl", &millis(part.ttl), "--max-ttl", &millis(part.max_ttl)])
        .args(["--master-timeout", &millis(part.master_timeout), "--label"])
        .arg(format!("contender-{}", contender + 1))
        .arg("--counter")
        .arg(part.counter)
        .env("QUORLOCK_MASTERS", part.masters.join(","))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        // Ctrl-C in the terminal is for the stage.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn listen(contender: usize, says: ChildStdout, tell: UnboundedSender<Heard>) {
    let mut lines = BufReader::new(says).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(event) = serde_json::from_str(&line) {
            let _ = tell.send((contender, Some(event)));
        }
    }
    let _ = tell.send((contender, None));
}
