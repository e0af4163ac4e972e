//! D01 to D04: who is there, and whether these masters make a quorum.

use std::time::Duration;

use quorlock::{Contact, MasterFacts, Place, Policy, Survey, SurveyedMaster};

use super::finding::{Finding, Verdict};
use super::paste::cli;
use crate::duration::show;

/// How many masters can be counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Ok,
    Degraded,
    NoSpare,
    NoQuorum,
}

impl Health {
    /// Of `up` masters that can vote, each counted once.
    pub(crate) fn of(survey: &Survey, up: usize) -> Self {
        let (masters, needed) = (survey.quorum.masters(), survey.quorum.needed());
        match up {
            up if up < needed => Self::NoQuorum,
            up if up == needed => Self::NoSpare,
            up if up < masters => Self::Degraded,
            _ => Self::Ok,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::NoSpare => "no_spare",
            Self::NoQuorum => "no_quorum",
        }
    }
}

/// `m3 127.0.0.1:6379`.
pub(crate) fn name(nth: usize, master: &SurveyedMaster) -> String {
    format!("m{} {}", nth + 1, master.master)
}

/// The masters that answered, with their names.
pub(crate) fn seen(survey: &Survey) -> impl Iterator<Item = (String, &SurveyedMaster, &MasterFacts)> {
    let named = survey.masters.iter().enumerate().map(|(nth, master)| (name(nth, master), master));
    named.filter_map(|(name, master)| Some((name, master, master.facts.as_ref().ok()?)))
}

/// How many distinct servers can vote, now or when their quarantine is over.
pub(crate) fn up(survey: &Survey) -> usize {
    let mut run_ids: Vec<&str> = seen(survey)
        .filter(|(_, _, facts)| facts.unfit.is_none())
        .filter_map(|(_, _, facts)| facts.info("run_id"))
        .collect();
    run_ids.sort_unstable();
    run_ids.dedup();
    run_ids.len()
}

pub(crate) fn slowest(facts: &MasterFacts) -> Duration {
    facts.round_trips.last().copied().unwrap_or_default()
}

pub(crate) fn reachable(survey: &Survey, policy: &Policy) -> Finding {
    let limit = policy.master_timeout();
    let masters = survey.quorum.masters();
    let worst = seen(survey).map(|(_, _, facts)| slowest(facts)).max().unwrap_or_default();
    let sound = format!(
        "{masters} of {masters} answer, within {} against a master timeout of {}",
        show(worst),
        show(limit)
    );
    let mut finding = Finding::of("D01", sound);
    let health = Health::of(survey, up(survey));
    let grave = matches!(health, Health::NoSpare | Health::NoQuorum);
    for (nth, master) in survey.masters.iter().enumerate() {
        let name = name(nth, master);
        match &master.facts {
            Err(why) => {
                finding.note(if grave { Verdict::Error } else { Verdict::Warning }, &name, why);
                finding.fix(cli(master, "PING"));
            }
            Ok(facts) if facts.number("loading") == Some(1) => {
                let eta = facts.info("loading_eta_seconds").unwrap_or("some");
                finding.note(Verdict::Warning, &name, format!("it loads its data, for {eta} s more"));
                finding.fix(cli(master, "INFO persistence"));
            }
            Ok(facts) if slowest(facts) > limit / 2 => {
                let what = format!(
                    "a round trip took {}, more than half of the master timeout",
                    show(slowest(facts))
                );
                finding.note(Verdict::Warning, &name, what);
                let enough = (slowest(facts) * 4).as_millis();
                finding.fix(format!(
                    "quorlock --master-timeout {enough}ms doctor   # the same for every client"
                ));
            }
            Ok(_) => {}
        }
    }
    finding
}

pub(crate) fn roles(survey: &Survey) -> Finding {
    let mut finding = Finding::of("D02", "each that answers is a master");
    for (name, master, facts) in seen(survey) {
        let role = facts.info("role").unwrap_or_default();
        if role == "master" || is_sentinel(facts) {
            continue;
        }
        let of = match (facts.info("master_host"), facts.info("master_port")) {
            (Some(host), Some(port)) => {
                let listed = survey.masters.iter().position(|other| is_at(&other.contact, host, port));
                let listed = listed.map(|nth| format!(", which is m{}", nth + 1)).unwrap_or_default();
                format!("a replica of {host}:{port}{listed}")
            }
            _ => format!("its role is {role:?}"),
        };
        finding.note(Verdict::Error, &name, format!("{of}: it forgets what its master granted"));
        finding.fix(cli(master, "REPLICAOF NO ONE"));
    }
    finding
}

fn is_at(contact: &Contact, host: &str, port: &str) -> bool {
    matches!(&contact.place, Place::Tcp { host: h, port: p } if h == host && p.to_string() == port)
}

fn is_sentinel(facts: &MasterFacts) -> bool {
    facts.info("redis_mode") == Some("sentinel")
}

pub(crate) fn distinct(survey: &Survey) -> Finding {
    let mut finding = Finding::of("D03", "each that answers is a server of its own");
    let mut known: Vec<(&str, String)> = Vec::new();
    for (name, _, facts) in seen(survey) {
        let Some(run_id) = facts.info("run_id") else { continue };
        match known.iter().find(|(other, _)| *other == run_id) {
            Some((_, first)) => {
                finding.note(
                    Verdict::Error,
                    &name,
                    format!("the same server as {first}: it would vote twice"),
                );
                finding.fix(
                    "export QUORLOCK_MASTERS=redis://m1:6379,redis://m2:6379,redis://m3:6379,redis://m4:6379,\
                     redis://m5:6379   # each server once",
                );
            }
            None => known.push((run_id, name)),
        }
    }
    finding
}

pub(crate) fn fleet(survey: &Survey) -> Finding {
    let quorum = survey.quorum;
    let (masters, spare) = (quorum.masters(), quorum.spare());
    let sound = format!("{masters} independent masters, of which {spare} may fail");
    let mut finding = Finding::of("D04", sound);
    const FIVE: &str = "quorlock --masters redis://m1:6379,redis://m2:6379,redis://m3:6379,redis://m4:6379,\
                        redis://m5:6379 doctor";
    if masters < 3 {
        let what = format!("{masters}: none may fail, so that a lock is no safer than on one server");
        finding.note(Verdict::Error, "masters", what);
        finding.fix(FIVE);
    } else if masters % 2 == 0 {
        let what = format!("{masters}: an even number tolerates no more failures than one fewer");
        finding.note(Verdict::Warning, "masters", what);
        finding.fix(FIVE);
    }
    for (name, master, facts) in seen(survey) {
        if facts.number("cluster_enabled") == Some(1) {
            finding.note(Verdict::Error, &name, "a member of a cluster: its failover forgets locks");
            finding.fix(cli(master, "CLUSTER NODES"));
        } else if is_sentinel(facts) {
            finding.note(
                Verdict::Error,
                &name,
                "a Sentinel: it keeps no keys, and the master behind it changes",
            );
            finding.fix(cli(master, "SENTINEL MASTERS"));
        }
    }
    let databases: Vec<u8> = survey.masters.iter().map(|master| master.contact.database).collect();
    if let Some(nth) = databases.iter().position(|database| *database != databases[0]) {
        let what = format!(
            "m1 is used with database {}, m{} with {}: two clients that differ in that exclude nobody",
            databases[0],
            nth + 1,
            databases[nth]
        );
        finding.note(Verdict::Warning, "masters", what);
        finding.fix("grep -r 'redis://' .   # every client: the same database in each URL");
    }
    finding
}
