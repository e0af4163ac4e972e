//! Proxies in front of several masters, in a process of their own.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::testbed::fault::{Fault, Outcome};
use crate::testbed::proxy::Proxy;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long somebody may take to say what they want.
const LISTEN_FOR: Duration = Duration::from_secs(2);

/// [Proxies](Proxy) by name, told what to do by lines over a socket. For a bed that outlives its commands, and for one of
/// containers, where nothing else is there to hold them.
///
/// | line | does |
/// |---|---|
/// | `m1 slow=100` | puts a fault in place, in the stead of the one before; answers with the [`Outcome`] |
/// | `m1 undo slow=100` | takes it away |
/// | `m1 point r1:6379` | leads new connections elsewhere |
/// | `status` | a line for each proxy: name, fault, open connections, bytes each way |
///
/// Whoever reaches the control socket may do all of this: keep it to this machine, or to this container.
#[derive(Debug)]
pub struct Switchboard {
    control: TcpListener,
    ways: Vec<Way>,
}

#[derive(Debug)]
struct Way {
    name: String,
    proxy: Proxy,
    fault: Option<Fault>,
}

impl Switchboard {
    /// Listens for lines at this address; for connections, once there are [ways](Self::add).
    ///
    /// # Errors
    /// As the operating system reports them.
    pub async fn start(control: SocketAddr) -> io::Result<Self> {
        Ok(Self { control: TcpListener::bind(control).await?, ways: Vec::new() })
    }

    /// Puts a proxy in front of one more master.
    ///
    /// # Errors
    /// As [`Proxy::start_on`].
    pub async fn add(&mut self, name: impl Into<String>, listen: SocketAddr, target: &str) -> io::Result<()> {
        let proxy = Proxy::start_on(listen, target).await?;
        self.ways.push(Way { name: name.into(), proxy, fault: None });
        Ok(())
    }

    /// Where it listens for lines.
    ///
    /// # Errors
    /// As the operating system reports them.
    pub fn control(&self) -> io::Result<SocketAddr> {
        self.control.local_addr()
    }

    /// Does as it is told, one line after the other, until it is dropped.
    ///
    /// # Errors
    /// If no line can be taken any more.
    pub async fn serve(mut self) -> io::Result<()> {
        loop {
            let (mut stream, _) = self.control.accept().await?;
            let (from, mut to) = stream.split();
            let mut line = String::new();
            let read = tokio::io::BufReader::new(from);
            let mut read = tokio::io::AsyncReadExt::take(read, 4096);
            let asked = tokio::time::timeout(LISTEN_FOR, read.read_line(&mut line)).await;
            if let Ok(Ok(1..)) = asked {
                let answer = self.obey(&line).await;
                // Who does not wait for the answer does without.
                let _ = tokio::time::timeout(LISTEN_FOR, to.write_all(answer.as_bytes())).await;
            }
        }
    }

    async fn obey(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words == ["status"] {
            return self.status();
        }
        let Some((name, words)) = words.split_first() else { return said(Outcome::skipped("nothing asked")) };
        let Some(way) = self.ways.iter_mut().find(|way| way.name == *name) else {
            return said(Outcome::skipped(format!("no proxy is called {name}")));
        };
        said(match words {
            ["point", target] => match way.proxy.point_at(target) {
                Ok(()) => Outcome::Installed,
                Err(error) => Outcome::skipped(error.to_string()),
            },
            ["undo", word] => match word.parse::<Fault>() {
                Ok(fault) => {
                    let outcome = way.proxy.undo(fault).await;
                    way.fault = way.fault.filter(|_| !outcome.is_installed());
                    outcome
                }
                Err(error) => Outcome::skipped(error.to_string()),
            },
            [word] => match word.parse::<Fault>() {
                Ok(fault) => {
                    let outcome = way.proxy.inject(fault).await;
                    if outcome.is_installed() {
                        way.fault = match fault {
                            Fault::Join => None,
                            Fault::Reset => way.fault,
                            _ => Some(fault),
                        };
                    }
                    outcome
                }
                Err(error) => Outcome::skipped(error.to_string()),
            },
            _ => Outcome::skipped(format!("not understood: {}", line.trim())),
        })
    }

    fn status(&self) -> String {
        self.ways.iter().fold(String::new(), |mut text, Way { name, proxy, fault }| {
            let traffic = proxy.traffic();
            let fault = fault.map_or_else(|| "-".into(), |fault| fault.to_string());
            let _ =
                writeln!(text, "{name} {fault} {} {} {}", traffic.open, traffic.to_master, traffic.to_client);
            text
        })
    }

    /// Says one line to the switchboard that listens at `control`, and returns its answer.
    ///
    /// # Errors
    /// The connection's; the line may have been obeyed.
    pub fn tell(control: SocketAddr, line: &str) -> io::Result<String> {
        let mut stream = std::net::TcpStream::connect_timeout(&control, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = Vec::new();
        for line in BufReader::new(stream).lines() {
            answer.push(line?);
        }
        Ok(answer.join("\n"))
    }
}

fn said(outcome: Outcome) -> String {
    format!("{outcome}\n")
}
