//! What goes wrong when.

use std::time::Duration;

use quorlock::Redlock;
use quorlock::testbed::{Data, Fault};
use rustix::process::Signal;

use super::event::{Order, now};
use super::stage::{MAX_TTL, PATIENCE, Stage, TTL};
use super::worker::RESOURCE;
use crate::exit::Failure;

/// The master that is frozen, and the one that is killed.
const FROZEN: usize = 1;
const KILLED: usize = 3;

/// What the play has shown beside what is in the books.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// The master frozen and thawed; the one that forgot, in quarantine and back.
    pub(crate) thawed: bool,
    pub(crate) quarantined: bool,
    pub(crate) readmitted: bool,
    /// The holder that was frozen past its ttl refused to write.
    pub(crate) refused_after_thaw: bool,
    /// From the kill of a holder to the next entry.
    pub(crate) gap: Option<Duration>,
}

/// Plays for that many seconds, or longer where the machine is slow: each act waits until it shows.
pub(crate) async fn play(stage: &mut Stage, seconds: u64) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    let began = stage.story.elapsed(now());
    #[allow(clippy::cast_precision_loss, reason = "at most an hour")]
    let at = |share: f64| began + share * seconds as f64;

    stage.watch_until(at(0.08)).await?;
    stage.inject(FROZEN, Fault::Freeze).await?;
    stage.tell("m2 is frozen (SIGSTOP): it accepts, and never answers");

    stage.watch_until(at(0.16)).await?;
    stage.inject(KILLED, Fault::Kill).await?;
    stage.tell("m4 is killed (-9): three of five masters are left, just enough");

    stage.watch_until(at(0.24)).await?;
    stage.inject(KILLED, Fault::Restart(Data::Empty)).await?;
    stage.tell("m4 is back, empty: it forgot every lock");
    quarantine(stage, &mut seen, at(0.32)).await?;

    stage.watch_until(at(0.50)).await?;
    freeze_a_holder(stage, &mut seen).await?;
    stage.watch_until(at(0.70)).await?;
    kill_a_holder(stage, &mut seen).await?;

    stage.watch_until(at(1.0)).await?;
    stage.crew.stop().await;
    let left = stage.contenders() - stage.dead.len();
    stage.until("the contenders are done", |ledger| (ledger.finished() >= left).then_some(())).await?;
    stage.tell("the contenders are told to stop, and have");
    stage.story.clear();
    Ok(seen)
}

/// Follows m4 until it votes again; thaws m2 meanwhile.
async fn quarantine(stage: &mut Stage, seen: &mut Seen, thaw_at: f64) -> Result<(), Failure> {
    let m4 = Redlock::builder().masters([stage.master(KILLED)]);
    let late = stage.story.elapsed(now()) + PATIENCE.as_secs_f64();
    while !(seen.readmitted && seen.thawed) {
        if !seen.thawed && stage.story.elapsed(now()) >= thaw_at {
            stage.inject(FROZEN, Fault::Thaw).await?;
            seen.thawed = true;
            stage.tell("m2 is thawed: it answers what arrived meanwhile, too late to count");
        }
        if !seen.readmitted {
            // Whatever it is called: not asked to vote yet, or asked and waiting.
            let abstains = m4.inspect(RESOURCE).await?.sightings.pop().map(|sighting| sighting.abstains);
            match abstains {
                Some(Some(_)) if !seen.quarantined => {
                    seen.quarantined = true;
                    let longest = MAX_TTL.as_secs();
                    stage.tell(&format!("m4 is in quarantine: no vote for the longest ttl, {longest} s"));
                }
                Some(None) => {
                    seen.readmitted = true;
                    stage.tell("m4 votes again");
                }
                _ => {}
            }
        }
        if stage.story.elapsed(now()) > late {
            return Err(Failure::other(format!("m4 does not vote again after {} s", PATIENCE.as_secs())));
        }
        stage.watch(Duration::from_millis(50)).await?;
    }
    Ok(())
}

/// The next holder that was told to think on, while it does: until it is told to go on, it does not write.
async fn pondering(stage: &mut Stage) -> Result<usize, Failure> {
    let holder = stage.until("somebody holds the lock", |ledger| ledger.holder(now())).await?;
    stage.crew.order(holder, Order::Ponder).await?;
    stage.until("the holder thinks on", super::ledger::Ledger::pondering).await
}

async fn freeze_a_holder(stage: &mut Stage, seen: &mut Seen) -> Result<(), Failure> {
    let holder = pondering(stage).await?;
    let name = format!("contender {}", holder + 1);
    stage.crew.signal(holder, Signal::STOP)?;
    let frozen_at = now();
    stage.tell(&format!("{name} is frozen while it thinks, lock in hand"));
    let next = stage.until("another enters", |ledger| ledger.entered_after(frozen_at)).await?;
    let gap = Duration::from_nanos(next - frozen_at);
    stage.tell(&format!("its ttl ended, and another entered after {} ms", gap.as_millis()));

    stage.watch(TTL / 2).await?;
    let before = stage.ledger.refused_by(holder);
    stage.crew.order(holder, Order::GoOn).await?;
    stage.crew.signal(holder, Signal::CONT)?;
    stage.tell(&format!("{name} thaws, and wants to write what it had thought"));
    stage
        .until("the frozen holder has looked at its lock", |ledger| {
            (ledger.refused_by(holder) > before).then_some(())
        })
        .await?;
    seen.refused_after_thaw = true;
    stage.tell(&format!("{name} looked at its lock, found it over, and did not write"));
    Ok(())
}

async fn kill_a_holder(stage: &mut Stage, seen: &mut Seen) -> Result<(), Failure> {
    let holder = pondering(stage).await?;
    stage.dead.push(holder);
    stage.crew.kill(holder).await?;
    let killed_at = now();
    stage.ledger.killed(holder, killed_at);
    stage.tell(&format!("contender {} is killed (-9), lock in hand", holder + 1));
    let next = stage.until("another enters", |ledger| ledger.entered_after(killed_at)).await?;
    let gap = Duration::from_nanos(next - killed_at);
    seen.gap = Some(gap);
    stage.tell(&format!("its ttl ended, and another entered after {} ms", gap.as_millis()));
    Ok(())
}
