//! Masters that fail, and what a claim comes to meanwhile.

use std::time::{Duration, Instant};

use quorlock::testbed::{Data, Fault, LocalMaster, Testbed};
use quorlock::{Policy, Redlock};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::arms::Ours;
use super::super::report::{Row, Section};
use super::super::sums::quantile;
use super::super::ways::Ways;
use super::super::{keys, stop};
use super::contention::{Told, contend};
use super::set::Set;

/// Short, so that a master that restarted is not long in quarantine.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(2);
pub(crate) const TTL: Duration = Duration::from_millis(1_500);

/// How long the client may take to have all masters back.
const RECOVERY: Duration = Duration::from_secs(20);

/// What is wrong, with how many of the five, and whether a lock can be had.
const STATES: &[(&str, Wrong, usize)] = &[
    ("healthy", Wrong::Nothing, 0),
    ("one slow", Wrong::Slow, 1),
    ("two slow", Wrong::Slow, 2),
    ("one frozen", Wrong::Frozen, 1),
    ("two frozen", Wrong::Frozen, 2),
    ("one dead", Wrong::Dead, 1),
    ("one restarted empty", Wrong::Restarted, 1),
    ("two dead", Wrong::Dead, 2),
    ("two restarted empty", Wrong::Restarted, 2),
    ("three dead", Wrong::Dead, 3),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// 200 ms later.
    Slow,
    Frozen,
    Dead,
    /// Those that were dead are back without their data, and in quarantine.
    Restarted,
}

#[derive(Default)]
struct Seen {
    p50: Vec<f64>,
    p99: Vec<f64>,
    release: Vec<f64>,
    error: Vec<f64>,
    success: Vec<f64>,
}

pub(crate) async fn run(set: &mut Set) -> Result<Vec<Section>, String> {
    if !set.site.is_own() {
        set.skip("faults", "masters that are given are not broken: only without --masters");
        return Ok(Vec::new());
    }
    let bed = Testbed::start(5).map_err(|error| error.to_string())?;
    let ways = Ways::to(&bed.urls()).await?;
    let policy = Policy::new().with_max_ttl(MAX_TTL);
    let builder = Redlock::builder().masters(ways.urls()).policy(policy);
    builder.init().await.map_err(|error| error.to_string())?;
    let client = builder.connect().await.map_err(|error| error.to_string())?;
    recover(&client).await?;

    // Two who want one lock all the while, to see that never both have it.
    let mut rivals = JoinSet::new();
    let key = format!("{}rivals", keys::prefix());
    let (over, end) = tokio::sync::watch::channel(false);
    for _ in 0..2 {
        rivals.spawn(rival(client.clone(), key.clone(), end.clone()));
    }
    let mut seen: Vec<Seen> = STATES.iter().map(|_| Seen::default()).collect();
    let play = Play { bed: &bed, ways: &ways, client: &client };
    for _ in 0..set.pace.blocks(3, 1) {
        let first = set.chance.below(5);
        for ((_, wrong, count), seen) in STATES.iter().zip(&mut seen) {
            if stop::is_raised() {
                break;
            }
            play.state(*wrong, *count, first, set.pace.time(0.6, 0.2), seen).await?;
        }
    }
    let _ = over.send(true);
    let mut turns = Vec::new();
    while let Some(told) = rivals.join_next().await {
        turns.push(told.map_err(|error| error.to_string())?);
    }
    set.overlaps += Told::by(&turns).overlaps;
    let _ = client.close().await;
    Ok(vec![section(set, seen)])
}

fn section(set: &mut Set, seen: Vec<Seen>) -> Section {
    let note = "One task asks for a fresh lock, once each time; a claim that fails is not tried again. Two others contend for \
                one lock meanwhile. Behind proxies; slow is 200 ms. With three dead nobody can have the lock: what counts is \
                how soon that is said.";
    let mut section = Section::new("faults", "Masters that fail", note);
    for ((name, ..), seen) in STATES.iter().zip(seen) {
        let chance = &mut set.chance;
        section.rows.push(
            Row::new("", *name, "quorlock, five masters")
                .with("success", "%", seen.success, chance)
                .with("acquire p50", "µs", seen.p50, chance)
                .with("acquire p99", "µs", seen.p99, chance)
                .with("release p50", "µs", seen.release, chance)
                .with("error p50", "µs", seen.error, chance),
        );
    }
    section.compare("healthy", &["acquire p50", "acquire p99", "release p50"], &mut set.chance);
    section
}

async fn rival(
    client: Redlock,
    key: String,
    mut end: tokio::sync::watch::Receiver<bool>,
) -> Vec<super::contention::Turn> {
    let rival = Ours::of(client, TTL, true);
    let mut turns = Vec::new();
    while !*end.borrow_and_update() {
        let until = super::contention::now() + 200_000;
        turns.extend(contend(&rival, &key, until).await);
        if stop::is_raised() {
            break;
        }
    }
    turns
}

struct Play<'a> {
    bed: &'a Testbed,
    ways: &'a Ways,
    client: &'a Redlock,
}

impl Play<'_> {
    async fn state(
        &self,
        wrong: Wrong,
        count: usize,
        first: usize,
        time: Duration,
        seen: &mut Seen,
    ) -> Result<(), String> {
        let chosen: Vec<usize> = (first..first + count).map(|nth| nth % 5).collect();
        match wrong {
            Wrong::Nothing => {}
            Wrong::Slow => {
                let mut millis = [0.0; 5];
                chosen.iter().for_each(|nth| millis[*nth] = 200.0);
                self.ways.stretch(&millis, 0.0);
            }
            Wrong::Frozen => self.each(&chosen, |master| inject(master, Fault::Freeze))?,
            Wrong::Dead => {
                self.each(&chosen, |master| inject(master, Fault::Kill))?;
                for nth in &chosen {
                    self.ways.open(*nth, false).await;
                }
            }
            Wrong::Restarted => self.restart(&chosen).await?,
        }
        sleep(Duration::from_millis(5)).await;
        self.measure(time, seen).await;
        match wrong {
            Wrong::Nothing => return Ok(()),
            // The next state goes on from here, unless nothing follows.
            Wrong::Dead if count < 3 && !stop::is_raised() => return Ok(()),
            Wrong::Slow => self.ways.stretch(&[0.0; 5], 0.0),
            Wrong::Frozen => self.each(&chosen, |master| inject(master, Fault::Thaw))?,
            Wrong::Dead => self.restart(&chosen).await?,
            Wrong::Restarted => {}
        }
        recover(self.client).await
    }

    async fn restart(&self, chosen: &[usize]) -> Result<(), String> {
        self.each(chosen, |master| inject(master, Fault::Restart(Data::Empty)))?;
        for nth in chosen {
            self.ways.open(*nth, true).await;
        }
        Ok(())
    }

    fn each(&self, chosen: &[usize], act: impl Fn(&LocalMaster) -> Result<(), String>) -> Result<(), String> {
        chosen.iter().filter_map(|nth| self.bed.master(*nth)).try_for_each(act)
    }

    async fn measure(&self, time: Duration, seen: &mut Seen) {
        let mut key = String::new();
        let (mut granted, mut released, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let since = |then: Instant| u32::try_from(then.elapsed().as_nanos()).unwrap_or(u32::MAX);
        let began = Instant::now();
        while began.elapsed() < time && !stop::is_raised() {
            keys::fresh(&mut key);
            let asked = Instant::now();
            let claim = self.client.lock(&key).ttl(TTL).no_renewal().try_acquire().await;
            let took = since(asked);
            match claim {
                Ok(guard) => {
                    granted.push(took);
                    let began = Instant::now();
                    let _ = guard.release().await;
                    released.push(since(began));
                }
                Err(_) => refused.push(took),
            }
        }
        let all = (granted.len() + refused.len()).max(1);
        let micros =
            |samples: &mut Vec<u32>, q| (!samples.is_empty()).then(|| f64::from(quantile(samples, q)) / 1e3);
        seen.success.push(100.0 * granted.len() as f64 / all as f64);
        seen.p50.extend(micros(&mut granted, 0.5));
        seen.p99.extend(micros(&mut granted, 0.99));
        seen.release.extend(micros(&mut released, 0.5));
        seen.error.extend(micros(&mut refused, 0.5));
    }
}

pub(super) fn inject(master: &LocalMaster, fault: Fault) -> Result<(), String> {
    let outcome = master.inject(fault);
    if outcome.is_installed() { Ok(()) } else { Err(format!("{fault}: {outcome}")) }
}

/// Waits until a lock stands on all five masters again.
pub(super) async fn recover(client: &Redlock) -> Result<(), String> {
    let began = Instant::now();
    let mut key = String::new();
    loop {
        keys::fresh(&mut key);
        let votes = match client.lock(&key).ttl(TTL).no_renewal().try_acquire().await {
            Ok(guard) => {
                sleep(Duration::from_millis(10)).await;
                let votes = guard.votes();
                let _ = guard.release().await;
                votes
            }
            Err(_) => 0,
        };
        if votes == client.masters().len() || stop::is_raised() {
            return Ok(());
        }
        if began.elapsed() > RECOVERY {
            return Err(format!("only {votes} masters vote {} s after a fault ended", RECOVERY.as_secs()));
        }
        sleep(Duration::from_millis(20)).await;
    }
}
