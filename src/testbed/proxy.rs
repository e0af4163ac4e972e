//! Faults on the way to one master.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::testbed::port::keep;
use crate::testbed::pump::{Pump, Stop};

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// The port of a master whose URL names none.
const USUAL_PORT: u16 = 6379;

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

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Requests.
    ToMaster,
    /// Replies.
    ToClient,
}

/// What happens to the bytes that go one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    pub(super) delay: Duration,
    pub(super) jitter: Duration,
    pub(super) drop: bool,
    pub(super) hold: bool,
    pub(super) cut_after: Option<u64>,
}

impl Flow {
    /// Everything passes at once.
    #[must_use]
    pub const fn new() -> Self {
        Self { delay: Duration::ZERO, jitter: Duration::ZERO, drop: false, hold: false, cut_after: None }
    }

    /// Later by this time.
    #[must_use]
    pub const fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Later by up to this time, evenly spread; in order all the same.
    #[must_use]
    pub const fn jittered(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Swallowed, and nobody is told. A connection that lost bytes is of no use again, since nothing can follow a gap: it is
    /// reset when this setting ends.
    #[must_use]
    pub const fn dropped(mut self) -> Self {
        self.drop = true;
        self
    }

    /// Not read. The sender's own buffers fill up; all of it arrives when this setting ends, as after a network
    /// partition that heals.
    #[must_use]
    pub const fn held(mut self) -> Self {
        self.hold = true;
        self
    }

    /// Both directions are closed, in good order, as soon as this many bytes went this way; counted for each connection
    /// from this setting on.
    #[must_use]
    pub const fn cut_after(mut self, bytes: u64) -> Self {
        self.cut_after = Some(bytes);
        self
    }
}

/// What went through a [`Proxy`] so far. Bytes count when they are handed over, not when they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open at the moment.
    pub open: u64,
    /// Bytes of requests that passed.
    pub to_master: u64,
    /// Bytes of replies that passed.
    pub to_client: u64,
    /// Bytes of requests that were swallowed.
    pub lost_to_master: u64,
    /// Bytes of replies that were swallowed.
    pub lost_to_client: u64,
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
        let kept = keep(address)?;
        let address = kept.local_addr()?;
        let link = Link(Arc::new(Shared {
            settings: watch::channel(Settings { target: target.authority(), ..Settings::default() }).0,
            counters: Counters::default(),
        }));
        let (says, listening) = watch::channel(true);
        let door = Door { _kept: kept, address, link: link.clone(), says };
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
        self.link.change(|settings| {
            settings.flows[direction as usize] = (flow, settings.flows[direction as usize].1 + 1);
        });
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
        let counters = &self.link.0.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            connections: read(&counters.connections),
            open: read(&counters.open),
            to_master: read(&counters.passed[0]),
            to_client: read(&counters.passed[1]),
            lost_to_master: read(&counters.lost[0]),
            lost_to_client: read(&counters.lost[1]),
        }
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
            .field("target", &self.link.0.settings.borrow().target)
            .field("traffic", &self.traffic())
            .finish_non_exhaustive()
    }
}

/// A URL around its `HOST:PORT`.
struct Target {
    before: String,
    host: String,
    port: u16,
    after: String,
}

impl Target {
    fn parse(target: &str) -> io::Result<Self> {
        let (scheme, rest) = match target.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => ("redis://".into(), target),
        };
        let (authority, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, place) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        // What follows the last colon, unless that lies in an IPv6 address.
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (place, Some(USUAL_PORT)),
        };
        match port {
            Some(port) if !host.is_empty() => {
                Ok(Self { before: scheme + user, host: host.into(), port, after: after.into() })
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the target is no URL with a host and a port",
            )),
        }
    }

    fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// What the proxy and its connections share.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    settings: watch::Sender<Settings>,
    counters: Counters,
}

#[derive(Default)]
pub(super) struct Settings {
    /// By direction; each with the number of its change.
    flows: [(Flow, u64); 2],
    refuse: bool,
    resets: u64,
    target: String,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    open: AtomicU64,
    passed: [AtomicU64; 2],
    lost: [AtomicU64; 2],
}

impl Link {
    fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.0.settings.send_modify(change);
    }

    pub(super) fn settings(&self) -> watch::Receiver<Settings> {
        self.0.settings.subscribe()
    }

    /// The setting of one direction and its number.
    pub(super) fn flow(&self, direction: Direction) -> (Flow, u64) {
        self.0.settings.borrow().flows[direction as usize]
    }

    pub(super) fn count_passed(&self, direction: Direction, bytes: usize) {
        self.0.counters.passed[direction as usize].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_lost(&self, direction: Direction, bytes: usize) {
        self.0.counters.lost[direction as usize].fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Lets connections in.
struct Door {
    /// Keeps the port while nobody listens on it.
    _kept: TcpSocket,
    address: SocketAddr,
    link: Link,
    says: watch::Sender<bool>,
}

impl Door {
    fn listen(&self) -> io::Result<TcpListener> {
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        socket.listen(BACKLOG)
    }

    async fn serve(self, listener: TcpListener) {
        let mut listener = Some(listener);
        let mut settings = self.link.settings();
        let mut connections = JoinSet::new();
        loop {
            let refuse = settings.borrow_and_update().refuse;
            if refuse {
                listener = None;
            } else if listener.is_none() {
                listener = self.listen().ok();
            }
            self.says.send_replace(listener.is_some());
            tokio::select! {
                changed = settings.changed() => if changed.is_err() { return },
                Some(_) = connections.join_next() => {}
                accepted = accept(listener.as_ref()) => if let Ok(client) = accepted {
                    let number = self.link.0.counters.connections.fetch_add(1, Ordering::Relaxed);
                    connections.spawn(carry(client, self.link.clone(), number));
                },
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(client, _)| client),
        None => std::future::pending().await,
    }
}

/// One connection, from its start to its end.
async fn carry(mut client: TcpStream, link: Link, number: u64) {
    let _open = Open::new(&link);
    let mut settings = link.settings();
    let (resets, target) = {
        let settings = settings.borrow_and_update();
        (settings.resets, settings.target.clone())
    };
    let reset = settings.wait_for(|settings| settings.resets != resets);
    let carried = async {
        let Ok(mut master) = TcpStream::connect(&target).await else { return Err(Stop::Reset) };
        let both = async {
            client.set_nodelay(true)?;
            master.set_nodelay(true)?;
            let ((from_client, to_client), (from_master, to_master)) = (client.split(), master.split());
            let requests = Pump::new(Direction::ToMaster, from_client, to_master, link.clone(), 2 * number);
            let replies =
                Pump::new(Direction::ToClient, from_master, to_client, link.clone(), 2 * number + 1);
            tokio::try_join!(requests.run(), replies.run()).map(drop)
        };
        let ended = tokio::select! {
            ended = both => ended,
            _ = reset => Err(Stop::Reset),
        };
        if matches!(ended, Err(Stop::Reset)) {
            let _ = master.set_zero_linger();
        }
        ended
    };
    if matches!(carried.await, Err(Stop::Reset)) {
        let _ = client.set_zero_linger();
    }
}

/// Counts a connection for as long as it lives.
struct Open<'a>(&'a AtomicU64);

impl<'a> Open<'a> {
    fn new(link: &'a Link) -> Self {
        let open = &link.0.counters.open;
        open.fetch_add(1, Ordering::Relaxed);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_in_a_url_is_found_and_the_rest_kept() {
        for (target, before, authority, after) in [
            ("127.0.0.1:7001", "redis://", "127.0.0.1:7001", ""),
            ("redis://m1", "redis://", "m1:6379", ""),
            ("rediss://ann:p@w:x@m1:7/3?a=b", "rediss://ann:p@w:x@", "m1:7", "/3?a=b"),
            ("valkey://[::1]", "valkey://", "[::1]:6379", ""),
            ("valkey://[::1]:7", "valkey://", "[::1]:7", ""),
        ] {
            let parsed = Target::parse(target).unwrap();
            let found = (parsed.before.as_str(), parsed.authority(), parsed.after.as_str());
            assert_eq!(found, (before, authority.to_owned(), after), "{target}");
        }
        for target in ["", "redis://", "redis://:7", "m1:port", "redis+unix:///tmp/socket"] {
            assert!(Target::parse(target).is_err(), "{target}");
        }
    }
}
