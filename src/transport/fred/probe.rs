//! Looking at masters without asking for their votes: what stands at a resource, and the first admission.

use std::fmt;
use std::time::Duration;

use ::fred::clients::Client;
use ::fred::error::Error;
use ::fred::interfaces::{KeysInterface, LuaInterface};
use ::fred::types::Value;
use futures::future::join_all;

use super::admission::{ADMITTED, QUARANTINE};
use super::connect::{Connection, Dialer, explain};
use super::counters::{self, Seen};
use crate::protocol::fencing::FencingToken;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::Quorum;
use crate::protocol::request::printable;
use crate::protocol::votes::Remaining;
use crate::transport::script::COUNTERS;

/// What stands at one resource on all masters, at about one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// N and w.
    pub quorum: Quorum,
    /// One a master, in the configured order.
    pub sightings: Vec<Sighting>,
}

/// What stands at one resource on one master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The master's address.
    pub master: String,
    /// The key, or why it could not be seen.
    pub key: Result<KeyState, String>,
    /// How long the answer took.
    pub round_trip: Duration,
    /// How long the master will abstain from voting; `None` if it votes, or nobody can tell.
    pub abstains: Option<Abstention>,
}

/// Why a master casts no vote at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abstention {
    /// It started lately and may have forgotten votes.
    Quarantined(Duration),
    /// No client has asked it to vote since it started.
    NeverAdmitted,
}

/// The state of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// There is none.
    Free,
    /// A string stands there.
    Held {
        /// Who signed it.
        holder: Vec<u8>,
        /// The number that stands behind the holder, where the lock is fenced: at most its token.
        fence: Option<FencingToken>,
        /// How long it will stay.
        remaining: Remaining,
    },
    /// A key of another type stands there; no lock of ours, and none of ours can be had.
    OtherType {
        /// How long it will stay.
        remaining: Remaining,
    },
}

/// What the sightings come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// w masters show one holder's key.
    Held {
        /// The holder.
        holder: Vec<u8>,
        /// Its fencing token, where w masters show the same; else it is above what most of them show.
        fence: Option<FencingToken>,
        /// On how many masters.
        votes: usize,
        /// How long w of them keep the key, drift subtracted; `None` if for ever.
        at_least: Option<Duration>,
    },
    /// w masters show no key.
    Free,
    /// Keys stand on fewer than w masters, and no quorum is free or held: left by a failed attempt, or one under way.
    Leftovers,
    /// Keys of several holders stand there, none on w masters.
    Split,
    /// Fewer than w masters can be seen.
    NoQuorum,
}

impl Inspection {
    /// Judges the sightings.
    #[must_use]
    pub fn finding(&self, policy: &Policy) -> Finding {
        let needed = self.quorum.needed();
        let seen: Vec<&KeyState> =
            self.sightings.iter().filter_map(|sighting| sighting.key.as_ref().ok()).collect();
        if seen.len() < needed {
            return Finding::NoQuorum;
        }
        let mut holders: Vec<(&[u8], Vec<Option<Duration>>)> = Vec::new();
        for key in &seen {
            let (holder, remaining) = match key {
                KeyState::Free => continue,
                KeyState::Held { holder, remaining, .. } => (holder.as_slice(), remaining),
                KeyState::OtherType { remaining } => (b"".as_slice(), remaining),
            };
            let left = if let Remaining::For(left) = remaining { Some(*left) } else { None };
            match holders.iter_mut().find(|(known, _)| *known == holder) {
                Some((_, lefts)) => lefts.push(left),
                None => holders.push((holder, vec![left])),
            }
        }
        if let Some((holder, lefts)) = holders.iter_mut().find(|(_, lefts)| lefts.len() >= needed) {
            lefts.sort_by_key(|left| std::cmp::Reverse(left.unwrap_or(Duration::MAX)));
            let at_least = lefts[needed - 1].map(|left| left.saturating_sub(policy.drift(left)));
            let (holder, votes) = (holder.to_vec(), lefts.len());
            return Finding::Held { fence: agreed(&seen, &holder, needed), holder, votes, at_least };
        }
        let free = seen.iter().filter(|key| ***key == KeyState::Free).count();
        match holders.len() {
            _ if free >= needed => Finding::Free,
            0 | 1 => Finding::Leftovers,
            _ => Finding::Split,
        }
    }
}

/// The token that `needed` keys of the holder show.
fn agreed(seen: &[&KeyState], holder: &[u8], needed: usize) -> Option<FencingToken> {
    let tokens: Vec<FencingToken> = seen
        .iter()
        .filter_map(|key| match key {
            KeyState::Held { holder: other, fence, .. } if other == holder => *fence,
            _ => None,
        })
        .collect();
    let shown = |token: &&FencingToken| tokens.iter().filter(|other| other == token).count() >= needed;
    tokens.iter().find(shown).copied()
}

/// Who signed a key, and the number behind it.
fn signature(value: &[u8]) -> (Vec<u8>, Option<FencingToken>) {
    let parts = value.iter().rposition(|byte| *byte == b'|').and_then(|bar| {
        let number = std::str::from_utf8(&value[bar + 1..]).ok()?;
        Some((value[..bar].to_vec(), number.parse().ok()?))
    });
    parts.map_or_else(|| (value.to_vec(), None), |(holder, token)| (holder, Some(token)))
}

pub(crate) async fn inspect(dialers: &[Dialer], quorum: Quorum, resource: &[u8]) -> Inspection {
    let looks = dialers.iter().map(|dialer| look(dialer, resource));
    Inspection { quorum, sightings: join_all(looks).await }
}

async fn look(dialer: &Dialer, resource: &[u8]) -> Sighting {
    let master = dialer.name();
    match dialer.dial().await {
        Ok(connection) => sight(master, &connection, resource).await,
        Err(why) => Sighting { master, key: Err(why), round_trip: Duration::ZERO, abstains: None },
    }
}

async fn sight(master: String, connection: &Connection, resource: &[u8]) -> Sighting {
    let client = &connection.client;
    let asked = tokio::time::Instant::now();
    let value: Result<Value, Error> = client.get(resource).await;
    let round_trip = asked.elapsed();
    let key = match value {
        Ok(Value::Null) => Ok(KeyState::Free),
        Ok(value) => remaining(client, resource).await.map(|remaining| {
            let (holder, fence) = signature(value.as_bytes().unwrap_or_default());
            KeyState::Held { holder, fence, remaining }
        }),
        Err(error) if error.details().starts_with("WRONGTYPE") => {
            remaining(client, resource).await.map(|remaining| KeyState::OtherType { remaining })
        }
        Err(error) => Err(error),
    };
    let key = match connection.info.unfit() {
        Some(why) => Err(why),
        None => key.map_err(|error| explain(&error)),
    };
    Sighting { master, key, round_trip, abstains: abstention(connection).await }
}

async fn remaining(client: &Client, key: impl Into<::fred::types::Key> + Send) -> Result<Remaining, Error> {
    let millis: i64 = client.pttl(key).await?;
    Ok(match u64::try_from(millis) {
        Ok(millis) => Remaining::For(Duration::from_millis(millis)),
        Err(_) if millis == -1 => Remaining::Forever,
        Err(_) => Remaining::For(Duration::ZERO),
    })
}

/// Reads what JOIN would, and writes nothing.
async fn abstention(connection: &Connection) -> Option<Abstention> {
    const READ: &str = "return redis.call('HMGET', KEYS[1], 'run', 'qrun')";
    let client = &connection.client;
    let known: Vec<Option<String>> = client.eval(READ, vec![ADMITTED], Vec::<String>::new()).await.ok()?;
    let is_this_process = |field: Option<&Option<String>>| {
        field.and_then(Option::as_deref).is_some_and(|run| *run == *connection.info.run_id)
    };
    if is_this_process(known.first()) {
        return None;
    }
    match remaining(client, QUARANTINE).await.ok()? {
        Remaining::For(left) if is_this_process(known.get(1)) && !left.is_zero() => {
            Some(Abstention::Quarantined(left))
        }
        _ => Some(Abstention::NeverAdmitted),
    }
}

/// Why fresh masters could not be admitted. None of them was changed, unless the text says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitError {
    troubles: Vec<(String, String)>,
    admitted: Vec<String>,
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.admitted.is_empty() {
            write!(f, "no master was admitted")?;
        } else {
            write!(f, "only {} admitted", self.admitted.join(", "))?;
        }
        for (master, trouble) in &self.troubles {
            write!(f, "\n  {master}: {trouble}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InitError {}

/// Admits all masters at once, if they are all there and none has belonged to a fleet before.
pub(crate) async fn init(dialers: &[Dialer], policy: &Policy) -> Result<Vec<String>, InitError> {
    let names: Vec<String> = dialers.iter().map(Dialer::name).collect();
    let dialled = join_all(dialers.iter().map(Dialer::dial)).await;
    let mut connections: Vec<Connection> = Vec::new();
    let mut troubles = Vec::new();
    for (name, dialled) in names.iter().zip(dialled) {
        let trouble = match dialled {
            Err(why) => Some(why),
            Ok(connection) => {
                let twin = connections.iter().any(|other| other.info.run_id == connection.info.run_id);
                let trouble = match connection.info.unfit() {
                    None if twin => Some("the same server as an earlier one of the list".to_owned()),
                    None => known(&connection).await,
                    unfit => unfit,
                };
                connections.push(connection);
                trouble
            }
        };
        troubles.extend(trouble.map(|trouble| (name.clone(), trouble)));
    }
    if !troubles.is_empty() {
        return Err(InitError { troubles, admitted: Vec::new() });
    }
    let looks = connections.iter().map(|one| counters::look(&one.client, &one.info.run_id));
    let never_fenced = join_all(looks).await.iter().all(|seen| *seen == Seen::None);
    let mut admitted = Vec::new();
    for (name, connection) in names.iter().zip(&connections) {
        let first = if never_fenced { "first" } else { "" }.to_owned();
        let args = vec![connection.info.run_id.to_string(), policy.max_ttl().as_millis().to_string(), first];
        match connection
            .client
            .eval::<String, _, _, _>(include_str!("../lua/init.lua"), vec![ADMITTED, COUNTERS], args)
            .await
        {
            Ok(said) if said == "admitted" => admitted.push(name.clone()),
            Ok(_) => troubles.push((name.clone(), KNOWN.to_owned())),
            Err(error) => troubles.push((name.clone(), explain(&error))),
        }
    }
    if troubles.is_empty() { Ok(admitted) } else { Err(InitError { troubles, admitted }) }
}

const KNOWN: &str = "it belongs to a fleet already, and may have forgotten locks: it is admitted by itself after one \
                     longest ttl (or delete its key quorlock:admitted, if you know that nobody holds a lock)";

async fn known(connection: &Connection) -> Option<String> {
    match connection.client.exists::<i64, _>(ADMITTED).await {
        Ok(0) => None,
        Ok(_) => Some(KNOWN.to_owned()),
        Err(error) => Some(explain(&error)),
    }
}

/// The holder as a person may read it.
impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, remaining) = match self {
            Self::Free => return f.write_str("free"),
            Self::Held { holder, remaining, .. } => (printable(holder), remaining),
            Self::OtherType { remaining } => ("a key of another type".to_owned(), remaining),
        };
        match remaining {
            Remaining::For(left) => write!(f, "{what} for {:.1} s more", left.as_secs_f64()),
            Remaining::Forever => write!(f, "{what} without a ttl: it never expires by itself"),
            Remaining::Untold => f.write_str(&what),
        }
    }
}
