//! A plain connection on which MONITOR runs.
//!
//! fred's own reads ahead without a bound, which on a busy master is a gigabyte in seconds. Here each chunk is taken
//! apart before the next one is read, and the connection is closed when enough was heard.

use std::time::Duration;

#[cfg(feature = "tls")]
use ::fred::rustls::pki_types::ServerName;
#[cfg(feature = "tls")]
use ::fred::types::config::TlsConnector;
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

use super::connect::Dialer;
use super::contact::Place;

/// How much is read at once.
const CHUNK: usize = 16 * 1024;
/// Longer commands are cut: their last arguments are not heard.
const LONGEST_LINE: usize = 64 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection, and what of a line was read.
pub(super) struct Wiretap {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
    /// How much of it was handed over.
    done: usize,
    /// What follows belongs to a line that was too long.
    skipping: bool,
}

impl Wiretap {
    /// Connects, logs in, and starts MONITOR.
    pub(super) async fn start(dialer: &Dialer) -> Result<Self, String> {
        let limit = dialer.connect_timeout();
        let end = Instant::now() + limit;
        let opened = timeout_at(end, open(dialer)).await;
        let stream = opened.map_err(|_| format!("no connection within {limit:?}"))??;
        let mut tap = Self { stream, read: Vec::new(), done: 0, skipping: false };
        if let Some((user, password)) = dialer.endpoint().login() {
            tap.ask(&["AUTH", user, password], end).await?;
        }
        tap.ask(&["MONITOR"], end).await?;
        Ok(tap)
    }

    /// Hands over line after line, until `lasting` is over or `hear` has had enough. Whether the connection ended by
    /// itself before is an error.
    pub(super) async fn listen(
        &mut self,
        lasting: Duration,
        mut hear: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), String> {
        let end = Instant::now() + lasting;
        loop {
            while let Some(line) = self.line() {
                if !hear(&line) {
                    return Ok(());
                }
            }
            // A timer looks at the time only when there is nothing to read.
            if Instant::now() >= end {
                return Ok(());
            }
            match timeout_at(end, self.read()).await {
                Err(_) => return Ok(()),
                Ok(read) => read?,
            }
        }
    }

    /// One command whose answer is one line.
    async fn ask(&mut self, words: &[&str], end: Instant) -> Result<(), String> {
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command += &format!("${}\r\n{word}\r\n", word.len());
        }
        let answer = async {
            self.stream.write_all(command.as_bytes()).await.map_err(|error| error.to_string())?;
            loop {
                if let Some(line) = self.line() {
                    return Ok::<_, String>(line);
                }
                self.read().await?;
            }
        };
        let line = timeout_at(end, answer).await.map_err(|_| "no answer in time".to_owned())??;
        match line.strip_prefix(b"-") {
            Some(refusal) => Err(String::from_utf8_lossy(refusal).into_owned()),
            None => Ok(()),
        }
    }

    async fn read(&mut self) -> Result<(), String> {
        self.read.drain(..std::mem::take(&mut self.done));
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk).await {
            Ok(0) => Err("the connection was closed".to_owned()),
            Ok(read) => {
                self.read.extend_from_slice(&chunk[..read]);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The next line, without its end; or its beginning, if it is too long.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.read[self.done..];
            let end = memchr(b'\n', rest);
            let line = rest[..end.unwrap_or(rest.len())].trim_ascii_end();
            let is_over = end.is_some();
            if !is_over && !self.skipping && rest.len() <= LONGEST_LINE {
                return None;
            }
            let line = (!self.skipping).then(|| line.to_vec());
            self.done += end.map_or(rest.len(), |end| end + 1);
            self.skipping = !is_over;
            if is_over && line.is_none() {
                // The end of what was too long.
                continue;
            }
            return line;
        }
    }
}

async fn open(dialer: &Dialer) -> Result<Box<dyn Stream>, String> {
    let contact = dialer.contact();
    let (host, port) = match &contact.place {
        Place::Tcp { host, port } => (host.as_str(), *port),
        Place::Socket(path) => {
            let stream = UnixStream::connect(path).await.map_err(|error| error.to_string())?;
            return Ok(Box::new(stream));
        }
    };
    let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    if contact.tls { encrypted(dialer, host, stream).await } else { Ok(Box::new(stream)) }
}

#[cfg(feature = "tls")]
async fn encrypted(dialer: &Dialer, host: &str, stream: TcpStream) -> Result<Box<dyn Stream>, String> {
    let Some(TlsConnector::Rustls(connector)) = dialer.encryption().connector() else {
        return Err("TLS was not prepared for it".to_owned());
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    Ok(Box::new(stream))
}

#[cfg(not(feature = "tls"))]
#[allow(clippy::unused_async, reason = "the same with and without TLS")]
async fn encrypted(_: &Dialer, _: &str, _: TcpStream) -> Result<Box<dyn Stream>, String> {
    Err("this build has no TLS".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_master_that_never_stops_talking_is_left_in_time() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (theirs, _) = listener.accept().await.unwrap();
        // Not of this runtime any more, which is not turned while the talking is waited for.
        let mut theirs = theirs.into_std().unwrap();
        theirs.set_nonblocking(false).unwrap();
        let talking = std::thread::spawn(move || {
            let lines = b"+1.5 [0 a:1] \"GET\" \"k\"\r\n".repeat(4096);
            while std::io::Write::write_all(&mut theirs, &lines).is_ok() {}
        });
        let mut tap = Wiretap { stream: Box::new(ours), read: Vec::new(), done: 0, skipping: false };
        let mut heard = 0_u64;
        let listened = tap.listen(Duration::from_millis(300), |_| {
            heard += 1;
            true
        });
        listened.await.unwrap();
        assert!(heard > 0);
        assert!(tap.read.capacity() <= 4 * (LONGEST_LINE + CHUNK), "{}", tap.read.capacity());
        drop(tap);
        talking.join().unwrap();
    }

    #[tokio::test]
    async fn lines_are_told_from_each_other_however_they_arrive() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let mut tap = Wiretap { stream: Box::new(ours), read: Vec::new(), done: 0, skipping: false };
        let long = "x".repeat(LONGEST_LINE + 3 * CHUNK);
        for part in ["+one\r", "\n+two\r\n+th", "ree\r\n", "+", &long, "\r\n+four\r\n"] {
            theirs.write_all(part.as_bytes()).await.unwrap();
        }
        let mut heard = Vec::new();
        let listened = tap.listen(Duration::from_secs(30), |line| {
            heard.push((line.len(), String::from_utf8_lossy(&line[..line.len().min(6)]).into_owned()));
            heard.len() < 5
        });
        listened.await.unwrap();
        let texts: Vec<&str> = heard.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["+one", "+two", "+three", "+xxxxx", "+four"]);
        assert!(heard[3].0 <= LONGEST_LINE + CHUNK, "{}", heard[3].0);
        drop(theirs);
        assert!(tap.listen(Duration::from_secs(30), |_| true).await.is_err());
    }
}
