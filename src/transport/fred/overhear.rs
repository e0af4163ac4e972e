//! Listening to what others do on the masters, by MONITOR.

use std::time::Duration;

use futures::future::join_all;
use memchr::{memchr, memchr2};

use super::connect::Dialer;
use super::wiretap::Wiretap;

/// A command that a master was given, as MONITOR shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overheard {
    /// Who gave it: `host:port`; `None` for a script.
    pub client: Option<String>,
    /// The database it is about.
    pub database: u32,
    /// Its name, in capitals.
    pub command: String,
    /// Its arguments. Those that do not fit the first 64 KiB are left out.
    pub arguments: Vec<Vec<u8>>,
}

/// Listens on all masters at once, until `lasting` is over or a master gave `most` commands. What each master came to: how
/// many commands, or why it could not be listened to.
pub(crate) async fn overhear(
    dialers: &[Dialer],
    lasting: Duration,
    most: usize,
    heard: impl Fn(usize, Overheard),
) -> Vec<Result<usize, String>> {
    let listeners = dialers.iter().enumerate().map(|(nth, dialer)| {
        let heard = &heard;
        async move { listen(dialer, lasting, most, |one| heard(nth, one)).await }
    });
    join_all(listeners).await
}

async fn listen(
    dialer: &Dialer,
    lasting: Duration,
    most: usize,
    heard: impl Fn(Overheard),
) -> Result<usize, String> {
    let mut tap = Wiretap::start(dialer).await.map_err(|why| match why {
        why if why.starts_with("NOPERM") => format!("{why} (allow it: ACL SETUSER <user> +monitor)"),
        why => why,
    })?;
    let mut count = 0;
    tap.listen(lasting, |line| {
        if let Some(one) = Overheard::read(line) {
            count += 1;
            heard(one);
        }
        count < most
    })
    .await?;
    Ok(count)
}

impl Overheard {
    /// Of `+1631469940.785623 [0 127.0.0.1:46998] "SET" "key" "va\x00lue"`.
    fn read(line: &[u8]) -> Option<Self> {
        let line = line.strip_prefix(b"+")?;
        let from = line.iter().position(|byte| *byte == b'[')?;
        let to = from + line[from..].windows(3).position(|three| three == b"] \"")?;
        let (database, client) = std::str::from_utf8(&line[from + 1..to]).ok()?.split_once(' ')?;
        let mut words = words(&line[to + 2..]).into_iter();
        let command = String::from_utf8_lossy(&words.next()?).to_ascii_uppercase();
        Some(Self {
            client: (client != "lua").then(|| client.to_owned()),
            database: database.parse().ok()?,
            command,
            arguments: words.collect(),
        })
    }
}

/// Quoted words, as far as they are whole.
fn words(mut text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    while let Some(begin) = memchr(b'"', text) {
        text = &text[begin + 1..];
        let mut word = Vec::new();
        loop {
            let Some(plain) = memchr2(b'"', b'\\', text) else { return words };
            word.extend_from_slice(&text[..plain]);
            let is_over = text[plain] == b'"';
            text = &text[plain + 1..];
            if is_over {
                break;
            }
            let mut bytes = text.iter().copied();
            let Some(byte) = escaped(&mut bytes) else { return words };
            word.push(byte);
            text = &text[text.len() - bytes.len()..];
        }
        words.push(word);
    }
    words
}

fn escaped(bytes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    Some(match bytes.next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'x' => {
            let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16)?).ok();
            digit(bytes.next()?)? << 4 | digit(bytes.next()?)?
        }
        byte => byte,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_monitor_is_taken_apart() {
        let read = |line: &str| Overheard::read(line.as_bytes());
        let one = read(r#"+1631469940.785623 [3 127.0.0.1:46998] "set" "a \"b\" ] \\c" "\x00\xff\n" "NX""#)
            .unwrap();
        assert_eq!(
            (one.client.as_deref(), one.database, one.command.as_str()),
            (Some("127.0.0.1:46998"), 3, "SET")
        );
        assert_eq!(one.arguments, [&b"a \"b\" ] \\c"[..], b"\x00\xff\n", b"NX"]);
        assert_eq!(read(r#"+1.5 [0 lua] "GET" "k""#).unwrap().client, None);
        assert_eq!(read(r#"+1.5 [0 unix:/a b] "PING""#).unwrap().client.as_deref(), Some("unix:/a b"));
        // Cut in a word.
        assert_eq!(read(r#"+1.5 [0 a:1] "GET" "k" "lo"#).unwrap().arguments, [b"k"]);
        assert_eq!(read(r#"+1.5 [0 a:1] "GET" "k\x"#).unwrap().arguments, Vec::<Vec<u8>>::new());
        for nonsense in ["", "+OK", "-ERR no", r#"+1.5 [x a:1] "GET""#, "+1.5 [0 a:1] "] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
