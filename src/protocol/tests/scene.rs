//! A stage for one attempt: five masters, whose lines the scene speaks, and a clock the scene sets.

use std::time::Duration;

use crate::protocol::attempt::{Attempt, Loss, Stage};
use crate::protocol::fanout::{Act, Dispatch, Fence, Link};
use crate::protocol::news::News;
use crate::protocol::policy::Policy;
use crate::protocol::quorum::{MasterId, MasterSet, Quorum};
use crate::protocol::request::Ttl;
use crate::protocol::time::Moment;
use crate::protocol::votes::{Fault, Incumbent, Reply, Vote};

/// When the scene begins. Not zero, so that "earlier" exists.
const BEGINNING: u64 = 10_000_000_000;

/// The ttl of a scene: 1 s less 12 ms drift is valid for 988 ms. One master may take 100 ms.
pub(super) const TTL: u64 = 1_000;
pub(super) const VALIDITY: u64 = 988 * MS;
pub(super) const MASTER_TIMEOUT: Duration = Duration::from_millis(100);
/// The watchdog's habit in a scene.
pub(super) const PERIOD: u64 = 300;

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1_000 * MS;

#[derive(Debug)]
pub(super) struct Scene {
    pub(super) attempt: Attempt,
    now: Moment,
    outstanding: Vec<(Dispatch, Link)>,
    links: [u32; 5],
    fences: [Option<Fence>; 5],
}

pub(super) fn five() -> Quorum {
    Quorum::majority(5).unwrap()
}

pub(super) fn ttl(millis: u64) -> Ttl {
    let policy = Policy::new().with_master_timeout(MASTER_TIMEOUT);
    Ttl::new(Duration::from_millis(millis), &policy).unwrap()
}

/// `nanos` after the beginning.
pub(super) fn after(nanos: u64) -> Moment {
    Moment::from_nanos(BEGINNING + nanos)
}

pub(super) fn masters(numbers: &[usize]) -> MasterSet {
    numbers.iter().map(|number| MasterId::new(number - 1).unwrap()).collect()
}

pub(super) fn held() -> Vote {
    Vote::Held(Incumbent::default())
}

pub(super) fn unreachable() -> Vote {
    Vote::Failed(Fault::NotConnected("refused".into()))
}

pub(super) fn broken() -> Vote {
    Vote::Unknown(Fault::Broken("reset".into()))
}

pub(super) fn silent() -> Vote {
    Vote::Unknown(Fault::TimedOut)
}

impl Scene {
    pub(super) fn of(attempt: Attempt) -> Self {
        Self { attempt, now: after(0), outstanding: Vec::new(), links: [1; 5], fences: [None; 5] }
    }

    /// A claim, handed over to all five.
    pub(super) fn claim() -> Self {
        Self::claim_of(five())
    }

    pub(super) fn claim_of(quorum: Quorum) -> Self {
        let mut scene = Self::of(Attempt::claim(quorum, ttl(TTL), MASTER_TIMEOUT, after(0)));
        assert_eq!(scene.sent(), "Claim m1 m2 m3 m4 m5");
        scene
    }

    /// A lease that sits on all five, won at once.
    pub(super) fn won() -> Self {
        let mut scene = Self::claim();
        (1..=5).for_each(|master| scene.hears(master, Vote::Granted));
        assert_eq!((scene.sent().as_str(), scene.attempt.stage()), ("", Stage::Held));
        assert!(scene.news().verdict);
        scene
    }

    /// The same under a watchdog that is due after one period.
    pub(super) fn watched() -> Self {
        let mut scene = Self::won();
        scene.attempt.watch_over(after(PERIOD * MS), Duration::from_millis(PERIOD));
        scene
    }

    /// The clock shows `nanos` after the beginning; the attempt is not told.
    pub(super) fn at(&mut self, nanos: u64) -> &mut Self {
        assert!(after(nanos) >= self.now, "time goes backwards");
        self.now = after(nanos);
        self
    }

    /// The clock shows `nanos` after the beginning, and the attempt is told.
    pub(super) fn time(&mut self, nanos: u64) -> &mut Self {
        self.at(nanos);
        self.attempt.on_time(self.now);
        let next = self.attempt.next_time();
        assert!(next.is_none_or(|next| next > self.now), "busy: {next:?} at {:?}", self.now);
        self
    }

    /// When the attempt wants to be told the time, after the beginning.
    pub(super) fn next(&self) -> Option<u64> {
        self.attempt.next_time().map(|next| next.as_nanos() - BEGINNING)
    }

    pub(super) const fn now(&self) -> Moment {
        self.now
    }

    /// Hands over what is due, and tells what that was: `"Renew m1 m2; Release m5"`.
    pub(super) fn sent(&mut self) -> String {
        let mut text = String::new();
        let mut last = None;
        while let Some(dispatch) = self.attempt.next_dispatch() {
            if last != Some(dispatch.act) {
                text += if last.is_some() { "; " } else { "" };
                text += &format!("{:?}", dispatch.act);
                last = Some(dispatch.act);
            }
            text += &format!(" {}", dispatch.to);
            self.outstanding.push((dispatch, Link(self.links[dispatch.to.index()])));
        }
        text
    }

    /// `master` (counted from one) answers the oldest command it owes an answer to.
    pub(super) fn hears(&mut self, master: usize, vote: Vote) {
        let of_it = |(dispatch, _): &&(Dispatch, Link)| dispatch.to.index() == master - 1;
        let act = self.outstanding.iter().find(of_it).expect("nothing was asked of it").0.act;
        self.hears_of(act, master, vote);
    }

    /// The same with a grant and the number that the key took.
    pub(super) fn hears_number(&mut self, master: usize, number: u64) {
        let is_it = |(dispatch, _): &(Dispatch, Link)| {
            dispatch.to.index() == master - 1 && dispatch.act == Act::Claim
        };
        let place = self.outstanding.iter().position(is_it).expect("that was not asked of it");
        let (dispatch, link) = self.outstanding.remove(place);
        let reply = Reply { vote: Vote::Granted, link: Some(link), number: Some(number) };
        self.attempt.on_reply(&dispatch, reply, self.now);
        self.fences[master - 1] = dispatch.fence;
    }

    pub(super) fn hear_numbers<const N: usize>(&mut self, numbers: [(usize, u64); N]) {
        numbers.into_iter().for_each(|(master, number)| self.hears_number(master, number));
    }

    /// What went for the counter's sake with what `master` was asked last, or answered since.
    pub(super) fn last_fence(&self, master: usize) -> Option<Fence> {
        let of_it = |(dispatch, _): &&(Dispatch, Link)| dispatch.to.index() == master - 1;
        let asked = self.outstanding.iter().rev().find(of_it);
        asked.map_or(self.fences[master - 1], |(dispatch, _)| dispatch.fence)
    }

    /// The same of the oldest such command, whatever was asked before it.
    pub(super) fn hears_of(&mut self, act: Act, master: usize, vote: Vote) {
        let is_it =
            |(dispatch, _): &(Dispatch, Link)| dispatch.act == act && dispatch.to.index() == master - 1;
        let place = self.outstanding.iter().position(is_it).expect("that was not asked of it");
        let (dispatch, link) = self.outstanding.remove(place);
        self.attempt.on_reply(&dispatch, Reply { vote, link: Some(link), number: None }, self.now);
    }

    pub(super) fn all_hear(&mut self, numbers: &[usize], vote: &Vote) {
        numbers.iter().for_each(|master| self.hears(*master, vote.clone()));
    }

    /// Every command handed over is answered in the same way.
    pub(super) fn all_answer(&mut self, vote: &Vote) {
        while let Some((dispatch, _)) = self.outstanding.first() {
            self.hears(dispatch.to.index() + 1, vote.clone());
        }
    }

    /// A new connection to `master`, to the same process or to a new one.
    pub(super) fn connected(&mut self, master: usize, restarted: bool) {
        self.links[master - 1] += 1;
        self.attempt.on_link(MasterId::new(master - 1).unwrap(), restarted, self.now);
    }

    pub(super) fn released(&mut self) -> String {
        self.attempt.release(self.now);
        self.sent()
    }

    pub(super) fn news(&mut self) -> News {
        self.attempt.take_news()
    }

    /// The deadline, after the beginning.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.attempt.deadline().map(|deadline| deadline.as_nanos() - BEGINNING)
    }

    pub(super) fn is_lost(&self, why: Loss) -> bool {
        self.attempt.stage() == Stage::Lost(why)
    }

    pub(super) fn is_held(&self) -> bool {
        self.attempt.stage() == Stage::Held
    }
}
