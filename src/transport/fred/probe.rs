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
use super::inspection::{Abstention, Inspection, KeyState, Sighting};
use crate::protocol::policy::Policy;
use crate::protocol::quorum::Quorum;
use crate::protocol::votes::Remaining;
use crate::transport::script::COUNTERS;

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
    if let Some(why) = connection.info.unfit() {
        return Sighting { master, key: Err(why), round_trip: connection.round_trip, abstains: None };
    }
    let asked = tokio::time::Instant::now();
    let value = connection.client.get(resource).await;
    let round_trip = asked.elapsed();
    let key = key_state(&connection.client, resource, value).await.map_err(|error| explain(&error));
    Sighting { master, key, round_trip, abstains: abstention(connection).await }
}

/// The key, of which the value was asked for already.
pub(super) async fn key_state(
    client: &Client,
    resource: &[u8],
    value: Result<Value, Error>,
) -> Result<KeyState, Error> {
    match value {
        Ok(Value::Null) => Ok(KeyState::Free),
        Ok(value) => {
            let remaining = remaining(client, resource).await?;
            Ok(KeyState::held(value.as_bytes().unwrap_or_default(), remaining))
        }
        Err(error) if error.details().starts_with("WRONGTYPE") => {
            Ok(KeyState::OtherType { remaining: remaining(client, resource).await? })
        }
        Err(error) => Err(error),
    }
}

async fn remaining(client: &Client, key: impl Into<::fred::types::Key> + Send) -> Result<Remaining, Error> {
    let millis: i64 = client.pttl(key).await?;
    Ok(match u64::try_from(millis) {
        Ok(millis) => Remaining::For(Duration::from_millis(millis)),
        Err(_) if millis == -1 => Remaining::Forever,
        Err(_) => Remaining::For(Duration::ZERO),
    })
}

/// Whether it votes.
pub(super) async fn abstention(connection: &Connection) -> Option<Abstention> {
    standing(connection).await.0
}

/// Whether it votes, and its fleet's longest ttl. Reads what JOIN would, and writes nothing.
pub(super) async fn standing(connection: &Connection) -> (Option<Abstention>, Option<Duration>) {
    const READ: &str = "return redis.call('HMGET', KEYS[1], 'run', 'qrun', 'max_ttl')";
    let client = &connection.client;
    let known = client.eval::<Vec<Option<String>>, _, _, _>(READ, vec![ADMITTED], Vec::<String>::new()).await;
    let Ok(known) = known else { return (None, None) };
    let field = |nth: usize| known.get(nth).and_then(Option::as_deref);
    let is_this_process = |nth| field(nth).is_some_and(|run| *run == *connection.info.run_id);
    let max_ttl = field(2).and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
    if is_this_process(0) {
        return (None, max_ttl);
    }
    let abstains = match remaining(client, QUARANTINE).await {
        Err(_) => None,
        Ok(Remaining::For(left)) if is_this_process(1) && !left.is_zero() => {
            Some(Abstention::Quarantined(left))
        }
        Ok(_) => Some(Abstention::NeverAdmitted),
    };
    (abstains, max_ttl)
}

/// Why fresh masters could not be admitted. None of them was changed, unless the text says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitError {
    unreached: bool,
    troubles: Vec<(String, String)>,
    admitted: Vec<String>,
}

impl InitError {
    /// Whether a master could not be asked. If none, it is what they are that stands in the way, and another try will find it again.
    #[must_use]
    pub const fn is_unreached(&self) -> bool {
        self.unreached
    }
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
    let (mut troubles, mut unreached) = (Vec::new(), false);
    for (name, dialled) in names.iter().zip(dialled) {
        let trouble = match dialled {
            Err(why) => {
                unreached = true;
                Some(why)
            }
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
        return Err(InitError { unreached, troubles, admitted: Vec::new() });
    }
    let looks = connections.iter().map(|one| one.client.exists::<i64, _>(COUNTERS));
    let never_fenced = join_all(looks).await.into_iter().all(|count| count.is_ok_and(|count| count == 0));
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
            Err(error) => {
                unreached = true;
                troubles.push((name.clone(), explain(&error)));
            }
        }
    }
    if troubles.is_empty() { Ok(admitted) } else { Err(InitError { unreached, troubles, admitted }) }
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
