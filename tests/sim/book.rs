//! The book: what was asked of the masters and what they answered, holder id by holder id, and what follows from it.
//!
//! It draws its own conclusions from what went over the wire, by the rules of the design and not by the client's code.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use quorlock::Hold;
use quorlock::protocol::fanout::{Act, Dispatch};
use quorlock::protocol::fencing::FencingToken;
use quorlock::protocol::time::Moment;
use quorlock::protocol::votes::Vote;

use crate::plan::Plan;
use crate::promise::{Breach, Promise};
use crate::sights::{Sight, Sights};
use crate::time::{MS, MachineClock, nanos};

/// One holder id's life.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) nth: usize,
    pub(crate) client: usize,
    keys: Vec<Bytes>,
    seats: Vec<Seat>,
    pub(crate) commands: u32,
    pub(crate) granted: Option<u64>,
    hold: Option<Hold>,
    /// The deadline as it last stood.
    until: Moment,
    /// The deadline may be earlier than the masters allow: a longest hold was asked for.
    capped: bool,
    /// The first time somebody saw that it was lost.
    pub(crate) lost: Option<u64>,
    /// When the holder gave it back, in whatever way.
    pub(crate) given_back: Option<u64>,
    /// Its fencing token, if it was asked for.
    token: Option<FencingToken>,
    /// It was valid then, and the release was waited for.
    released: bool,
    /// Its keys were left to whoever knows the holder id, who is not bound to delete them.
    lent: bool,
    /// When it was held before that.
    earlier: Vec<(u64, u64)>,
}

/// One master as the answers tell.
#[derive(Clone, Debug, Default)]
struct Seat {
    until: Option<Moment>,
    confirmed: Option<Moment>,
    /// Answers to commands up to this one are void.
    void: u32,
    /// It said yes to a claim, or nobody knows.
    doubtful: bool,
    releases: u32,
    releasing: u32,
    /// The last command that can have set the key was executed then.
    set: Option<u64>,
    /// A snapshot brought the key back.
    resurrected: bool,
}

/// What was known of a life before an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    /// Nothing was to be won or kept any more.
    over: bool,
    /// The deadline of a hold had passed.
    passed: bool,
    /// How many deletes the master was sent.
    releases: u32,
}

/// Whether a grant has the key there, for a ttl from then on.
const fn keeps(act: Act) -> bool {
    matches!(act, Act::Claim | Act::Watch | Act::Renew | Act::Heal)
}

#[derive(Debug)]
pub(crate) struct Book {
    lives: BTreeMap<Bytes, Life>,
    clocks: Vec<Arc<MachineClock>>,
    masters: usize,
    needed: usize,
    drift_ppm: u64,
    glances: u64,
    /// Who was closed amid work, and has no connection any more to delete what was out of reach then.
    pub(crate) closed: Option<usize>,
    pub(crate) breaches: Vec<Breach>,
}

impl Book {
    pub(crate) fn new(plan: &Plan) -> Self {
        let masters = plan.masters.len();
        Self {
            lives: BTreeMap::new(),
            clocks: Vec::new(),
            masters,
            needed: plan.min_votes.unwrap_or(masters / 2 + 1),
            drift_ppm: plan.drift_ppm,
            glances: 0,
            closed: None,
            breaches: Vec::new(),
        }
    }

    pub(crate) fn set_clocks(&mut self, clocks: Vec<Arc<MachineClock>>) {
        self.clocks = clocks;
    }

    pub(crate) fn life(&self, holder: &Bytes) -> Option<&Life> {
        self.lives.get(holder)
    }

    pub(crate) fn breach(&mut self, promise: Promise, at: u64, words: String) {
        self.breaches.push(Breach { promise, at, words });
    }

    /// Holds keep their client alive.
    pub(crate) fn let_go(&mut self) -> Vec<Hold> {
        self.lives.values_mut().filter_map(|life| life.hold.take()).collect()
    }

    /// What `client` holds, as far as it knows.
    pub(crate) fn holds_of(&self, client: usize) -> Vec<(Bytes, Hold)> {
        let held = self.lives.iter().filter(|(_, life)| life.client == client && life.given_back.is_none());
        held.filter_map(|(holder, life)| Some((holder.clone(), life.hold.clone()?))).collect()
    }

    /// A command is handed over; its number among those of its holder id.
    pub(crate) fn on_sent(
        &mut self,
        client: usize,
        keys: &[Bytes],
        holder: &Bytes,
        dispatch: &Dispatch,
        now: u64,
    ) -> u32 {
        if dispatch.act.is_of_line() {
            // Signed by nobody.
            return 0;
        }
        let (nth, masters) = (self.lives.len() + 1, self.masters);
        let life = self.lives.entry(holder.clone()).or_insert_with(|| Life {
            nth,
            client,
            keys: keys.to_vec(),
            seats: vec![Seat::default(); masters],
            commands: 0,
            granted: None,
            hold: None,
            until: Moment::default(),
            capped: false,
            lost: None,
            given_back: None,
            token: None,
            released: false,
            lent: false,
            earlier: Vec::new(),
        });
        life.commands += 1;
        let mut broken = None;
        let master = dispatch.to.index();
        if dispatch.act == Act::Release {
            life.seats[master].releases += 1;
            life.seats[master].releasing += 1;
        } else if life.given_back.is_some_and(|at| at < now) && !life.lent {
            broken = Some((
                Promise::Silence,
                format!("{:?} of h{} to {} after it was given back", dispatch.act, life.nth, dispatch.to),
            ));
        }
        if dispatch.act == Act::Heal {
            let before = life.seats[master].confirmed;
            let behind =
                life.seats.iter().filter(|seat| seat.confirmed > before && seat.until.is_some()).count();
            if behind < self.needed {
                broken = Some((
                    Promise::Heal,
                    format!("h{} heals {} with {behind} masters behind it", life.nth, dispatch.to),
                ));
            }
        }
        let number = life.commands;
        if let Some((promise, words)) = broken {
            self.breach(promise, now, words);
        }
        number
    }

    /// A command was not taken.
    pub(crate) fn on_refused(&mut self, holder: &Bytes, dispatch: &Dispatch) {
        if let Some(life) = self.lives.get_mut(holder)
            && dispatch.act == Act::Release
        {
            life.seats[dispatch.to.index()].releasing -= 1;
        }
    }

    /// A master executed a command; how many of its keys were the holder's before and are now, of how many.
    pub(crate) fn on_executed(
        &mut self,
        holder: &Bytes,
        dispatch: &Dispatch,
        vote: &Vote,
        [before, after, all]: [usize; 3],
        now: u64,
    ) {
        let Some(life) = self.lives.get_mut(holder) else { return };
        let granted = *vote == Vote::Granted;
        if keeps(dispatch.act) && granted {
            life.seats[dispatch.to.index()].set = Some(now);
        }
        let right = match dispatch.act {
            Act::Release => after == 0,
            _ if granted => after == all,
            _ => after == before,
        };
        if !right {
            let act = dispatch.act;
            let words = format!("h{} had {before} of {all} keys, and has {after} after {act:?}", life.nth);
            self.breach(Promise::AllOrNone, now, words);
        }
    }

    /// An answer is about to be told; what was known before.
    pub(crate) fn on_answer(
        &mut self,
        holder: &Bytes,
        dispatch: &Dispatch,
        number: u32,
        vote: &Vote,
        now: u64,
    ) -> Before {
        let drift_ppm = self.drift_ppm;
        let passed = self.deadline(holder).is_some_and(|deadline| deadline <= now);
        let Some(life) = self.lives.get_mut(holder) else { return Before::default() };
        let over = match life.granted {
            None => life.seats.iter().any(|seat| seat.releases > 0),
            Some(_) => life.given_back.is_some() || life.lost.is_some() || passed,
        };
        let seat = &mut life.seats[dispatch.to.index()];
        match (dispatch.act, vote) {
            (Act::Claim | Act::Watch | Act::Renew, Vote::Granted) => {
                seat.doubtful = true;
                if number > seat.void {
                    let ttl = u64::from(dispatch.ttl.as_millis());
                    let drift = (ttl * drift_ppm).div_ceil(1_000_000) + 2;
                    let until = Moment::from_nanos(dispatch.stamp.as_nanos() + (ttl - drift) * MS);
                    seat.until = seat.until.max(Some(until));
                    seat.confirmed = seat.confirmed.max(Some(dispatch.stamp));
                }
            }
            (Act::Claim | Act::Watch | Act::Heal, Vote::Unknown(_)) => seat.doubtful = true,
            (Act::Renew, Vote::Absent | Vote::Held(_)) => {
                seat.until = None;
                seat.void = seat.void.max(number);
            }
            (Act::Release, _) => seat.releasing -= 1,
            _ => {}
        }
        Before { over, passed: passed && life.granted.is_some(), releases: seat.releases }
    }

    /// The answer was told.
    pub(crate) fn after_answer(
        &mut self,
        holder: &Bytes,
        dispatch: &Dispatch,
        vote: &Vote,
        before: Before,
        now: u64,
        sights: &mut Sights,
    ) {
        // Looking is what makes a loss final: most of the time nobody looks at a deadline that passed.
        self.glances += u64::from(before.passed);
        if before.passed && !self.glances.is_multiple_of(4) {
            return;
        }
        self.look(holder, now, sights);
        let Some(life) = self.lives.get(holder) else { return };
        if before.passed && life.lost.is_none() && life.given_back.is_none() {
            let words = format!("the deadline of h{} had passed, and it is valid again", life.nth);
            self.breach(Promise::StickyLoss, now, words);
            return;
        }
        let seat = &life.seats[dispatch.to.index()];
        if before.over && keeps(dispatch.act) && *vote == Vote::Granted && !life.lent {
            sights.saw(Sight::LateGrant);
            if seat.releasing == 0 && seat.releases == before.releases {
                let words = format!(
                    "{} granted {:?} to h{} after its end, and gets no delete",
                    dispatch.to, dispatch.act, life.nth
                );
                self.breach(Promise::LateGrant, now, words);
            }
        }
    }

    /// A client was told that a master is not the process it was.
    pub(crate) fn on_restart(&mut self, client: usize, master: usize) {
        for life in self.lives.values_mut().filter(|life| life.client == client) {
            life.seats[master].until = None;
            life.seats[master].void = life.commands;
        }
    }

    pub(crate) fn on_resurrected(&mut self, master: usize, holders: &[Bytes]) {
        for holder in holders {
            if let Some(life) = self.lives.get_mut(holder) {
                life.seats[master].resurrected = true;
            }
        }
    }

    /// Somebody has the guard.
    pub(crate) fn on_granted(
        &mut self,
        hold: &Hold,
        token: Option<FencingToken>,
        capped: bool,
        now: u64,
        sights: &mut Sights,
    ) {
        let holder = Bytes::copy_from_slice(hold.holder().as_bytes());
        if token.is_some() {
            sights.saw(Sight::Fenced);
        }
        if let Some(life) = self.lives.get_mut(&holder) {
            life.granted = Some(now);
            life.hold = Some(hold.clone());
            life.capped = capped;
            life.token = token;
        }
        self.look(&holder, now, sights);
    }

    /// The holder gave it back, or is about to.
    pub(crate) fn on_given_back(&mut self, holder: &Bytes, now: u64, sights: &mut Sights) {
        self.look(holder, now, sights);
        if let Some(life) = self.lives.get_mut(holder) {
            life.given_back.get_or_insert(now);
        }
    }

    /// It is given up, and its keys are not.
    pub(crate) fn on_lent(&mut self, holder: &Bytes) {
        if let Some(life) = self.lives.get_mut(holder) {
            life.lent = true;
        }
    }

    /// Somebody goes on with it: another hold by the same id.
    pub(crate) fn on_adopted(&mut self, holder: &Bytes) {
        let earlier = self.interval(holder);
        if let Some(life) = self.lives.get_mut(holder) {
            life.earlier.extend(earlier);
            (life.granted, life.lost, life.given_back) = (None, None, None);
            life.until = Moment::default();
        }
    }

    /// The release was waited for, and was in time.
    pub(crate) fn on_released(&mut self, holder: &Bytes) {
        if let Some(life) = self.lives.get_mut(holder) {
            life.released = true;
        }
    }

    /// Looks at a hold as its holder would, and at its deadline.
    pub(crate) fn look(&mut self, holder: &Bytes, now: u64, sights: &mut Sights) {
        let Some(life) = self.lives.get(holder) else { return };
        let Some(hold) = life.hold.clone().filter(|_| life.given_back.is_none()) else { return };
        let clock = self.clocks[life.client].clone();
        let (left, shown) = clock.unseen(|| (nanos(hold.remaining()), clock.rate.at(clock.real())));
        self.saw(holder, left > 0, now, sights);
        let Some(life) = self.lives.get_mut(holder) else { return };
        if left == 0 {
            return;
        }
        let until = Moment::from_nanos(shown.as_nanos() + left);
        if until > life.until && life.until != Moment::default() {
            sights.saw(Sight::Renewed);
        }
        life.until = until;
        let mut confirmed: Vec<Moment> = life.seats.iter().filter_map(|seat| seat.until).collect();
        confirmed.sort_unstable();
        let right = confirmed.len().checked_sub(self.needed).map_or(Moment::default(), |nth| confirmed[nth]);
        if until > right || (until < right && !life.capped) {
            let given = right.as_nanos().saturating_sub(shown.as_nanos()) / MS;
            let words =
                format!("h{} counts on {} ms more, and the answers give it {given}", life.nth, left / MS);
            self.breach(Promise::Deadline, now, words);
        }
    }

    /// Somebody saw whether the hold is valid.
    pub(crate) fn saw(&mut self, holder: &Bytes, valid: bool, now: u64, sights: &mut Sights) {
        let Some(life) = self.lives.get_mut(holder) else { return };
        if !valid && life.lost.is_none() && life.given_back.is_none() {
            life.lost = Some(now);
            sights.saw(Sight::Lost);
        }
        if valid && let Some(lost) = life.lost {
            let words = format!("h{} was lost at {:.3} s and is valid again", life.nth, lost as f64 / 1e9);
            self.breach(Promise::StickyLoss, now, words);
        }
    }

    /// When the hold ends by its last deadline, in real time.
    pub(crate) fn deadline(&self, holder: &Bytes) -> Option<u64> {
        let life = self.lives.get(holder)?;
        Some(self.clocks[life.client].rate.real_of(life.until))
    }

    fn interval(&self, holder: &Bytes) -> Option<(u64, u64)> {
        let life = self.lives.get(holder)?;
        let ends = [self.deadline(holder), life.lost, life.given_back];
        let end = ends.into_iter().flatten().min()?;
        life.granted.filter(|granted| *granted < end).map(|granted| (granted, end))
    }

    /// Whether two were valid at once.
    pub(crate) fn check_exclusion(&mut self, now: u64, sights: &mut Sights) {
        let mut held: BTreeMap<Bytes, Vec<(u64, u64, usize)>> = BTreeMap::new();
        for (holder, life) in &self.lives {
            for (from, to) in life.earlier.iter().copied().chain(self.interval(holder)) {
                for key in &life.keys {
                    held.entry(key.clone()).or_default().push((from, to, life.nth));
                }
            }
        }
        for (resource, mut intervals) in held {
            intervals.sort_unstable();
            for pair in intervals.windows(2) {
                let ((_, end, first), (begin, other_end, second)) = (pair[0], pair[1]);
                sights.saw(Sight::HandedOn);
                if begin < end {
                    let both = (end.min(other_end) - begin) as f64 / 1e6;
                    let words = format!("h{first} and h{second} both held {resource:?} for {both:.3} ms");
                    self.breach(Promise::Exclusion, begin.min(now), words);
                }
            }
        }
    }

    /// Tokens rise with every hold of a resource.
    pub(crate) fn check_tokens(&mut self, now: u64) {
        let mut tokens: BTreeMap<&Bytes, Vec<(u64, FencingToken, usize)>> = BTreeMap::new();
        for life in self.lives.values() {
            if let (Some(granted), Some(token)) = (life.granted, life.token) {
                life.keys
                    .iter()
                    .for_each(|key| tokens.entry(key).or_default().push((granted, token, life.nth)));
            }
        }
        let mut breaches = Vec::new();
        for held in tokens.values_mut() {
            held.sort_unstable();
            for pair in held.windows(2) {
                let ((_, before, first), (at, token, second)) = (pair[0], pair[1]);
                if token <= before {
                    breaches
                        .push((at, format!("h{second} has the token {token} after h{first} had {before}")));
                }
            }
        }
        for (at, words) in breaches {
            self.breach(Promise::Tokens, at.min(now), words);
        }
    }

    /// What was begun and not kept is deleted everywhere.
    pub(crate) fn check_roll_backs(&mut self, now: u64) {
        let mut breaches = Vec::new();
        for life in self.lives.values().filter(|life| !life.lent) {
            let everywhere = life.seats.iter().all(|seat| seat.releases > 0);
            let doubtful = life.seats.iter().any(|seat| seat.doubtful);
            // It was won, and lost again before anybody had it.
            let missed = life.seats.iter().filter(|seat| seat.confirmed.is_some()).count() >= self.needed
                && life.seats.iter().all(|seat| seat.releases > 0 || !seat.doubtful);
            let right = match life.granted {
                None => everywhere || missed || !doubtful,
                Some(_) => everywhere || !life.released,
            };
            if !right {
                let without: Vec<usize> =
                    (1..=self.masters).filter(|nth| life.seats[nth - 1].releases == 0).collect();
                breaches.push(format!("no delete of h{} went to masters {without:?}", life.nth));
            }
        }
        for words in breaches {
            self.breach(Promise::RollBack, now, words);
        }
    }

    /// A key that stands now, until `until`.
    pub(crate) fn check_expiry(&mut self, holder: &Bytes, master: usize, until: u64, longest: u64, now: u64) {
        let Some(life) = self.lives.get(holder) else { return };
        if let Some(set) = life.seats[master].set
            && until > set + longest
        {
            let words = format!(
                "the key of h{} on m{} stays for {} ms after it was set",
                life.nth,
                master + 1,
                (until - set) / MS
            );
            self.breach(Promise::Expiry, now, words);
        }
    }

    /// A key that stands at the end of the faults.
    pub(crate) fn check_key(&mut self, holder: &Bytes, master: usize, until: u64, now: u64) {
        let Some(life) = self.lives.get(holder) else { return };
        let (nth, seat) = (life.nth, &life.seats[master]);
        if seat.resurrected || life.lent || self.closed == Some(life.client) {
            return;
        }
        let words = format!(
            "a key of h{nth} is left on m{}, for {:.3} s more",
            master + 1,
            (until.saturating_sub(now)) as f64 / 1e9
        );
        self.breach(Promise::Ghost, now, words);
    }
}
