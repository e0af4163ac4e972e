//! A client of one connection, blocking and plain: what looks at masters from outside must not share code, and so
//! faults, with what is looked at.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a reply may take, unless said otherwise. Far above what loopback needs on a machine that is not quiet.
const PATIENCE: Duration = Duration::from_secs(10);

/// How deep replies may nest.
const DEPTH: u8 = 8;

/// What a master answered (RESP2).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// `+OK` and its like.
    Status(String),
    /// An error, with its code: `OOM command not allowed …`.
    Error(String),
    /// A number.
    Integer(i64),
    /// A value.
    Bulk(Vec<u8>),
    /// No value.
    Nil,
    /// Several replies.
    Array(Vec<Self>),
}

impl Reply {
    /// Whether it is the status `OK`.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Status(status) if status == "OK")
    }

    /// The value or the status as text.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Status(text) | Self::Error(text) => Some(text.clone()),
            Self::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Integer(_) | Self::Nil | Self::Array(_) => None,
        }
    }

    /// The number, if it is one.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

/// One connection to a master. Connecting, sending and each read are bounded, by ten seconds at first.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<TcpStream>,
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    /// As the operating system reports them.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        let wire = Self { stream: BufReader::new(stream) };
        wire.set_patience(PATIENCE)?;
        Ok(wire)
    }

    /// Bounds sending and each read by another time, which may not be zero.
    ///
    /// # Errors
    /// If it is zero.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(patience))?;
        self.stream.get_ref().set_write_timeout(Some(patience))
    }

    /// Sends one command and waits for its reply. An error that the master answers is a [`Reply::Error`].
    ///
    /// # Errors
    /// The connection's. It is of no further use then: a late reply would be taken for the next command's.
    pub fn command<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Reply> {
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for argument in command.iter().map(AsRef::as_ref) {
            bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.get_ref().write_all(&bytes)?;
        self.reply()
    }

    /// Waits for the next reply, for commands that answer more than once.
    ///
    /// # Errors
    /// As [`command`](Self::command).
    pub fn reply(&mut self) -> io::Result<Reply> {
        read_reply(&mut self.stream, DEPTH).map_err(|error| match error.kind() {
            // What a read that timed out is called depends on the system.
            io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "no reply"),
            _ => error,
        })
    }

    /// Whether the master has neither closed the connection nor sent what nobody asked for.
    pub(super) fn is_fresh(&self) -> bool {
        let stream = self.stream.get_ref();
        let quiet = || {
            stream.set_nonblocking(true)?;
            let seen = stream.peek(&mut [0]);
            stream.set_nonblocking(false)?;
            seen
        };
        self.stream.buffer().is_empty()
            && quiet().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

fn read_reply(from: &mut impl BufRead, depth: u8) -> io::Result<Reply> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    let Some((&kind, rest)) = line.strip_suffix(b"\r\n").and_then(<[u8]>::split_first) else {
        return Err(if line.is_empty() { io::ErrorKind::UnexpectedEof.into() } else { malformed(&line) });
    };
    let text = String::from_utf8_lossy(rest).into_owned();
    let number = || text.parse::<i64>().map_err(|_| malformed(&line));
    Ok(match kind {
        b'+' => Reply::Status(text),
        b'-' => Reply::Error(text),
        b':' => Reply::Integer(number()?),
        b'$' | b'*' if number()? < 0 => Reply::Nil,
        b'$' => {
            let length = number()?.unsigned_abs();
            let mut bytes = Vec::new();
            let read = from.by_ref().take(length + 2).read_to_end(&mut bytes)?;
            if read as u64 != length + 2 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes.truncate(read - 2);
            Reply::Bulk(bytes)
        }
        b'*' if depth > 0 => {
            Reply::Array((0..number()?).map(|_| read_reply(from, depth - 1)).collect::<io::Result<_>>()?)
        }
        _ => return Err(malformed(&line)),
    })
}

fn malformed(line: &[u8]) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: {}", line.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> io::Result<Reply> {
        read_reply(&mut bytes, DEPTH)
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        assert_eq!(read(b"+OK\r\n").unwrap(), Reply::Status("OK".into()));
        assert_eq!(read(b"-OOM no\r\n").unwrap(), Reply::Error("OOM no".into()));
        assert_eq!(read(b":-2\r\n").unwrap(), Reply::Integer(-2));
        assert_eq!(read(b"$4\r\n\r\n\0x\r\n").unwrap(), Reply::Bulk(b"\r\n\0x".to_vec()));
        assert_eq!(read(b"$-1\r\n").unwrap(), Reply::Nil);
        let nested = Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![]), Reply::Nil]);
        assert_eq!(read(b"*3\r\n:1\r\n*0\r\n*-1\r\n").unwrap(), nested);
    }

    #[test]
    fn what_is_cut_or_malformed_is_an_error_and_no_reply() {
        for bytes in [&b""[..], b"+OK", b"$5\r\nab\r\n", b"*2\r\n:1\r\n", b"?\r\n", b":x\r\n", b"\r\n"] {
            assert!(read(bytes).is_err(), "{}", bytes.escape_ascii());
        }
        assert!(read(&b"*1\r\n".repeat(100)).is_err(), "endless nesting");
    }
}
