//! One row of the search: how large the world is, what may go wrong in it, and what is broken on purpose.

use std::time::Duration;

use quorlock::protocol::policy::Policy;
use quorlock::protocol::quorum::Quorum;
use quorlock::protocol::request::Ttl;

use super::world::MOST;

/// The grain of time. 250 of it are the second after which a delete is repeated.
pub(crate) const TICK: u64 = 4_000_000;
/// The clock when a search begins. Not zero, so that "earlier" exists.
pub(crate) const BEGINNING: u64 = 1_000 * TICK;
/// How long a claim may take: two ticks.
pub(crate) const MASTER_TIMEOUT: Duration = Duration::from_nanos(2 * TICK);
/// How late a driver may be with telling the time, where it may be late.
pub(crate) const LATEST: Duration = Duration::from_nanos(2 * TICK);
/// No rule looks farther back, or ahead of time without a stop.
pub(crate) const REACH: Duration = Duration::from_nanos(9 * TICK);

/// What the world does against the rules, where a rule is not in `src/protocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    /// The driver reads the clock only after the commands are handed over (rule 1).
    ReadsTheClockLate,
    /// Both attempts sign with one holder id (rule 5).
    SignsTwiceAlike,
    /// The transport sends a claim again whose answer it lost (rule 13).
    SendsAgain,
    /// One connection does not keep the order (rule 18).
    Overtakes,
    /// A sent command that timed out passes for one that was not applied (rule 7).
    CallsSilenceFailure,
    /// The delete does not compare (rule 12).
    DeletesBlindly,
    /// The delete compares in one command and deletes in the next (rule 12).
    GetsThenDeletes,
    /// Renewal by `SET … XX` (rule 8).
    RenewsBySet,
    /// Renewal without compare (rule 8).
    RenewsBlindly,
    /// A renewal may lower the remaining time (rule 8).
    RenewsDownwards,
    /// A master that restarted votes at once (rule 14).
    SkipsQuarantine,
    /// Quarantine is asked about before the command, not with it (rule 14).
    VotesInQuarantine,
    /// A raise looks whose key it is, and not which incarnation (rule 17).
    RaisesByHolder,
    /// A raise does not compare (rule 17).
    RaisesBlindly,
    /// The counters of others are read before the quarantine is over (rule 17).
    ReadsInQuarantine,
    /// The masters' clocks run faster than the drift allows (assumption A2).
    ClocksRunAway,
}

/// A world to be searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) masters: usize,
    pub(crate) needed: usize,
    /// How many attempts may start, each under a holder id of its own.
    pub(crate) attempts: usize,
    /// What a claim asks for, in ticks, and what an extension may ask for.
    pub(crate) ttl: u64,
    pub(crate) extensions: u8,
    pub(crate) short: Option<u64>,
    /// Masters that restart and lose all.
    pub(crate) crashes: u8,
    /// Masters that restart with their data.
    pub(crate) restarts: u8,
    /// Keys deleted by hand, evicted or flushed: the assumption that masters do not forget does not hold.
    pub(crate) forgets: u8,
    /// Connections that break.
    pub(crate) breaks: u8,
    /// Answers that never come, although the connection holds.
    pub(crate) silences: u8,
    /// Whether the claims are fenced.
    pub(crate) fenced: bool,
    /// No time passes, no lease ends by it and no delete is sent: the key of who is over goes at any moment, and a
    /// quarantine ends when nobody asks any more who asked before it. Tokens must not need more than that.
    pub(crate) timeless: bool,
    /// The masters' counters when the search begins, and what each attempt proposes.
    pub(crate) counters: [u64; MOST],
    pub(crate) proposals: [u64; 3],
    /// Counters that rise by one for another resource's sake.
    pub(crate) bumps: u8,
    /// Claims that are executed once more, at any time after their answer.
    pub(crate) replays: u8,
    /// Whether an answer may be under way while other things happen. Else it is heard as the master gives it.
    pub(crate) slow: bool,
    /// Whether the driver may be late with telling the time.
    pub(crate) late: bool,
    /// Where fewer attempts than these can still hold, the search goes no further: two for exclusion, none to see
    /// what is left behind.
    pub(crate) fewest: usize,
    pub(crate) habit: Option<Habit>,
}

impl Row {
    /// `masters` masters and two claims; nothing goes wrong but that messages take their time.
    pub(crate) const fn of(masters: usize) -> Self {
        Self {
            masters,
            needed: masters / 2 + 1,
            attempts: 2,
            ttl: 4,
            extensions: 0,
            short: None,
            crashes: 0,
            restarts: 0,
            forgets: 0,
            breaks: 0,
            silences: 0,
            fenced: false,
            timeless: false,
            counters: [0; MOST],
            proposals: [0; 3],
            bumps: 0,
            replays: 0,
            slow: false,
            late: false,
            fewest: 2,
            habit: None,
        }
    }

    pub(crate) fn has(&self, habit: Habit) -> bool {
        self.habit == Some(habit)
    }

    pub(crate) fn quorum(&self) -> Quorum {
        Quorum::majority(self.masters).and_then(|quorum| quorum.with_min_votes(self.needed)).expect("2w > N")
    }

    /// 10 % and 2 ms make one tick of drift.
    pub(crate) fn policy(&self) -> Policy {
        Policy::new()
            .with_drift_ppm(100_000)
            .with_master_timeout(Duration::from_millis(1))
            .with_max_ttl(Duration::from_nanos(self.ttl * TICK))
    }

    pub(crate) fn ttl(&self, ticks: u64) -> Ttl {
        Ttl::new(Duration::from_nanos(ticks * TICK), &self.policy()).expect("longer than the drift")
    }

    /// How much sooner than asked a master's clock may end a key or a quarantine.
    pub(crate) fn haste(&self) -> u64 {
        if self.has(Habit::ClocksRunAway) { 2 * TICK } else { TICK }
    }
}
