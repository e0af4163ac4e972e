//! What a holder-to-be sees while masters freeze and thaw.

use std::time::{Duration, Instant};

use quorlock::testbed::{Fault, Testbed};
use quorlock::{Policy, Redlock};
use tokio::time::sleep;

use super::super::bare::{BareFred, Manner};
use super::super::contender::Contender;
use super::super::report::{Dot, Row, Section};
use super::super::{keys, stop};
use super::faults::{MAX_TTL, TTL, inject, recover};
use super::set::Set;

/// Between two claims of one row.
const PAUSE: Duration = Duration::from_millis(8);

/// A claim that took so long made its caller wait.
const STALL: f64 = 50.0;

pub(crate) async fn run(set: &mut Set) -> Result<Vec<Section>, String> {
    if !set.site.is_own() {
        set.skip("timeline", "masters that are given are not broken: only without --masters");
        return Ok(Vec::new());
    }
    let bed = Testbed::start(5).map_err(|error| error.to_string())?;
    let urls = bed.urls();
    let builder = Redlock::builder().masters(&urls).policy(Policy::new().with_max_ttl(MAX_TTL));
    builder.init().await.map_err(|error| error.to_string())?;
    let client = builder.connect().await.map_err(|error| error.to_string())?;
    recover(&client).await?;
    let single = BareFred::connect(&urls[..1], Manner::Limited).await?;

    let time = set.pace.time(9.0, 2.0);
    let began = Instant::now();
    let ours = watch(began, time, async |key| {
        let guard = client.lock(key).ttl(TTL).no_renewal().try_acquire().await.ok()?;
        Some(async move { drop(guard.release().await) })
    });
    let theirs = watch(began, time, async |key| {
        let lock = single.acquire(key).await.ok()?;
        let single = &single;
        Some(async move { drop(single.release(lock).await) })
    });
    let break_two = async {
        sleep(time / 3).await;
        let from = began.elapsed().as_secs_f64();
        let frozen = bed.masters().iter().take(2).try_for_each(|master| inject(master, Fault::Freeze));
        sleep(time / 3).await;
        let thawed = bed.masters().iter().take(2).try_for_each(|master| inject(master, Fault::Thaw));
        frozen.and(thawed).map(|()| (from, began.elapsed().as_secs_f64()))
    };
    let (ours, theirs, fault) = tokio::join!(ours, theirs, break_two);
    let note = "A claim every 8 ms. Two of the five masters are frozen in the middle third, the single one among them; its \
                client gives up after 500 ms.";
    let mut section = Section::new("timeline", "Through a fault and out of it", note);
    section.fault = Some(fault?);
    for (nth, (name, what, dots)) in
        [("quorlock", "this library, 3 of 5 masters", ours), ("single", "bare fred, one master", theirs)]
            .into_iter()
            .enumerate()
    {
        let failed = dots.iter().filter(|dot| !dot.ok).count() as f64;
        let stalled = dots.iter().filter(|dot| dot.millis >= STALL).count() as f64;
        let slowest = dots.iter().map(|dot| dot.millis).fold(0.0, f64::max);
        let chance = &mut set.chance;
        section.rows.push(
            Row::new("", name, what)
                .with("claims", "", vec![dots.len() as f64], chance)
                .with("failed", "", vec![failed], chance)
                .with("over 50 ms", "", vec![stalled], chance)
                .with("slowest", "ms", vec![slowest], chance),
        );
        section.dots.extend(dots.into_iter().map(|dot| Dot { row: nth as u8, ..dot }));
    }
    let _ = client.close().await;
    single.close().await;
    Ok(vec![section])
}

async fn watch<R: Future<Output = ()>>(
    began: Instant,
    time: Duration,
    mut claim: impl AsyncFnMut(&str) -> Option<R>,
) -> Vec<Dot> {
    let (mut key, mut dots) = (String::new(), Vec::new());
    while began.elapsed() < time && !stop::is_raised() {
        keys::fresh(&mut key);
        let asked = Instant::now();
        let at = (asked - began).as_secs_f64();
        let release = claim(&key).await;
        let millis = asked.elapsed().as_secs_f64() * 1e3;
        dots.push(Dot { row: 0, at, millis, ok: release.is_some() });
        if let Some(release) = release {
            release.await;
        }
        sleep(PAUSE).await;
    }
    dots
}
