//! Looking at a master from outside.

use std::collections::BTreeMap;
use std::io;
use std::sync::PoisonError;

use crate::testbed::condition::Condition;
use crate::testbed::local::LocalMaster;
use crate::testbed::wire::{Reply, Wire};

impl LocalMaster {
    /// Sends one command, on a connection that is kept for the next one.
    ///
    /// # Errors
    /// The connection's. The command may have been applied, unless the master is down; it is never sent twice.
    /// A frozen master is not asked, since it would do it once it is thawed: that is
    /// [`TimedOut`](io::ErrorKind::TimedOut) at once.
    pub fn command<A: AsRef<[u8]>>(&self, command: &[A]) -> io::Result<Reply> {
        if self.condition() == Condition::Frozen {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the master is frozen"));
        }
        let mut kept = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection from before a restart is noticed here and not by a failing command.
        let mut wire = match kept.take().filter(Wire::is_fresh) {
            Some(wire) => wire,
            None => self.wire()?,
        };
        let reply = wire.command(command)?;
        *kept = Some(wire);
        Ok(reply)
    }

    /// A connection of one's own, with the password given if the master was started with `--requirepass`.
    ///
    /// # Errors
    /// The operating system's, or the master's refusal of the password.
    pub fn wire(&self) -> io::Result<Wire> {
        let mut wire = Wire::connect(self.address())?;
        if let Some(password) = self.argument("requirepass") {
            let reply = wire.command(&["AUTH", password])?;
            if !reply.is_ok() {
                return Err(unexpected(&reply));
            }
        }
        Ok(wire)
    }

    /// The value at `key`.
    ///
    /// # Errors
    /// The connection's, or the master's: another type than a string, say.
    pub fn get(&self, key: impl AsRef<[u8]>) -> io::Result<Option<Vec<u8>>> {
        match self.command(&[b"GET", key.as_ref()])? {
            Reply::Bulk(value) => Ok(Some(value)),
            Reply::Nil => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// The remaining ttl of `key` in milliseconds; −1 if it never expires, −2 if there is no such key.
    ///
    /// # Errors
    /// The connection's, or the master's.
    pub fn pttl(&self, key: impl AsRef<[u8]>) -> io::Result<i64> {
        let reply = self.command(&[b"PTTL", key.as_ref()])?;
        reply.integer().ok_or_else(|| unexpected(&reply))
    }

    /// All keys, sorted.
    ///
    /// # Errors
    /// The connection's, or the master's.
    pub fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        let Reply::Array(keys) = self.command(&["KEYS", "*"])? else {
            return Err(io::Error::other("KEYS did not answer with an array"));
        };
        let key = |reply| match reply {
            Reply::Bulk(key) => Ok(key),
            other => Err(unexpected(&other)),
        };
        let mut keys = keys.into_iter().map(key).collect::<io::Result<Vec<_>>>()?;
        keys.sort();
        Ok(keys)
    }

    /// What `INFO` says, of all sections.
    ///
    /// # Errors
    /// The connection's, or the master's.
    pub fn info(&self) -> io::Result<BTreeMap<String, String>> {
        fields(&self.command(&["INFO", "everything"])?)
    }

    /// What the master calls this run of itself; another one after each restart.
    ///
    /// # Errors
    /// The connection's, or the master's.
    pub fn run_id(&self) -> io::Result<String> {
        self.info()?.remove("run_id").ok_or_else(|| io::Error::other("INFO names no run_id"))
    }
}

/// What an answer to `INFO` says.
pub(super) fn fields(reply: &Reply) -> io::Result<BTreeMap<String, String>> {
    let Reply::Bulk(text) = reply else { return Err(unexpected(reply)) };
    let text = String::from_utf8_lossy(text);
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    Ok(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn unexpected(reply: &Reply) -> io::Error {
    io::Error::other(reply.text().unwrap_or_else(|| format!("unexpected reply {reply:?}")))
}
