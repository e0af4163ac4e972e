//! Where it was measured, and what else went on there.

use std::fmt;
use std::fs::read_to_string;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::slice::cpu_time;

/// Ticks a second of the times in `/proc`, on every Linux there is.
const TICKS: f64 = 100.0;

/// Looks at the machine's CPUs while we measure.
#[derive(Debug)]
pub(crate) struct Watch {
    began: Instant,
    load: String,
    busy: f64,
    ours: f64,
    /// Of the masters on this machine that are ours.
    pids: Vec<u32>,
}

/// The environment line.
#[derive(Debug)]
pub(crate) struct Machine {
    cores: usize,
    cpu: String,
    kernel: String,
    load: String,
    /// Of all cores, in percent: what neither we nor our masters used.
    others: f64,
    server: String,
    rustc: String,
    runtime: &'static str,
}

impl Watch {
    pub(crate) fn begin(pids: Vec<u32>) -> Self {
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split_whitespace().next().unwrap_or("?").to_owned();
        Self { began: Instant::now(), load, busy: busy(), ours: ours(&pids), pids }
    }

    /// `server`: what answers, as `redis 7.0.15 × 5`.
    pub(crate) fn end(self, server: String, runtime: &'static str) -> Machine {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let available = self.began.elapsed().as_secs_f64() * cores as f64;
        let others = (busy() - self.busy) - (ours(&self.pids) - self.ours);
        let rustc = Command::new("rustc").arg("--version").output();
        let rustc = rustc
            .map_or_else(|_| "rustc ?".into(), |told| String::from_utf8_lossy(&told.stdout).into_owned());
        Machine {
            cores,
            cpu: cpu_model(),
            kernel: read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            load: self.load,
            others: (100.0 * others / available).max(0.0),
            server,
            rustc: rustc.split(" (").next().unwrap_or_default().trim().to_owned(),
            runtime,
        }
    }
}

fn busy() -> f64 {
    let stat = read_to_string("/proc/stat").unwrap_or_default();
    let total = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = total.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq
    [0, 1, 2, 5, 6].iter().filter_map(|nth| ticks.get(*nth)).sum::<f64>() / TICKS
}

fn ours(pids: &[u32]) -> f64 {
    let server = |pid: &u32| {
        let stat = read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        let ticks = |nth| after_name.split(' ').nth(nth).and_then(|word| word.parse::<f64>().ok());
        (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS
    };
    cpu_time().as_secs_f64() + pids.iter().map(server).sum::<f64>()
}

fn cpu_model() -> String {
    let cpus = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or("?", |(_, name)| name).to_owned()
}

impl Machine {
    pub(crate) fn json(&self) -> Value {
        json!({
            "cores": self.cores, "cpu": self.cpu, "kernel": self.kernel, "load": self.load,
            "others_percent": self.others, "server": self.server, "rustc": self.rustc, "runtime": self.runtime,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, cpu, kernel, load, others, server, rustc, runtime } = self;
        write!(
            f,
            "{cores} cores ({cpu}), Linux {kernel}, {server}, {rustc}, {runtime}; load before {load}, \
             others used {others:.0} % of the cores"
        )
    }
}

/// The name of a server, from its INFO.
pub(crate) fn server(info: &str) -> String {
    let told = |key: &str| info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    match told("valkey_version") {
        Some(version) => format!("valkey {}", version.trim()),
        None => format!("redis {}", told("redis_version").unwrap_or("?").trim()),
    }
}
