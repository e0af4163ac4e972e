//! Which locks there are: names by SCAN, then one look at each.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::fred::clients::Client;
use ::fred::error::Error;
use ::fred::interfaces::{ClientLike, KeysInterface};
use ::fred::types::{ClusterHash, CustomCommand, Value};
use futures::future::join_all;

use super::classify;
use super::connect::{Connection, Dialer};
use super::inspection::{Inspection, KeyState, Sighting};
use super::probe::key_state;
use crate::protocol::quorum::Quorum;
use crate::protocol::request::check_resource;

/// How many keys a master looks at in one call, during which it does nothing else.
const COUNT: &str = "250";
/// The pause between two calls: at most 25,000 keys a second.
const PAUSE: Duration = Duration::from_millis(10);
/// How many keys are looked at together.
const TOGETHER: usize = 64;
/// Above what a holder id and a fencing token can come to.
const LONGEST_VALUE: usize = 1279;

/// The resources that stand on the masters, found by SCAN; with some bad luck without those that came and went
/// meanwhile.
#[derive(Clone, Debug)]
pub struct Listing {
    /// N and w.
    pub quorum: Quorum,
    /// The masters that could not be searched, with the reason.
    pub unseen: Vec<(String, String)>,
    /// Each resource, in the order of their bytes, with what stands there.
    pub resources: Vec<(Vec<u8>, Inspection)>,
    /// Whether these are all: otherwise there are more than were asked for.
    pub is_complete: bool,
}

pub(crate) async fn list(dialers: &[Dialer], quorum: Quorum, pattern: &[u8], most: usize) -> Listing {
    let connections = join_all(dialers.iter().map(Dialer::dial)).await;
    let connections: Vec<Result<Connection, String>> = connections
        .into_iter()
        .map(|dialled| match dialled {
            Ok(connection) => connection.info.unfit().map_or(Ok(connection), Err),
            Err(why) => Err(why),
        })
        .collect();
    let names = Names { found: Mutex::new(BTreeSet::new()), most };
    let scans = connections.iter().map(async |connection| match connection {
        Ok(connection) => scan(&connection.client, pattern, &names).await,
        Err(why) => Err(why.clone()),
    });
    let unseen = join_all(scans).await.into_iter().zip(dialers);
    let unseen: Vec<(String, String)> =
        unseen.filter_map(|(scan, dialer)| Some((dialer.name(), scan.err()?))).collect();

    let mut found = names.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_complete = found.len() <= most;
    while found.len() > most {
        found.pop_last();
    }
    let found: Vec<Vec<u8>> = found.into_iter().collect();
    let mut resources = Vec::with_capacity(found.len());
    for some in found.chunks(TOGETHER) {
        let looks = dialers.iter().zip(&connections).map(async |(dialer, connection)| {
            let looks = some.iter().map(|resource| look(dialer, connection.as_ref(), resource));
            join_all(looks).await
        });
        let mut columns: Vec<_> = join_all(looks).await.into_iter().map(Vec::into_iter).collect();
        for resource in some {
            let sightings: Vec<Sighting> = columns.iter_mut().filter_map(Iterator::next).collect();
            // One that expired since it was found is none any more.
            if sightings.iter().any(|sighting| matches!(sighting.key, Ok(KeyState::Held { .. }))) {
                resources.push((resource.clone(), Inspection { quorum, sightings }));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Listing { quorum, unseen, resources, is_complete }
}

/// What was found so far, by all masters' searches together.
struct Names {
    found: Mutex<BTreeSet<Vec<u8>>>,
    most: usize,
}

impl Names {
    /// Whether there is room for more: one above what was asked for tells that there are more.
    fn add(&self, names: Vec<Vec<u8>>) -> bool {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            // Names that can be no resource are none of ours, or our own.
            if found.len() <= self.most && check_resource(&name).is_ok() {
                found.insert(name);
            }
        }
        found.len() <= self.most
    }
}

async fn scan(client: &Client, pattern: &[u8], names: &Names) -> Result<(), String> {
    let mut cursor = "0".to_owned();
    loop {
        let (next, page) = page(client, &cursor, pattern).await?;
        if !names.add(page) || next == "0" {
            return Ok(());
        }
        cursor = next;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn page(client: &Client, cursor: &str, pattern: &[u8]) -> Result<(String, Vec<Vec<u8>>), String> {
    let command = CustomCommand::new_static("SCAN", ClusterHash::FirstKey, false);
    let words: Vec<Value> =
        [cursor.as_bytes(), b"MATCH", pattern, b"COUNT", COUNT.as_bytes(), b"TYPE", b"string"]
            .iter()
            .map(|word| Value::Bytes((*word).to_vec().into()))
            .collect();
    let said = client.custom::<Value, Value>(command, words).await.map_err(|error| denied(&error))?;
    let unreadable = || "its answer to SCAN cannot be read".to_owned();
    let Value::Array(parts) = said else { return Err(unreadable()) };
    let [cursor, Value::Array(keys)] = parts.as_slice() else { return Err(unreadable()) };
    let keys = keys.iter().filter_map(|key| key.as_bytes().map(<[u8]>::to_vec)).collect();
    Ok((cursor.as_string().ok_or_else(unreadable)?, keys))
}

async fn look(dialer: &Dialer, connection: Result<&Connection, &String>, resource: &[u8]) -> Sighting {
    let key = match connection {
        Err(why) => Err(why.clone()),
        Ok(connection) => {
            let client = &connection.client;
            key_state(client, resource, value(client, resource).await).await.map_err(|error| denied(&error))
        }
    };
    Sighting { master: dialer.name(), key, round_trip: Duration::ZERO, abstains: None }
}

/// The value, or its beginning: a string may be 512 MB long, and no lock at all.
async fn value(client: &Client, resource: &[u8]) -> Result<Value, Error> {
    let value: Value = client.getrange(resource, 0, LONGEST_VALUE).await?;
    // No key and an empty value look alike.
    let is_none = value.as_bytes() == Some(b"") && client.pttl::<i64, _>(resource).await? == -2;
    Ok(if is_none { Value::Null } else { value })
}

fn denied(error: &Error) -> String {
    let words = classify::reason(error);
    if words.starts_with("NOPERM") {
        format!("{words} (allow it: ACL SETUSER <user> ~* +scan +getrange +pttl)")
    } else {
        words
    }
}
