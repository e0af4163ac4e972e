//! Which fault strikes when, whom, and for how long: drawn from a seed.

use std::time::Duration;

use crate::dice::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kill,
    RestartEmpty,
    RestartOld,
    ThreeAtOnce,
    Freeze,
    FreezeClient,
    KillClient,
    CutMinority,
    CutMajority,
    CutClient,
    LoseReplies,
    LoseRequests,
    Slow,
    Reset,
    Refuse,
    ClockSlew,
    OutOfMemory,
    PauseWrites,
    ScriptFlush,
    ClientKill,
    ClockStep,
    Flush,
    Evict,
    Del,
}

/// The words of `--fault`; those from `clock-step` on break an assumption of the promise.
pub(crate) const WORDS: [(&str, Kind); 24] = [
    ("kill", Kind::Kill),
    ("restart-empty", Kind::RestartEmpty),
    ("restart-old-snapshot", Kind::RestartOld),
    ("three-at-once", Kind::ThreeAtOnce),
    ("freeze", Kind::Freeze),
    ("freeze-client", Kind::FreezeClient),
    ("kill-client", Kind::KillClient),
    ("cut-minority", Kind::CutMinority),
    ("cut-majority", Kind::CutMajority),
    ("cut-client", Kind::CutClient),
    ("lose-replies", Kind::LoseReplies),
    ("lose-requests", Kind::LoseRequests),
    ("slow", Kind::Slow),
    ("reset", Kind::Reset),
    ("refuse", Kind::Refuse),
    ("clock-slew", Kind::ClockSlew),
    ("out-of-memory", Kind::OutOfMemory),
    ("pause-writes", Kind::PauseWrites),
    ("script-flush", Kind::ScriptFlush),
    ("client-kill", Kind::ClientKill),
    ("clock-step", Kind::ClockStep),
    ("flush", Kind::Flush),
    ("evict", Kind::Evict),
    ("del", Kind::Del),
];

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    pub(crate) const fn breaks_an_assumption(self) -> bool {
        matches!(self, Self::ClockStep | Self::Flush | Self::Evict | Self::Del)
    }

    /// What it can do shows only while somebody holds a lock, and another one waits for it.
    pub(crate) const fn needs_a_holder(self) -> bool {
        self.breaks_an_assumption() || matches!(self, Self::ThreeAtOnce)
    }

    pub(crate) const fn is_on_clients(self) -> bool {
        matches!(self, Self::FreezeClient | Self::KillClient | Self::CutClient)
    }

    /// Whom it strikes at least and at most, of five masters.
    const fn how_many(self) -> (u64, u64) {
        match self {
            Self::ThreeAtOnce | Self::CutMajority | Self::ClientKill => (3, 3),
            Self::Freeze | Self::CutMinority | Self::LoseReplies | Self::LoseRequests => (1, 2),
            Self::Refuse | Self::OutOfMemory | Self::PauseWrites => (1, 2),
            Self::Slow | Self::Reset | Self::ClockSlew => (1, 3),
            // All, so that an overlap is sure to come of it.
            Self::ScriptFlush | Self::ClockStep | Self::Flush | Self::Evict | Self::Del => (5, 5),
            _ => (1, 1),
        }
    }

    /// In thousandths of the ttl, at least and at most.
    const fn how_long(self) -> (u64, u64) {
        match self {
            // Past the deadline of whoever is stopped, often.
            Self::FreezeClient => (500, 1_500),
            Self::CutMajority | Self::CutClient => (400, 1_200),
            Self::ClockSlew => (600, 1_300),
            Self::Evict => (100, 200),
            Self::ThreeAtOnce
            | Self::Reset
            | Self::ScriptFlush
            | Self::ClientKill
            | Self::Flush
            | Self::Del => (0, 0),
            _ => (200, 700),
        }
    }
}

/// `kept`: all that keep the assumptions. `broken`: all that break one. `all`.
pub(crate) fn kinds(words: &[String]) -> Result<Vec<Kind>, String> {
    let mut kinds = Vec::new();
    for word in words {
        let matching = |(name, kind): &(&str, Kind)| match word.as_str() {
            "all" => true,
            "kept" => !kind.breaks_an_assumption(),
            "broken" => kind.breaks_an_assumption(),
            word => *name == word,
        };
        let before = kinds.len();
        kinds.extend(WORDS.iter().filter(|entry| matching(entry)).map(|(_, kind)| *kind));
        if kinds.len() == before {
            let known = WORDS.map(|(word, _)| word).join(", ");
            return Err(format!("unknown fault {word:?}: kept, broken, all, none, or some of {known}"));
        }
    }
    Ok(kinds)
}

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) after: Duration,
    pub(crate) lasts: Duration,
    pub(crate) kind: Kind,
    /// Masters or clients, from 0.
    pub(crate) on: Vec<usize>,
}

/// A master that restarted abstains for the longest ttl; more often than this, and nobody would hold anything.
const GAP: Duration = Duration::from_millis(950);
/// Everybody should be at work when it begins, and done with what it did to them when it ends.
const BEFORE: Duration = Duration::from_millis(800);
const AFTER: Duration = Duration::from_millis(1_500);

/// Every kind once, in any order, then all again, for as long as time is left; at least once.
pub(crate) fn draw(
    dice: &mut Dice,
    kinds: &[Kind],
    length: Duration,
    ttl: Duration,
    clients: usize,
) -> Vec<Planned> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let room = length.saturating_sub(BEFORE + AFTER);
    let rounds = (room.as_millis() / (GAP.as_millis() * kinds.len() as u128)).max(1) as usize;
    let gap = room / (rounds * kinds.len()) as u32;
    let orders = (0..rounds).flat_map(|_| dice.some(kinds.len(), kinds.len())).collect::<Vec<_>>();
    let planned = orders.into_iter().enumerate().map(|(number, index)| {
        let kind = kinds[index];
        let jitter = gap * dice.between(0, 50) as u32 / 100;
        let ((least, most), (shortest, longest)) = (kind.how_many(), kind.how_long());
        let number_struck = dice.between(least, most) as usize;
        Planned {
            after: BEFORE + gap * number as u32 + jitter,
            lasts: ttl * dice.between(shortest, longest) as u32 / 1_000,
            kind,
            on: dice.some(number_struck, if kind.is_on_clients() { clients } else { 5 }),
        }
    });
    planned.collect()
}
