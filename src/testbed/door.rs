//! Lets connections in, and carries each.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::testbed::flow::Direction;
use crate::testbed::link::{Link, Open};
use crate::testbed::port::keep;
use crate::testbed::pump::{Pump, Stop};

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Lets connections in.
pub(super) struct Door {
    /// Keeps the port while nobody listens on it.
    _kept: TcpSocket,
    address: SocketAddr,
    link: Link,
    says: watch::Sender<bool>,
}

impl Door {
    /// At this address, whose port is kept from now on; and whether somebody listens on it.
    pub(super) fn at(address: SocketAddr, link: Link) -> io::Result<(Self, watch::Receiver<bool>)> {
        let kept = keep(address)?;
        let address = kept.local_addr()?;
        let (says, listening) = watch::channel(true);
        Ok((Self { _kept: kept, address, link, says }, listening))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        socket.listen(BACKLOG)
    }

    pub(super) async fn serve(self, listener: TcpListener) {
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
                    let number = self.link.count_connection();
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
