//! D05, D06, D11, D12, D14, D16: how each master is set up.

use std::time::Duration;

use quorlock::{Abstention, MasterFacts, Policy, Survey, SurveyedMaster, Untold};

use super::finding::{Finding, Verdict};
use super::masters::seen;
use super::paste::{cli, is_valkey};
use crate::duration::show;
use crate::output::count;

pub(crate) fn restarts(survey: &Survey, policy: &Policy) -> Finding {
    let quarantine = policy.quarantine();
    let forgetful: Vec<String> = seen(survey)
        .filter(|(_, _, facts)| keeps_every_write(facts) != Some(true))
        .filter_map(|(name, _, _)| name.split(' ').next().map(str::to_owned))
        .collect();
    let sound = if forgetful.is_empty() {
        "all keep every write on disk".to_owned()
    } else {
        format!(
            "all have been up for longer than the longest ttl; after a restart, which {} can forget votes in, a master abstains \
             for {} (clients of other libraries do not wait for that)",
            forgetful.join(", "),
            show(quarantine)
        )
    };
    let mut finding = Finding::of("D05", sound);
    for (name, master, facts) in seen(survey).filter(|(_, _, facts)| facts.unfit.is_none()) {
        restart(&mut finding, &name, master, facts, quarantine);
    }
    let fit = || seen(survey).filter(|(_, _, facts)| facts.unfit.is_none());
    let needed = survey.quorum.needed();
    let voters = fit().filter(|(_, _, facts)| facts.abstains.is_none()).count();
    if fit().count() >= needed && voters < needed {
        let what = format!("{voters} vote, {needed} are needed: no lock can be had yet");
        finding.note(Verdict::Error, "masters", what);
    }
    finding
}

fn restart(
    finding: &mut Finding,
    name: &str,
    master: &SurveyedMaster,
    facts: &MasterFacts,
    quarantine: Duration,
) {
    match facts.abstains {
        None => {}
        Some(Abstention::Quarantined(left)) => {
            let what = format!("in quarantine: it abstains for {} more", show(left));
            finding.note(Verdict::Warning, name, what);
            let wait = left.as_secs() + 1;
            finding.fix(format!("sleep {wait}; quorlock doctor   # it votes by itself when that is over"));
        }
        Some(Abstention::NeverAdmitted) => {
            finding.note(Verdict::Warning, name, "no client has asked it to vote since it started");
            finding.fix(
                "quorlock init   # if nobody ever held a lock on them; otherwise the quarantine ends by itself",
            );
        }
    }
    let uptime = Duration::from_secs(facts.number("uptime_in_seconds").unwrap_or(u64::MAX));
    if uptime < quarantine && facts.abstains.is_none() {
        match keeps_every_write(facts) {
            Some(true) => {}
            Some(false) => {
                let what = "it started less than a longest ttl ago, and can have forgotten votes: we let it abstain, \
                            clients of other libraries do not";
                finding.note(Verdict::Warning, name, what);
                let settings = ["appendonly yes", "appendfsync always"];
                let commands = settings.map(|setting| cli(master, &format!("CONFIG SET {setting}")));
                finding.fix(commands.join(" && "));
            }
            None => {
                let what = "it started less than a longest ttl ago, and does not tell whether each write went to its disk";
                finding.note(Verdict::Unchecked, name, what);
                finding.fix(cli(master, "ACL SETUSER your-user +config|get   # only for this check"));
            }
        }
    }
    let is_broken = |field| facts.info(field) == Some("err");
    if is_broken("rdb_last_bgsave_status") || is_broken("aof_last_write_status") {
        finding.note(Verdict::Error, name, "it could not write to its disk, and so refuses writes (MISCONF)");
        finding.fix(cli(master, "INFO persistence"));
    }
}

/// `None` where it does not tell.
fn keeps_every_write(facts: &MasterFacts) -> Option<bool> {
    if facts.number("aof_enabled") != Some(1) {
        return Some(false);
    }
    let settings = facts.settings.as_ref().ok()?;
    Some(settings.get("appendfsync").is_some_and(|fsync| fsync == "always"))
}

pub(crate) fn eviction(survey: &Survey) -> Finding {
    let mut finding = Finding::of("D06", "no master evicts keys (maxmemory-policy noeviction)");
    for (name, master, facts) in seen(survey) {
        let limit = facts.number("maxmemory").unwrap_or(0);
        match facts.info("maxmemory_policy") {
            Some("noeviction") => {
                let used = facts.number("used_memory").unwrap_or(0);
                if limit > 0 && used > limit / 10 * 9 {
                    let what =
                        format!("{} % of its memory is used: it will refuse locks (OOM)", used * 100 / limit);
                    finding.note(Verdict::Warning, &name, what);
                    finding.fix(cli(master, "MEMORY STATS"));
                }
            }
            Some(policy) => {
                let evicted = facts.number("evicted_keys").unwrap_or(0);
                let what = if limit == 0 {
                    format!("{policy}, which evicts locks as soon as it gets a memory limit")
                } else {
                    format!(
                        "{policy} with a limit of {} MB: locks may be evicted ({evicted} keys were)",
                        limit >> 20
                    )
                };
                finding.note(if limit == 0 { Verdict::Warning } else { Verdict::Error }, &name, what);
                finding.fix(cli(master, "CONFIG SET maxmemory-policy noeviction"));
            }
            None => finding.note(Verdict::Unchecked, &name, "INFO does not tell its policy"),
        }
    }
    finding
}

pub(crate) fn stalls(survey: &Survey, policy: &Policy) -> Finding {
    let limit = policy.master_timeout();
    let mut finding =
        Finding::of("D11", format!("nothing held a master up for {} (the master timeout)", show(limit)));
    for (name, master, facts) in seen(survey) {
        match &facts.slowest {
            Ok(Some(took)) if *took >= limit => {
                finding.note(Verdict::Warning, &name, format!("a command took {}", show(*took)));
                finding.fix(cli(master, "SLOWLOG GET 10"));
            }
            Ok(_) => {}
            Err(untold) => unchecked(&mut finding, &name, master, "the SLOWLOG", untold),
        }
        let fork = Duration::from_micros(facts.number("latest_fork_usec").unwrap_or(0));
        if fork >= limit {
            finding.note(
                Verdict::Warning,
                &name,
                format!("its last fork, for a snapshot, took {}", show(fork)),
            );
            finding.fix(cli(master, "INFO stats"));
        }
    }
    finding
}

pub(crate) fn connections(survey: &Survey) -> Finding {
    let mut finding = Finding::of("D12", "room for more connections, and none is cut for being idle");
    for (name, master, facts) in seen(survey) {
        let (open, most) =
            (facts.number("connected_clients").unwrap_or(0), facts.number("maxclients").unwrap_or(0));
        if most > 0 && open * 10 > most * 8 {
            finding.note(Verdict::Warning, &name, format!("{open} of {most} connections are taken"));
            finding.fix(cli(master, "CLIENT LIST"));
        }
        match &facts.settings {
            Ok(settings) => {
                let idle = settings.get("timeout").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
                if idle > 0 {
                    finding.note(
                        Verdict::Warning,
                        &name,
                        format!("it closes connections that are idle for {idle} s"),
                    );
                    finding.fix(cli(master, "CONFIG SET timeout 0"));
                }
            }
            Err(untold) => unchecked(&mut finding, &name, master, "its setting `timeout`", untold),
        }
        match &facts.connections {
            Ok(lines) => {
                let monitors = lines.iter().filter(|line| line.contains(" flags=O")).count();
                if monitors > 0 {
                    let what = format!(
                        "{} listening by MONITOR, which costs it half of its throughput",
                        count(monitors, "connection")
                    );
                    finding.note(Verdict::Warning, &name, what);
                    finding.fix(cli(master, "CLIENT LIST"));
                }
            }
            Err(untold) => unchecked(&mut finding, &name, master, "CLIENT LIST", untold),
        }
    }
    finding
}

pub(crate) fn software(survey: &Survey) -> Finding {
    let versions: Vec<String> = seen(survey).map(|(_, _, facts)| version(facts)).collect();
    let native = seen(survey).filter(|(_, _, facts)| facts.deletes_by_itself == Ok(true)).count();
    let scripts = if native == versions.len() {
        "all can compare and delete by themselves (DELIFEQ)"
    } else {
        "compare-and-delete runs as a script, which is as atomic as a command"
    };
    let mut kinds = versions.clone();
    kinds.sort();
    kinds.dedup();
    let mut finding = Finding::of("D14", format!("{}; {scripts}", kinds.join(", ")));
    for (name, master, facts) in seen(survey) {
        if let Err(untold) = &facts.deletes_by_itself {
            unchecked(&mut finding, &name, master, "COMMAND INFO", untold);
        }
    }
    finding
}

/// `redis 7.0.15`.
pub(crate) fn version(facts: &MasterFacts) -> String {
    let valkey = facts.info("valkey_version").filter(|_| is_valkey(facts));
    match valkey {
        Some(version) => format!("valkey {version}"),
        None => format!("redis {}", facts.info("redis_version").unwrap_or("?")),
    }
}

pub(crate) fn replicas(survey: &Survey) -> Finding {
    let mut finding = Finding::of("D16", "no master has a replica that a failover could promote");
    for (name, master, facts) in seen(survey) {
        let replicas = facts.number("connected_slaves").unwrap_or(0);
        if replicas > 0 && facts.info("role") == Some("master") {
            let who: Vec<&str> =
                facts.infos("slave").filter(|(_, value)| value.contains("ip=")).map(|(_, v)| v).collect();
            let who = who.iter().filter_map(|line| address(line)).collect::<Vec<_>>();
            let what = format!(
                "{} attached ({}): promoted, it does not know the latest locks",
                count(replicas, "replica"),
                who.iter().map(|(host, port)| format!("{host}:{port}")).collect::<Vec<_>>().join(", ")
            );
            finding.note(Verdict::Warning, &name, what);
            for (host, port) in who {
                finding.fix(format!(
                    "redis-cli -h {host} -p {port} REPLICAOF NO ONE   # an independent server, not listed"
                ));
            }
        }
        let least = facts.settings.as_ref().ok().and_then(|settings| settings.get("min-replicas-to-write"));
        let least: u64 = least.and_then(|text| text.parse().ok()).unwrap_or(0);
        if least > 0 {
            let good = facts.number("min_slaves_good_slaves").unwrap_or(replicas);
            let (verdict, then) = if good < least {
                (Verdict::Error, "it has fewer, and refuses every lock (NOREPLICAS)")
            } else {
                (Verdict::Warning, "if it loses them, it refuses every lock")
            };
            finding.note(
                verdict,
                &name,
                format!("wants {least} replicas for each write (min-replicas-to-write): {then}"),
            );
            finding.fix(cli(master, "CONFIG SET min-replicas-to-write 0"));
        }
    }
    finding
}

/// Of `ip=127.0.0.1,port=6380,state=online,…`.
fn address(line: &str) -> Option<(&str, &str)> {
    let field = |name: &str| line.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    Some((field("ip")?, field("port")?))
}

/// What could not be looked at, and the right that would allow it.
pub(super) fn unchecked(
    finding: &mut Finding,
    name: &str,
    master: &SurveyedMaster,
    what: &str,
    untold: &Untold,
) {
    finding.note(Verdict::Unchecked, name, format!("cannot see {what}: {}", untold.why));
    if let Some(right) = untold.right {
        finding.fix(cli(master, &format!("ACL SETUSER your-user +{right}   # only for this check")));
    }
}
