//! How a master of a bed is, as it is told.

use std::io;

use serde::Serialize;

use crate::testbed::condition::Condition;
use crate::testbed::look::fields;
use crate::testbed::wire::Wire;

/// One master of a bed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MasterStatus {
    /// `m1` and so on.
    pub name: String,
    /// `redis://127.0.0.1:PORT`.
    pub url: String,
    /// Up, frozen, cut off or down.
    pub condition: Condition,
    /// Its process, unless down. In a container: as the engine's machine sees it.
    pub pid: Option<u32>,
    /// What it says of itself, if it is up.
    pub report: Option<Report>,
    /// Why it says nothing although it is up.
    pub trouble: Option<String>,
}

/// What a master says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// `master`, unless somebody made it a replica.
    pub role: String,
    /// Another one after each restart.
    pub run_id: String,
    /// Seconds since it started.
    pub uptime: u64,
    /// Bytes in use.
    pub memory: u64,
    /// The limit in bytes, 0 for none.
    pub memory_limit: u64,
    /// How many keys it has.
    pub keys: u64,
}

impl MasterStatus {
    /// Asks for the report if there may be one.
    pub(super) fn of(
        index: usize,
        url: String,
        condition: Condition,
        pid: Option<u32>,
        connect: impl FnOnce() -> io::Result<Wire>,
    ) -> Self {
        let report = (condition == Condition::Up).then(|| connect().and_then(|mut wire| report(&mut wire)));
        let (report, trouble) = match report {
            Some(Ok(report)) => (Some(report), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        Self { name: format!("m{}", index + 1), url, condition, pid, report, trouble }
    }
}

fn report(wire: &mut Wire) -> io::Result<Report> {
    let mut info = fields(&wire.command(&["INFO", "everything"])?)?;
    let keys = wire.command(&["DBSIZE"])?.integer().unwrap_or_default().unsigned_abs();
    let number = |name: &str| info.get(name).and_then(|value| value.parse().ok()).unwrap_or_default();
    Ok(Report {
        uptime: number("uptime_in_seconds"),
        memory: number("used_memory"),
        memory_limit: number("maxmemory"),
        keys,
        role: info.remove("role").unwrap_or_default(),
        run_id: info.remove("run_id").unwrap_or_default(),
    })
}
