//! What the masters count while leases are renewed, and what this process spends.

use std::time::Duration;

use quorlock::testbed::{LocalMaster, Reply, Testbed};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::Failure;

/// Calls longer than this are noted by the masters.
const SLOW_US: u64 = 1_000;

/// The difference between two looks.
pub(crate) struct Count {
    cpu: Duration,
    time: Duration,
    /// Of the first master, which is never frozen.
    renewals: u64,
    calls: u64,
    call_us: u64,
    /// Of all that can be asked, how long the slow calls of scripts took, in microseconds.
    slow: Vec<u64>,
}

impl Count {
    pub(crate) async fn while_(bed: &Testbed, work: impl Future<Output = ()>) -> Result<Self, Failure> {
        let first = bed.master(0).ok_or("no master")?;
        let up = || bed.masters().iter().filter(|master| master.command(&["PING"]).is_ok());
        for master in up() {
            master.command(&["CONFIG", "SET", "slowlog-log-slower-than", &SLOW_US.to_string()])?;
            master.command(&["SLOWLOG", "RESET"])?;
        }
        let (began, cpu, before) = (std::time::Instant::now(), cpu(), Stats::of(first)?);
        work.await;
        let (cpu, after) = (self::cpu().saturating_sub(cpu), Stats::of(first)?);
        let time = began.elapsed();
        let mut slow = Vec::new();
        for master in up() {
            slow.extend(slow_scripts(&master.command(&["SLOWLOG", "GET", "-1"])?));
        }
        slow.sort_unstable();
        Ok(Self {
            cpu,
            time,
            renewals: after.renewals - before.renewals,
            calls: after.calls - before.calls,
            call_us: after.call_us - before.call_us,
            slow,
        })
    }

    pub(crate) fn tell(&self, row: &mut Value) {
        let each = |sum: f64, of: u64| (100.0 * sum / of.max(1) as f64).round() / 100.0;
        row["seconds"] = json!(self.time.as_secs());
        row["renewals"] = json!(self.renewals);
        row["client_cpu_us_per_renewal"] = json!(each(self.cpu.as_secs_f64() * 1e6, self.renewals));
        row["renewals_per_call"] = json!(each(self.renewals as f64, self.calls));
        row["server_us_per_call"] = json!(each(self.call_us as f64, self.calls));
        row["calls_over_1_ms"] = json!(self.slow.len());
        row["slowest_us"] = json!(self.slow.last());
    }
}

struct Stats {
    renewals: u64,
    calls: u64,
    call_us: u64,
}

impl Stats {
    fn of(master: &LocalMaster) -> Result<Self, Failure> {
        let info = master.info()?;
        let stat = |command: &str, field: &str| -> u64 {
            let text = info.get(&format!("cmdstat_{command}")).map_or("", String::as_str);
            let value = text.split(',').find_map(|part| part.strip_prefix(field)?.strip_prefix('='));
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        // Each renewal looks at the key once; rslock's does it in a script of its own.
        let calls = stat("evalsha", "calls") + stat("eval", "calls");
        Ok(Self {
            renewals: stat("get", "calls"),
            calls,
            call_us: stat("evalsha", "usec") + stat("eval", "usec"),
        })
    }
}

/// Entries are number, time, microseconds, words and more.
fn slow_scripts(log: &Reply) -> Vec<u64> {
    let Reply::Array(entries) = log else { return Vec::new() };
    let script = |entry: &Reply| {
        let Reply::Array(fields) = entry else { return None };
        let Some(Reply::Array(words)) = fields.get(3) else { return None };
        let is_script = words.first()?.text()?.to_uppercase().starts_with("EVAL");
        u64::try_from(fields.get(2)?.integer()?).ok().filter(|_| is_script)
    };
    entries.iter().filter_map(script).collect()
}

/// User and system, all threads.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
