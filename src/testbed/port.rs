//! A loopback port that stays one master's, also while that master is down.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// Where a standing bed starts to look: below the range from which the kernel takes ports for outgoing
/// connections, so that nothing takes the port of a killed master before it comes back.
const STANDING: std::ops::Range<u16> = 17_101..32_000;

/// A port on 127.0.0.1, and the socket that keeps it ours.
///
/// The socket is bound but never listens. While it exists the kernel neither hands the port to somebody who asks
/// for any port, such as the master of another test, nor uses it as the near end of an outgoing connection. The
/// server may bind it nevertheless, because both sockets allow reuse and ours does not listen.
#[derive(Debug)]
pub(super) struct Port {
    number: u16,
    _kept: Option<TcpSocket>,
}

impl Port {
    /// Any port that nobody uses.
    pub(super) fn any() -> io::Result<Self> {
        Self::keep(0)
    }

    /// The first free port of the range for beds that outlive their command, `spoken_for` left out: those of masters
    /// that are down now and mean to come back.
    pub(super) fn standing(spoken_for: impl Fn(u16) -> bool) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for number in STANDING.filter(|number| !spoken_for(*number)) {
            match Self::keep(number) {
                Ok(port) => return Ok(port),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// A port that a master of an earlier command uses. Nothing keeps it.
    pub(super) fn adopted(number: u16) -> Self {
        Self { number, _kept: None }
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }

    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    fn keep(number: u16) -> io::Result<Self> {
        let socket = keep((Ipv4Addr::LOCALHOST, number).into())?;
        Ok(Self { number: socket.local_addr()?.port(), _kept: Some(socket) })
    }
}

/// A socket that keeps this address without listening.
pub(super) fn keep(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Bound without reuse, so that success means nobody else has it, another keeper included; reuse is
    // allowed afterwards, for the server.
    socket.bind(address)?;
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_kept_port_can_be_listened_on_and_is_kept_from_other_keepers() {
        let port = Port::any().unwrap();
        assert!(Port::keep(port.number()).is_err(), "two keepers of one port");
        let server = TcpListener::bind(port.address()).expect("the server that the port is kept for");
        drop(server);
        assert_eq!(
            std::net::TcpStream::connect(port.address()).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
    }
}
