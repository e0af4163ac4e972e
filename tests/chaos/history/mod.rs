//! What happened in a run, one JSON object a line. This, and nothing else, is what the checker and the page read.
//!
//! Every line has `at` (nanoseconds of `CLOCK_BOOTTIME`, which all processes of a machine read alike), `by` (`chaos`, which
//! breaks things; `c1`, `c2`… the clients; `register`) and `event`. A client stamps before it lets go of a lock and after
//! it got one, so that the intervals told here lie within the true ones: what overlaps here did overlap.
//!
//! | event | by | says |
//! |---|---|---|
//! | `run` | chaos | the first line: `schema`, `seed`, `clients`, `masters`, `ttl`, `max_ttl`, `drift` (ns), `fenced`, `mutant`, the `command` that replays it, and what the run must contain to prove anything: `grants`, `contended`, `faults`, `overlaps` |
//! | `start` | client | claim number `claim` asks for `resource` |
//! | `refused` | client | the claim was not won: `why` |
//! | `granted` | client | the claim was won: `holder`, `deadline`, `votes`, `fence` (0: none) |
//! | `renewed`, `lowered` | client | the deadline moved to `deadline` |
//! | `at_risk` | client | it is told that the lock may end |
//! | `lost` | client | it is told that the lock ended: `why`; `seen`: when it last saw the lock valid |
//! | `enter`, `exit` | client | the work under the lock |
//! | `effect` | client | the register's answer: `op` (`read`, `write`), `value`, `fence`, `ack` |
//! | `release_called`, `drop` | client | from now on the lock is not its own |
//! | `released` | client | how the release went: `outcome` |
//! | `stalled` | client | it did not run since `since`: stopped, or kept from the processor |
//! | `applied` | register | it did `op` for `claim` of `client`: it `found` a value, and left `value` |
//! | `turned_away` | register | the `fence` was smaller than one `seen` |
//! | `counter` | register | the last value of a `resource` |
//! | `fault`, `healed` | chaos | fault number `id`, `word`, struck `on` these (`m1` a master, `c2` a client, `c2-m1` a way); it is over |
//! | `skipped` | chaos | the fault could not be put in place, or not everywhere: `why` |
//! | `floor` | chaos | the operator set a `floor` under the tokens `on` these masters, which had lost their counters |
//! | `stopped` | chaos | all clients gave back what they held, and ended |
//! | `left` | chaos | on `master`, `key` was still there when every ttl was over |
//!
//! Readers must skip fields they do not know. Whatever changes the meaning of a field raises `schema`.

pub(crate) mod breach;
pub(crate) mod check;
pub(crate) mod hold;
pub(crate) mod register;

use serde::{Deserialize, Serialize};

pub(crate) const SCHEMA: u32 = 1;

/// Nanoseconds.
pub(crate) type Nanos = u64;

pub(crate) const MILLI: Nanos = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) at: Nanos,
    pub(crate) by: String,
    #[serde(flatten)]
    pub(crate) event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    Run(Run),
    Start { claim: u64, resource: String },
    Refused { claim: u64, why: String },
    Granted { claim: u64, holder: String, deadline: Nanos, votes: usize, fence: u64 },
    Renewed { claim: u64, deadline: Nanos },
    Lowered { claim: u64, deadline: Nanos },
    AtRisk { claim: u64 },
    Lost { claim: u64, why: String, seen: Nanos },
    Enter { claim: u64 },
    Effect { claim: u64, op: Op, value: u64, fence: u64, ack: bool },
    Exit { claim: u64 },
    ReleaseCalled { claim: u64 },
    Released { claim: u64, outcome: String },
    Drop { claim: u64 },
    Stalled { since: Nanos },
    Applied { resource: String, client: String, claim: u64, op: Op, found: u64, value: u64, fence: u64 },
    TurnedAway { resource: String, client: String, claim: u64, op: Op, fence: u64, seen: u64 },
    Counter { resource: String, value: u64 },
    Fault { id: u64, word: String, on: Vec<String> },
    Healed { id: u64 },
    Skipped { id: u64, why: String },
    Floor { floor: u64, on: Vec<String> },
    Stopped,
    Left { master: String, key: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Op {
    Read,
    Write,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) schema: u32,
    pub(crate) seed: u64,
    pub(crate) clients: usize,
    pub(crate) masters: usize,
    pub(crate) ttl: Nanos,
    pub(crate) max_ttl: Nanos,
    pub(crate) drift: Nanos,
    pub(crate) fenced: bool,
    pub(crate) mutant: Option<String>,
    pub(crate) command: String,
    /// So many locks granted at least.
    pub(crate) grants: usize,
    /// So many of them asked for while another client held them, at least.
    pub(crate) contended: usize,
    /// Each of these, once at least.
    pub(crate) faults: Vec<String>,
    /// Overlaps that broken assumptions explain, at least.
    pub(crate) overlaps: usize,
}

/// A history as it was read. Nothing in a file makes the reading fail: what is no record is told.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) run: Run,
    pub(crate) records: Vec<Record>,
    pub(crate) complaints: Vec<String>,
}

impl History {
    pub(crate) fn parse(text: &[u8]) -> Self {
        let mut history = Self::default();
        let mut run = None;
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<Record>(line) {
                Ok(Record { event: Event::Run(first), .. }) if run.is_none() => run = Some(first),
                Ok(record) => history.records.push(record),
                Err(error) => history.complaints.push(format!("line {}: {error}", number + 1)),
            }
        }
        match run {
            Some(run) if run.schema == SCHEMA => history.run = run,
            Some(run) => {
                history.complaints.push(format!("schema {} where {SCHEMA} is understood", run.schema));
            }
            None => history.complaints.push("no line says what run this was".into()),
        }
        // Stable: what one process wrote in one nanosecond stays in its order.
        history.records.sort_by_key(|record| record.at);
        history
    }

    pub(crate) fn began(&self) -> Nanos {
        self.records.first().map_or(0, |record| record.at)
    }

    pub(crate) fn ended(&self) -> Nanos {
        self.records.last().map_or(0, |record| record.at)
    }
}
