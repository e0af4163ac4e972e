//! A way through worlds, told in words.

use std::fmt::Write as _;

use quorlock::protocol::attempt::Stage;
use quorlock::protocol::fanout::Act;
use quorlock::protocol::votes::{Fault, Vote};

use super::row::{BEGINNING, Row, TICK};
use super::step::{Step, take};
use super::world::World;

/// One line a step.
pub(crate) fn tell(row: &Row, steps: &[Step]) -> String {
    let mut world = World::new(row);
    let mut text = String::new();
    for (nth, step) in steps.iter().enumerate() {
        let (after, effect) = take(row, &world, *step);
        let said = effect.said.as_ref().map(|(act, vote)| (act_name(*act), vote_name(vote)));
        let (act, vote) = said.unwrap_or_default();
        let line = match *step {
            Step::Start => format!("{} asks every master", name(world.lives.len())),
            Step::ReadClock(life) => format!("{} reads the clock", name(life)),
            Step::Execute(life, master, _) if vote.is_empty() => {
                format!("m{} finds the key to be {}'s", master + 1, name(life))
            }
            Step::Execute(life, master, _) => {
                format!("m{} executes {}'s {act}: {vote}", master + 1, name(life))
            }
            Step::Repeat(life, master) => {
                format!("m{} executes {}'s {act}: {vote}, and gets it once more", master + 1, name(life))
            }
            Step::Haunt(life, master, _) => {
                format!("m{} executes {}'s {act} of a broken connection: {vote}", master + 1, name(life))
            }
            Step::Hear(life, master, _) => {
                format!("{} hears of m{} on its {act}: {vote}", name(life), master + 1)
            }
            Step::GiveUp(life, master) => {
                format!("{} waits no longer for m{} on its {act}: {vote}", name(life), master + 1)
            }
            Step::Break(life, master) => format!("{} loses its connection to m{}", name(life), master + 1),
            Step::Connect(life, master) => format!("{} connects to m{} again", name(life), master + 1),
            Step::Extend(life, false) => format!("{} extends", name(life)),
            Step::Extend(life, true) => format!("{} extends by a short ttl", name(life)),
            Step::Release(life) => format!("{} releases", name(life)),
            Step::Abandon(life) => format!("{} gives up", name(life)),
            Step::Wake(life) => format!("{} is told the time", name(life)),
            Step::Tick => format!("time passes: {}", (after.now - BEGINNING) / TICK),
            Step::Restart(master, true) => format!("m{} restarts with its data", master + 1),
            Step::Restart(master, false) => format!("m{} restarts empty", master + 1),
            Step::Forget(master) => format!("m{} forgets the key", master + 1),
            Step::Expire(master) => format!("m{}'s key expires a little early", master + 1),
            Step::ReadCounters(master) => format!("m{} is told the greatest of others' counters", master + 1),
            Step::Recover(master) => format!("m{} takes part in fencing again", master + 1),
            Step::Bump(master) => format!("m{}'s counter rises for another lock", master + 1),
            Step::Replay(life, master) => {
                format!("m{} executes {}'s {act} once more: {vote}", master + 1, name(life))
            }
            Step::Readmit(master) => format!("m{} votes again a little early", master + 1),
        };
        let changes: String =
            (0..after.lives.len()).filter_map(|life| change(&world, &after, life)).collect();
        let _ = writeln!(text, "{:>4}. {line}{changes}", nth + 1);
        world = after;
    }
    text
}

fn change(before: &World, after: &World, nth: usize) -> Option<String> {
    let life = &after.lives[nth];
    let past = before.lives.get(nth);
    let deadline = |life: &super::world::Life| life.machine.deadline().filter(|_| !life.clockless);
    let (old, new) = (past.and_then(|life| deadline(life)), deadline(life));
    if new.is_some() && new != old {
        let until = (new?.as_nanos() - BEGINNING) / TICK;
        let token = life.token().map(|token| format!(" with token {token}")).unwrap_or_default();
        return Some(format!("; {} holds until {until}{token}", name(nth)));
    }
    if past?.machine.stage() == life.machine.stage() {
        return None;
    }
    let became = match life.machine.stage() {
        Stage::Failed => "has failed",
        Stage::Lost(_) => "has lost the lock",
        Stage::Released => "holds no more",
        _ => return None,
    };
    Some(format!("; {} {became}", name(nth)))
}

fn name(life: usize) -> char {
    char::from(b'A' + life as u8)
}

const fn act_name(act: Act) -> &'static str {
    match act {
        Act::Claim | Act::Watch => "claim",
        Act::Raise => "raise",
        Act::Renew => "renewal",
        Act::Heal => "heal",
        Act::Release => "delete",
        Act::QueueUp | Act::Overtake | Act::Leave => "place in line",
    }
}

const fn vote_name(vote: &Vote) -> &'static str {
    match vote {
        Vote::Granted => "yes",
        Vote::Held(_) => "another's",
        Vote::Absent => "no key",
        Vote::Failed(Fault::Quarantined(_)) => "abstains",
        Vote::Failed(_) => "not applied",
        Vote::Unknown(_) => "nobody knows",
    }
}
