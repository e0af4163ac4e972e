//! What must never be seen, and what must be seen lest a search of nothing pass.

use quorlock::protocol::attempt::{Loss, Stage};
use quorlock::protocol::fanout::Act;
use quorlock::protocol::news::News;
use quorlock::protocol::verdict::Verdict;
use quorlock::protocol::votes::Vote;

use super::row::{Habit, Row};
use super::step::Effect;
use super::world::{Life, World};

/// What holds in every world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// At most one attempt is valid.
    Exclusion,
    /// Nobody else was valid between two moments at which one is.
    Continuity,
    /// Once lost, or once its deadline passed, an attempt is never valid again.
    StickyLoss,
    /// When everybody is done and nothing is under way, no key stands but one that is to be deleted again.
    NoGhost,
    /// Who is valid has its key on w masters, those in quarantine counted.
    Backing,
    /// A claim is won while it is valid.
    TimelyWin,
    /// Tokens differ, and rise from who has won to who begins then; under exclusion, from holder to holder.
    TokenOrder,
}

impl Promise {
    const ALL: [Self; 7] = [
        Self::TokenOrder,
        Self::Exclusion,
        Self::StickyLoss,
        Self::Continuity,
        Self::Backing,
        Self::TimelyWin,
        Self::NoGhost,
    ];
}

/// What can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Won,
    Contended,
    NoQuorum,
    TooLate,
    Expired,
    Vanished,
    Extended,
    Recovered,
    Healed,
    Freed,
    /// One holds, and another held before.
    HandedOn,
    /// One holds while another waits for its answers: exclusion is put to the test.
    Rivalry,
    /// One holds with a master in quarantine.
    HeldInQuarantine,
    /// One holds with a key of somebody else on a master.
    HeldBesideAnother,
    /// A grant to a claim that had won on others.
    Straggler,
    /// A grant or confirmation after the end, by which a lease might be revived.
    LateYes,
    /// A key set by a connection that had broken.
    LateExecution,
    /// All is over and no key stands.
    Quiet,
    /// A token in one round, and in two; the second of two.
    TokenAtOnce,
    TokenRaised,
    TokenAfterToken,
    /// A master that lost its counter takes part again.
    CountsAgain,
}

/// A set of sights, and a win without validity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) sights: u32,
    late_win: bool,
}

impl Seen {
    pub(crate) fn note(&mut self, sight: Sight, seen: bool) {
        self.sights |= u32::from(seen) << sight as u32;
    }

    pub(crate) fn hear(&mut self, news: News, verdict: Option<Verdict>, life: &Life, now: u64) {
        let stage = life.machine.stage();
        let fell = |which| news.verdict && verdict == Some(which);
        self.late_win |= fell(Verdict::Won) && !life.is_valid(now);
        let sights = [
            (Sight::Won, fell(Verdict::Won)),
            (Sight::Contended, fell(Verdict::Contended)),
            (Sight::NoQuorum, fell(Verdict::NoQuorum)),
            (Sight::TooLate, fell(Verdict::TooLate)),
            (Sight::Expired, news.lost && stage == Stage::Lost(Loss::Expired)),
            (Sight::Vanished, news.lost && stage == Stage::Lost(Loss::Vanished)),
            (Sight::Extended, news.renewed && news.deadline && stage == Stage::Held),
            (Sight::Recovered, news.recovered),
            (Sight::Healed, news.healed),
            (Sight::Freed, news.released),
        ];
        sights.into_iter().for_each(|(sight, seen)| self.note(sight, seen));
    }

    pub(crate) fn answered(&mut self, life: &Life, act: Act, vote: &Vote) {
        let yes = *vote == Vote::Granted && act != Act::Release;
        let stage = life.machine.stage();
        self.note(Sight::Straggler, yes && act == Act::Claim && stage == Stage::Held);
        self.note(Sight::LateYes, yes && life.is_over());
    }
}

impl World {
    /// Keeps what the promises need to know of the past, and what was seen.
    pub(crate) fn observe(&mut self, row: &Row, before: &Self, effect: &mut Effect) {
        let now = self.now;
        let seen = &mut effect.seen;
        let valid: Vec<usize> = (0..self.lives.len()).filter(|nth| self.lives[*nth].is_valid(now)).collect();
        for nth in &valid {
            if !self.lives[*nth].held {
                self.life(*nth).held = true;
                let others = self.lives.iter().enumerate().filter(|(other, _)| other != nth);
                seen.note(Sight::HandedOn, others.clone().any(|(_, life)| life.held));
                for other in others.filter(|(_, life)| life.held).map(|(other, _)| other).collect::<Vec<_>>()
                {
                    self.life(other).eclipsed |= !valid.contains(&other);
                }
            }
        }
        if let Some(holder) = valid.first() {
            let rival = |life: &Life| life.machine.stage() == Stage::Claiming;
            seen.note(Sight::Rivalry, self.lives.iter().any(|life| rival(life)));
            seen.note(Sight::HeldInQuarantine, self.masters.iter().any(|master| master.quarantine > 0));
            let signed = Self::holder(row, *holder);
            let other = |key: super::master::Key| key.holder != signed;
            seen.note(Sight::HeldBesideAnother, self.masters.iter().any(|m| m.key.is_some_and(other)));
        }
        if row.fewest == 0 && !before.is_quiet(row) && self.is_quiet(row) {
            seen.note(Sight::Quiet, true);
        }
    }

    /// The promise, of those that `matter`, that a step from `before` to here broke.
    pub(crate) fn broken(
        &self,
        row: &Row,
        before: &Self,
        seen: Seen,
        matters: impl Fn(Promise) -> bool,
    ) -> Option<Promise> {
        let valid = |world: &Self, nth: usize| world.lives[nth].is_valid(world.now);
        let revived = |nth: usize| {
            let past = &before.lives[nth];
            let had_passed = past.machine.stage() == Stage::Held && !valid(before, nth) && !past.clockless;
            past.is_over() && !self.lives[nth].is_over() || had_passed && valid(self, nth)
        };
        let trusted = row.forgets == 0 && !row.has(Habit::SkipsQuarantine);
        let holders = || (0..self.lives.len()).filter(|nth| valid(self, *nth));
        let is_broken = |promise: &Promise| match promise {
            Promise::Exclusion => holders().count() > 1,
            Promise::StickyLoss => (0..before.lives.len()).any(revived),
            Promise::Continuity => holders().any(|nth| self.lives[nth].eclipsed),
            Promise::Backing => trusted && holders().any(|nth| self.backing(row, nth) < row.needed),
            Promise::TimelyWin => seen.late_win,
            Promise::TokenOrder => self.disorders(row, before),
            Promise::NoGhost => row.fewest == 0 && self.has_ghost(row),
        };
        Promise::ALL.into_iter().filter(|promise| matters(*promise)).find(is_broken)
    }

    /// Whether a claim that was just won has a token that it must not have.
    fn disorders(&self, row: &Row, before: &Self) -> bool {
        let won_before = |nth: usize| before.lives.get(nth).and_then(|life| life.token());
        let new = self.lives.iter().enumerate().filter(|(nth, _)| won_before(*nth).is_none());
        new.filter_map(|(nth, life)| Some((nth, life.token()?, life.floor))).any(|(nth, token, floor)| {
            let others = self.lives.iter().enumerate().filter(|(other, _)| *other != nth);
            let mut others = others.filter_map(|(_, life)| life.token());
            let in_turn = row.forgets == 0 && !row.timeless;
            token < floor || others.any(|other| if in_turn { other >= token } else { other == token })
        })
    }

    fn backing(&self, row: &Row, nth: usize) -> usize {
        let holder = Self::holder(row, nth);
        let masters = self.masters[..row.masters].iter();
        masters.filter(|m| m.quarantine > 0 || m.key.is_some_and(|key| key.holder == holder)).count()
    }
}
