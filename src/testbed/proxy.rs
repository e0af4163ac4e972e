//! Faults on the way to one master.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::testbed::door::Door;
use crate::testbed::flow::{Direction, Flow, Traffic};
use crate::testbed::link::Link;
use crate::testbed::target::Target;

/// A way to one master that can be made slow, lossy, silent, or broken, while connections run through it.
///
/// ```no_run
/// use std::time::Duration;
/// use quorlock::testbed::{Direction, Flow, Proxy};
///
/// # async fn f() -> std::io::Result<()> {
/// let proxy = Proxy::start("redis://127.0.0.1:6379").await?;
/// let url = proxy.url();                                                  // redis://127.0.0.1:PORT
/// proxy.set_both(Flow::new().delayed(Duration::from_millis(15)));         // a round trip of 30 ms
/// proxy.set(Direction::ToClient, Flow::new().dropped());                  // applied, but nobody is told
/// # Ok(()) }
/// ```
///
/// Order is kept and delay does not limit throughput: bytes wait for their moment in a queue. A delay is met to some
/// 0.1 ms. Jitter is repeatable: it depends on the number of the connection, counted from the start of the proxy, and on
/// nothing else. What is sent after a setting was changed is treated by the new one.
///
/// Dropping it closes its port and its connections.
pub struct Proxy {
    address: SocketAddr,
    target: Target,
    link: Link,
    listening: watch::Receiver<bool>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// In front of this master, on a free port of 127.0.0.1. The target is a URL or `HOST:PORT`; the name is resolved for
    /// each connection anew, and the master need not be up.
    ///
    /// # Errors
    /// If the target has no host, or the operating system refuses.
    pub async fn start(target: impl AsRef<str>) -> io::Result<Self> {
        Self::start_on((Ipv4Addr::LOCALHOST, 0).into(), target).await
    }

    /// As [`start`](Self::start), at another address. Port 0 means any.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[allow(clippy::unused_async, reason = "it needs a runtime, and says so by being awaited")]
    pub async fn start_on(address: SocketAddr, target: impl AsRef<str>) -> io::Result<Self> {
        let target = Target::parse(target.as_ref())?;
        let link = Link::to(target.authority());
        let (door, listening) = Door::at(address, link.clone())?;
        let address = door.address();
        let listener = door.listen()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(door.serve(listener));
        Ok(Self { address, target, link, listening, _tasks: tasks })
    }

    /// The target's URL with this proxy's address in it.
    pub fn url(&self) -> String {
        format!("{}{}{}", self.target.before, self.address, self.target.after)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happens in one direction from now on, on all connections.
    pub fn set(&self, direction: Direction, flow: Flow) {
        self.link.set(direction, flow);
    }

    /// The same in both directions.
    pub fn set_both(&self, flow: Flow) {
        self.set(Direction::ToMaster, flow);
        self.set(Direction::ToClient, flow);
    }

    /// Where new connections go from now on, as after a failover. Those that are open stay where they are.
    ///
    /// # Errors
    /// If the target has no host.
    pub fn point_at(&self, target: impl AsRef<str>) -> io::Result<()> {
        let target = Target::parse(target.as_ref())?.authority();
        self.link.change(|settings| settings.target = target);
        Ok(())
    }

    /// Everything passes again, and connections are accepted again.
    pub async fn clear(&self) {
        self.set_both(Flow::new());
        self.accept().await;
    }

    /// Resets all open connections on both sides (RST). New ones are accepted.
    pub fn reset(&self) {
        self.link.change(|settings| settings.resets += 1);
    }

    /// Refuses new connections (RST to SYN) once it returns. Those that are open stay.
    pub async fn refuse(&self) {
        self.switch(true).await;
    }

    /// Accepts connections again once it returns.
    pub async fn accept(&self) {
        self.switch(false).await;
    }

    /// What went through.
    pub fn traffic(&self) -> Traffic {
        self.link.traffic()
    }

    async fn switch(&self, refuse: bool) {
        self.link.change(|settings| settings.refuse = refuse);
        // An error means that there is no listener at all.
        let _ = self.listening.clone().wait_for(|listening| *listening != refuse).await;
    }
}

/// Passwords in the URL stay out.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .field("target", &self.link.target())
            .field("traffic", &self.traffic())
            .finish_non_exhaustive()
    }
}
