//! Listening to what others do on the masters, by MONITOR.

use std::time::Duration;

use ::fred::monitor;
use futures::StreamExt;
use futures::future::join_all;
use tokio::time::{Instant, timeout, timeout_at};

use super::classify;
use super::connect::Dialer;

/// A command that a master was given, as MONITOR shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overheard {
    /// Who gave it: `host:port`; `None` for a script.
    pub client: Option<String>,
    /// The database it is about.
    pub database: u8,
    /// Its name, in capitals.
    pub command: String,
    /// Its arguments, up to the first one that is not printable text.
    pub arguments: Vec<String>,
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
    let limit = dialer.connect_timeout();
    let started = timeout(limit, monitor::run(dialer.config()?)).await;
    let stream = started.map_err(|_| format!("no connection within {limit:?}"))?.map_err(|error| {
        match classify::reason(&error) {
            words if words.starts_with("NOPERM") => {
                format!("{words} (allow it: ACL SETUSER <user> +monitor)")
            }
            words => words,
        }
    })?;
    let mut stream = std::pin::pin!(stream);
    let end = Instant::now() + lasting;
    let mut count = 0;
    while count < most {
        match timeout_at(end, stream.next()).await {
            Err(_) => return Ok(count),
            Ok(None) => return Err(format!("the connection ended after {count} commands")),
            Ok(Some(given)) => {
                count += 1;
                heard(Overheard {
                    client: (given.client != "lua").then_some(given.client),
                    database: given.db,
                    command: given.command.to_ascii_uppercase(),
                    arguments: given
                        .args
                        .iter()
                        .map_while(|word| Some(word.as_string()?.replace("\\\"", "\"")))
                        .collect(),
                });
            }
        }
    }
    Ok(count)
}
