//! What masters tell of themselves: everything that a diagnosis needs, and nothing that would change them.

use std::collections::BTreeMap;
use std::time::Duration;

use ::fred::clients::Client;
use ::fred::error::{Error, ErrorKind};
use ::fred::interfaces::{ClientLike, KeysInterface, LuaInterface};
use ::fred::types::{ClusterHash, CustomCommand, Value};
use futures::future::join_all;
use tokio::time::{Instant, timeout};

use super::admission::ADMITTED;
use super::classify;
use super::connect::{Connection, Dialer, explain};
use super::contact::Contact;
use super::inspection::{Abstention, Inspection, Sighting};
use super::probe::{key_state, standing};
use crate::protocol::quorum::Quorum;

/// How often the round trip is measured, at most.
const ROUND_TRIPS: usize = 20;

/// The settings that INFO does not tell.
const SETTINGS: [&str; 4] = ["appendfsync", "save", "timeout", "min-replicas-to-write"];

/// What all masters tell of themselves and of some resources, at about one moment.
#[derive(Clone, Debug)]
pub struct Survey {
    /// N and w.
    pub quorum: Quorum,
    /// One a master, in the configured order.
    pub masters: Vec<SurveyedMaster>,
}

/// One master of a survey.
#[derive(Clone, Debug)]
pub struct SurveyedMaster {
    /// The master's address.
    pub master: String,
    /// Its address in parts.
    pub contact: Contact,
    /// What it tells, or why it cannot be asked.
    pub facts: Result<MasterFacts, String>,
}

/// What one master tells of itself. All of it is read, nothing written.
#[derive(Clone, Debug)]
pub struct MasterFacts {
    info: BTreeMap<String, String>,
    /// Why it is no master that may vote, if it is none.
    pub unfit: Option<String>,
    /// Whether it casts no vote at the moment; `None` if it votes, or nobody can tell.
    pub abstains: Option<Abstention>,
    /// The longest ttl of the fleet that it belongs to; `None` if it belongs to none, or nobody can tell.
    pub max_ttl: Option<Duration>,
    /// Round trips of a trivial command, shortest first; never empty.
    pub round_trips: Vec<Duration>,
    /// Its wall clock.
    pub clock: Result<WallClock, Untold>,
    /// The commands that this user may not give, of those that a client gives. Without `client|caching` and `client|tracking` it
    /// waits by polling, without `zadd`, `zrange`, `zrank` and `zremrangebyrank` in no order; `hgetall` and `time` are for fencing; it needs all others.
    pub missing_rights: Result<Vec<String>, Untold>,
    /// Settings that INFO does not tell: `appendfsync`, `save`, `timeout`, `min-replicas-to-write`.
    pub settings: Result<BTreeMap<String, String>, Untold>,
    /// How long the slowest of the latest slow commands took, by its SLOWLOG.
    pub slowest: Result<Option<Duration>, Untold>,
    /// Its connections, one line each, as CLIENT LIST tells them.
    pub connections: Result<Vec<String>, Untold>,
    /// Whether it can compare and delete by a command of its own (`DELIFEQ`, Valkey 9).
    pub deletes_by_itself: Result<bool, Untold>,
    /// What stands at each of the resources asked for, in their order.
    pub sightings: Vec<Sighting>,
}

/// A master's wall clock, and when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Since the Unix epoch.
    pub time: Duration,
    /// The middle of the round trip, by the clock of this process.
    pub read_at: std::time::Instant,
    /// How much earlier or later it may have been.
    pub give_or_take: Duration,
}

/// What a master did not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// Its words.
    pub why: String,
    /// The right in an ACL that is missing, if that is the reason: `config|get`.
    pub right: Option<&'static str>,
}

impl Survey {
    /// What was seen at one of the resources, by its place in the order asked for.
    #[must_use]
    pub fn inspection(&self, nth: usize) -> Inspection {
        let unseen = |master: &SurveyedMaster, why: &str| Sighting {
            master: master.master.clone(),
            key: Err(why.to_owned()),
            round_trip: Duration::ZERO,
            abstains: None,
        };
        let sighting = |master: &SurveyedMaster| match &master.facts {
            Err(why) => unseen(master, why),
            Ok(facts) => facts.sightings.get(nth).cloned().unwrap_or_else(|| unseen(master, "not asked")),
        };
        Inspection { quorum: self.quorum, sightings: self.masters.iter().map(sighting).collect() }
    }
}

impl MasterFacts {
    /// A field of INFO as the master writes it: `uptime_in_seconds`, `redis_version`, `db0`.
    #[must_use]
    pub fn info(&self, field: &str) -> Option<&str> {
        self.info.get(field).map(String::as_str)
    }

    /// A field of INFO that is a number.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<u64> {
        self.info(field)?.parse().ok()
    }

    /// The fields of INFO that begin so, with their values: `db` for the databases, say.
    pub fn infos<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let fields = self.info.iter().map(|(field, value)| (field.as_str(), value.as_str()));
        fields.filter(move |(field, _)| field.starts_with(beginning))
    }
}

pub(crate) async fn survey(dialers: &[Dialer], quorum: Quorum, resources: &[Vec<u8>]) -> Survey {
    let masters = dialers.iter().map(async |dialer| SurveyedMaster {
        master: dialer.name(),
        contact: dialer.contact(),
        facts: ask_all(dialer, resources).await,
    });
    Survey { quorum, masters: join_all(masters).await }
}

async fn ask_all(dialer: &Dialer, resources: &[Vec<u8>]) -> Result<MasterFacts, String> {
    let connection = dialer.dial().await?;
    let limit = dialer.connect_timeout() + dialer.master_timeout();
    timeout(limit, facts(&dialer.name(), &connection, resources))
        .await
        .map_err(|_| format!("it stopped answering: not all was said within {limit:?}"))?
        .map_err(|error| explain(&error))
}

async fn facts(master: &str, connection: &Connection, resources: &[Vec<u8>]) -> Result<MasterFacts, Error> {
    let client = &connection.client;
    let unfit = connection.info.unfit();
    // In a cluster, or while it loads, it answers nothing that is about keys: fred would wait for a better time.
    let round_trips = match &unfit {
        Some(_) => vec![connection.round_trip],
        None => round_trips(client).await?,
    };
    let clock = clock(client).await;
    let sightings = resources.iter().map(|resource| sighting(master, client, &unfit, resource));
    // One connection: all of it is on the way at once.
    let (
        info,
        sightings,
        (abstains, max_ttl),
        missing_rights,
        settings,
        (slowest, connections, deletes_by_itself),
    ) = tokio::join!(
        client.info::<String>(None),
        join_all(sightings),
        async { if unfit.is_none() { standing(connection).await } else { (None, None) } },
        missing_rights(client),
        settings(client),
        async { tokio::join!(slowest(client), connections(client), deletes_by_itself(client)) },
    );
    let info = info?;
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    Ok(MasterFacts {
        info: fields.map(|(field, value)| (field.to_owned(), value.trim_end().to_owned())).collect(),
        unfit,
        abstains,
        max_ttl,
        round_trips,
        clock,
        missing_rights,
        settings,
        slowest,
        connections,
        deletes_by_itself,
        sightings,
    })
}

/// As many as fit in a moment, so that a far master is not asked for seconds.
async fn round_trips(client: &Client) -> Result<Vec<Duration>, Error> {
    let enough = Instant::now() + Duration::from_millis(300);
    let mut round_trips = Vec::with_capacity(ROUND_TRIPS);
    while round_trips.is_empty() || round_trips.len() < ROUND_TRIPS && Instant::now() < enough {
        let asked = Instant::now();
        match client.exists::<i64, _>(ADMITTED).await {
            Err(error) if *error.kind() == ErrorKind::Timeout || *error.kind() == ErrorKind::IO => {
                return Err(error);
            }
            // A refusal took as long as an answer does.
            _ => round_trips.push(asked.elapsed()),
        }
    }
    round_trips.sort();
    Ok(round_trips)
}

async fn sighting(master: &str, client: &Client, unfit: &Option<String>, resource: &[u8]) -> Sighting {
    let asked = Instant::now();
    let (key, round_trip) = match unfit {
        Some(why) => (Err(why.clone()), Duration::ZERO),
        None => {
            let value = client.get(resource).await;
            let round_trip = asked.elapsed();
            (key_state(client, resource, value).await.map_err(|error| explain(&error)), round_trip)
        }
    };
    Sighting { master: master.to_owned(), key, round_trip, abstains: None }
}

async fn clock(client: &Client) -> Result<WallClock, Untold> {
    let asked = Instant::now();
    let time = ask(client, "TIME", &[], "time").await?;
    let took = asked.elapsed();
    let parts: Vec<u64> = list(time).iter().filter_map(|part| part.parse().ok()).collect();
    let &[seconds, micros] = parts.as_slice() else { return Err(unintelligible("TIME")) };
    Ok(WallClock {
        time: Duration::from_secs(seconds) + Duration::from_micros(micros),
        read_at: (asked + took / 2).into_std(),
        give_or_take: took / 2,
    })
}

async fn missing_rights(client: &Client) -> Result<Vec<String>, Untold> {
    let script = include_str!("../lua/rights.lua");
    let said: Result<String, Error> = client.eval(script, Vec::<String>::new(), Vec::<String>::new()).await;
    match said {
        Ok(names) => Ok(names.split_whitespace().map(str::to_owned).collect()),
        Err(error) if error.details().starts_with("NOPERM") => Ok(vec!["eval".to_owned()]),
        Err(error) => Err(Untold { why: classify::reason(&error), right: None }),
    }
}

async fn settings(client: &Client) -> Result<BTreeMap<String, String>, Untold> {
    let mut settings = BTreeMap::new();
    // One by one, as masters before Redis 7.0 need it; all on the way at once.
    let asks = SETTINGS.map(async |name| ask(client, "CONFIG", &["GET", name], "config|get").await);
    for said in join_all(asks).await {
        let words = list(said?);
        settings.extend(words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())));
    }
    Ok(settings)
}

async fn slowest(client: &Client) -> Result<Option<Duration>, Untold> {
    let Value::Array(entries) = ask(client, "SLOWLOG", &["GET", "128"], "slowlog|get").await? else {
        return Err(unintelligible("SLOWLOG"));
    };
    let micros = |entry: &Value| match entry {
        Value::Array(parts) => parts.get(2).and_then(Value::as_u64),
        _ => None,
    };
    Ok(entries.iter().filter_map(micros).max().map(Duration::from_micros))
}

async fn connections(client: &Client) -> Result<Vec<String>, Untold> {
    let text = ask(client, "CLIENT", &["LIST"], "client|list").await?.as_string().unwrap_or_default();
    Ok(text.lines().map(str::to_owned).collect())
}

async fn deletes_by_itself(client: &Client) -> Result<bool, Untold> {
    match ask(client, "COMMAND", &["INFO", "DELIFEQ"], "command|info").await? {
        Value::Array(found) => Ok(found.iter().any(|entry| !entry.is_null())),
        _ => Ok(false),
    }
}

async fn ask(
    client: &Client,
    command: &'static str,
    words: &[&str],
    right: &'static str,
) -> Result<Value, Untold> {
    let command = CustomCommand::new_static(command, ClusterHash::FirstKey, false);
    let words: Vec<Value> = words.iter().map(|word| Value::from(*word)).collect();
    client.custom::<Value, Value>(command, words).await.map_err(|error| Untold {
        right: error.details().starts_with("NOPERM").then_some(right),
        why: classify::reason(&error),
    })
}

fn unintelligible(command: &str) -> Untold {
    Untold { why: format!("its answer to {command} cannot be read"), right: None }
}

/// The texts of a list, or of a map.
fn list(value: Value) -> Vec<String> {
    match value {
        Value::Array(parts) => parts.iter().filter_map(Value::as_string).collect(),
        Value::Map(map) => map
            .inner()
            .into_iter()
            .flat_map(|(key, value)| [key.into_string(), value.as_string()])
            .flatten()
            .collect(),
        other => other.as_string().into_iter().collect(),
    }
}
