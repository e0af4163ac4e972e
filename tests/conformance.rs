//! The master in memory says what a real one says.
//!
//! One sequence of commands runs on both. A real master reads its clock somewhere between our sending and our
//! receiving, some versions anew for each command of a script. So a step within one millisecond has one right answer,
//! remaining times to the millisecond; after a step that met a millisecond's end, the master in memory is one of
//! several, and a look at the real one tells which. Where none fits, the clock went on within one command: that is no
//! difference to learn from, and the sequence begins anew. So nothing depends on how busy this machine is.

#[path = "splitmix/mod.rs"]
mod splitmix;

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use quorlock::protocol::fanout::{Act, Fence};
use quorlock::protocol::fencing::{self, Counters, FencingToken};
use quorlock::protocol::policy::Policy;
use quorlock::protocol::request::Ttl;
use quorlock::protocol::time::Moment;
use quorlock::protocol::votes::{Fault, Incumbent, Remaining, Vote};
use quorlock::testbed::{Reply, Testbed, Wire};
use quorlock::transport::memory::Master;

const ACT: &str = include_str!("../src/transport/lua/act.lua");
const ALL_OR_NONE: &str = include_str!("../src/transport/lua/all.lua");
const PASS: &str = include_str!("../src/transport/lua/pass.lua");
const LINE: &str = include_str!("../src/transport/lua/line.lua");
/// A step that takes longer tells nothing.
const LONGEST_STEP: u64 = 3;

/// What is done to both.
#[derive(Clone, Debug)]
enum Step {
    /// One call of the script, with an act for each of several keys.
    Script(Vec<(Act, usize, &'static str, u64)>),
    /// One call of the script with an act that has to do with the counter.
    Fenced(Act, Fence, usize, &'static str, u64),
    /// The same on several keys, all or none.
    FencedAll(Act, Fence, &'static [usize], &'static str, u64),
    /// All counters are gone; it has them again.
    LoseCounters,
    Recover(u64),
    /// One call with acts on several keys each, all or none.
    All(Vec<OnAll>),
    /// A release by the first holder and a claim by the second, as they travel alone.
    Pass(usize, &'static str, &'static str, u64),
    /// `SET … NX PX`, as a claim that travels alone.
    Plain(usize, &'static str, u64),
    /// What other programs do.
    Set(usize, &'static str, Option<u64>),
    Hash(usize),
    Delete(usize),
    /// Until so many milliseconds from now.
    Pause(u64),
    /// Until so many milliseconds after the expiry of a key, if it has one.
    UntilExpiry(usize, i64),
    /// Value, type and remaining time of every key.
    Look,
}

/// What a key may be, and how it comes to be so.
type Kind = (&'static str, fn(usize) -> Step);
/// An act on several keys, its holder, its ttl.
type OnAll = (Act, &'static [usize], &'static str, u64);

/// An answer, as both give it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Votes(Vec<Vote>),
    Numbered(Vote, Option<u64>),
    Keys(Vec<(Option<Bytes>, Option<Remaining>)>),
    Nothing,
}

/// A real master, and all that the one in memory may be.
struct Pair {
    wire: Wire,
    candidates: HashSet<Master>,
    keys: Vec<String>,
    history: Vec<String>,
}

impl Pair {
    fn new(bed: &Testbed, name: &str, keys: usize) -> Self {
        Self {
            wire: bed[0].wire().expect("the master is up"),
            candidates: HashSet::from([Master::default()]),
            keys: (0..keys).map(|nth| format!("{name}:{nth}")).collect(),
            history: Vec::new(),
        }
    }

    /// Runs one step on both; false if it told nothing.
    fn run(&mut self, step: &Step) -> bool {
        if let Some(end) = self.pause(step) {
            wait_until(end);
            self.history.push(format!("{step:?}"));
            return true;
        }
        let (real, before, after) = self.ask_in_time(step);
        if before == after {
            let expected = self.follow(step, &real, before, after);
            assert!(!self.candidates.is_empty(), "memory says {expected:?}\nafter {:#?}", self.history);
            return true;
        }
        if after - before > LONGEST_STEP {
            return false;
        }
        self.follow(step, &real, before, after);
        let mut looks = (0..100).map(|_| self.ask_in_time(&Step::Look));
        let Some((seen, at, _)) = looks.find(|(_, before, after)| before == after) else { return false };
        self.follow(&Step::Look, &seen, at, at);
        !self.candidates.is_empty()
    }

    fn ask_in_time(&mut self, step: &Step) -> (Answer, u64, u64) {
        let before = wall_clock();
        let real = self.ask(step);
        let after = wall_clock();
        self.history.push(format!("{step:?} in {}..={} ms: {real:?}", before % 100_000, after % 100_000));
        (real, before, after)
    }

    /// Keeps those that answer the same at some time of the step; the answers of the others are returned.
    fn follow(&mut self, step: &Step, real: &Answer, before: u64, after: u64) -> HashSet<Answer> {
        let mut others = HashSet::new();
        let mut agreeing = HashSet::new();
        for candidate in &self.candidates {
            for (answer, mut master) in self.tell(candidate, step, before, after) {
                if answer == *real {
                    // What is over is over, also where nobody looked.
                    let _ = master.keys(moment(before));
                    agreeing.insert(master);
                } else {
                    others.insert(answer);
                }
            }
        }
        self.candidates = agreeing;
        others
    }

    fn pause(&self, step: &Step) -> Option<u64> {
        let now = wall_clock();
        match *step {
            Step::Pause(millis) => Some(now + millis),
            Step::UntilExpiry(key, later) => {
                let mut any = self.candidates.iter().next().cloned().unwrap_or_default();
                match any.remaining(self.keys[key].as_bytes(), moment(now)) {
                    Some(Remaining::For(left)) if left < Duration::from_millis(200) => {
                        let left = i64::try_from(left.as_millis()).expect("short");
                        Some(now.saturating_add_signed(left + later))
                    }
                    _ => Some(now),
                }
            }
            _ => None,
        }
    }

    /// The real master's answer.
    fn ask(&mut self, step: &Step) -> Answer {
        let keys = self.keys.clone();
        let mut command = |words: &[&str]| self.wire.command(words).expect("the master answers");
        match step {
            Step::Script(acts) => {
                let (count, mut words) = (acts.len().to_string(), vec!["EVAL".to_owned(), ACT.to_owned()]);
                words.push(count);
                words.extend(acts.iter().map(|(_, key, ..)| keys[*key].clone()));
                let differ = acts.iter().any(|(.., ttl)| *ttl != acts[0].3);
                words.push(acts.iter().map(|(act, ..)| letter(*act)).collect());
                words.push(if differ { String::new() } else { acts[0].3.to_string() });
                words.extend(acts.iter().map(|(_, _, holder, _)| (*holder).to_owned()));
                if differ {
                    words.extend(acts.iter().map(|(.., ttl)| ttl.to_string()));
                }
                let Reply::Array(said) = command(&words.iter().map(String::as_str).collect::<Vec<_>>())
                else {
                    panic!("no list after {step:?}")
                };
                Answer::Votes(said.iter().map(vote).collect())
            }
            Step::Fenced(act, fence, key, holder, ttl) => {
                let holder = fenced_holder(holder, *fence, &keys[*key..=*key]);
                let letter = letter(*act).to_uppercase();
                let words = ["EVAL", ACT, "1", &keys[*key], &letter, &ttl.to_string(), &holder, RUN];
                let Reply::Array(said) = command(&words) else { panic!("no list after {step:?}") };
                numbered(&said[0], vote)
            }
            Step::FencedAll(act, fence, of, holder, ttl) => {
                let own: Vec<String> = of.iter().map(|key| keys[*key].clone()).collect();
                let holder = fenced_holder(holder, *fence, &own);
                let (count, ttl, letter) =
                    (of.len().to_string(), ttl.to_string(), letter(*act).to_uppercase());
                let mut words = vec!["EVAL", ALL_OR_NONE, &count];
                words.extend(own.iter().map(String::as_str));
                words.extend([letter.as_str(), &count, &holder, &ttl, RUN]);
                let Reply::Array(said) = command(&words) else { panic!("no list after {step:?}") };
                numbered(&said[0], |said| vote_on_all(said, of, &keys))
            }
            Step::LoseCounters => {
                command(&["DEL", "quorlock:fence"]);
                Answer::Nothing
            }
            Step::Recover(counter) => {
                let mut words =
                    vec!["HSET".to_owned(), "quorlock:fence".to_owned(), "run".to_owned(), RUN.to_owned()];
                for key in &keys {
                    words.extend([fencing::shard(key.as_bytes()).to_string(), counter.to_string()]);
                }
                command(&words.iter().map(String::as_str).collect::<Vec<_>>());
                Answer::Nothing
            }
            Step::All(acts) => {
                let of: Vec<usize> = acts.iter().flat_map(|(_, of, ..)| of.iter().copied()).collect();
                let mut words = vec!["EVAL".to_owned(), ALL_OR_NONE.to_owned(), of.len().to_string()];
                words.extend(of.iter().map(|key| keys[*key].clone()));
                words.push(acts.iter().map(|(act, ..)| letter(*act)).collect());
                for (_, of, holder, ttl) in acts {
                    words.extend([of.len().to_string(), (*holder).to_owned(), ttl.to_string()]);
                }
                let Reply::Array(said) = command(&words.iter().map(String::as_str).collect::<Vec<_>>())
                else {
                    panic!("no list after {step:?}")
                };
                assert_eq!(said.len(), acts.len());
                Answer::Votes(
                    said.iter().zip(acts).map(|(said, act)| vote_on_all(said, act.1, &keys)).collect(),
                )
            }
            Step::Pass(key, old, new, ttl) => {
                let said = command(&["EVAL", PASS, "1", &keys[*key], old, new, &ttl.to_string()]);
                let Reply::Array(said) = said else { panic!("{said:?} after {step:?}") };
                Answer::Votes(said.iter().map(vote).collect())
            }
            Step::Plain(key, holder, ttl) => {
                let said = command(&["SET", &keys[*key], holder, "NX", "PX", &ttl.to_string()]);
                Answer::Votes(vec![match said {
                    Reply::Nil => Vote::Held(Incumbent::default()),
                    said if said.is_ok() => Vote::Granted,
                    said => panic!("{said:?} to a plain claim"),
                }])
            }
            Step::Set(key, value, ttl) => {
                let said = match ttl {
                    Some(ttl) => command(&["SET", &keys[*key], value, "PX", &ttl.to_string()]),
                    None => command(&["SET", &keys[*key], value]),
                };
                assert!(said.is_ok(), "{said:?}");
                Answer::Nothing
            }
            Step::Hash(key) => {
                // In one call, so that no other type is there in between.
                let script = "redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], 'owner', 'x')";
                assert_eq!(command(&["EVAL", script, "1", &keys[*key]]), Reply::Integer(1));
                Answer::Nothing
            }
            Step::Delete(key) => {
                command(&["DEL", &keys[*key]]);
                Answer::Nothing
            }
            Step::Look => {
                // In one call, so that all of it is of one moment.
                let script = "local said = {} for i, key in ipairs(KEYS) do local value = redis.pcall('GET', key) \
                              said[2 * i - 1] = type(value) == 'table' and '' or value or 'none' \
                              said[2 * i] = redis.call('PTTL', key) end return said";
                let count = keys.len().to_string();
                let words = ["EVAL", script, &count].into_iter().chain(keys.iter().map(String::as_str));
                let Reply::Array(said) = command(&words.collect::<Vec<_>>()) else { panic!("no list") };
                Answer::Keys(said.chunks(2).map(|pair| looked(&pair[0], &pair[1])).collect())
            }
            Step::Pause(_) | Step::UntilExpiry(..) => Answer::Nothing,
        }
    }

    /// What one that the master in memory may be answers and becomes, for each way its clock can go.
    fn tell(&self, from: &Master, step: &Step, before: u64, after: u64) -> Vec<(Answer, Master)> {
        if let Step::Pass(key, old, new, ttl) = *step {
            let acts = vec![(Act::Release, key, old, ttl), (Act::Claim, key, new, ttl)];
            return self.tell(from, &Step::Script(acts), before, after);
        }
        if let Step::Script(acts) = step {
            let mut ways = vec![(Vec::new(), from.clone(), before)];
            for &(act, key, holder, ttl) in acts {
                ways = ways
                    .into_iter()
                    .flat_map(|(votes, master, earliest)| {
                        (earliest..=after).map(move |now| (votes.clone(), master.clone(), now))
                    })
                    .map(|(mut votes, mut master, now)| {
                        votes.push(self.execute(&mut master, act, key, holder, ttl, now));
                        (votes, master, now)
                    })
                    .collect();
            }
            return ways.into_iter().map(|(votes, master, _)| (Answer::Votes(votes), master)).collect();
        }
        (before..=after)
            .map(|now| {
                let mut master = from.clone();
                (self.tell_at(&mut master, step, now), master)
            })
            .collect()
    }

    fn execute(
        &self,
        master: &mut Master,
        act: Act,
        key: usize,
        holder: &'static str,
        ttl: u64,
        now: u64,
    ) -> Vote {
        let key = Bytes::from(self.keys[key].clone());
        master.execute(act, &key, &Bytes::from(holder), whole(ttl), moment(now))
    }

    fn tell_at(&self, master: &mut Master, step: &Step, millis: u64) -> Answer {
        let now = moment(millis);
        let key = |key: usize| Bytes::from(self.keys[key].clone());
        match *step {
            Step::Fenced(act, fence, resource, holder, ttl) => {
                let act = (act, Some(fence));
                let (vote, number) =
                    master.execute_fenced(act, &key(resource), &Bytes::from(holder), whole(ttl), now);
                let vote = if matches!(vote, Vote::Failed(Fault::Uncounted(_))) { uncounted() } else { vote };
                return Answer::Numbered(vote, number);
            }
            Step::FencedAll(act, fence, of, holder, ttl) => {
                let keys: Vec<Bytes> = of.iter().map(|of| key(*of)).collect();
                let act = (act, Some(fence));
                let (vote, number) =
                    master.execute_all_fenced(act, &keys, &Bytes::from(holder), whole(ttl), now);
                let vote = if matches!(vote, Vote::Failed(Fault::Uncounted(_))) { uncounted() } else { vote };
                return Answer::Numbered(vote, number);
            }
            Step::LoseCounters => master.lose_counters(),
            Step::Recover(counter) => {
                let shards = self.keys.iter().map(|key| (fencing::shard(key.as_bytes()), counter));
                master.recover(&shards.collect::<Counters>());
            }
            Step::Plain(key, holder, ttl) => {
                return Answer::Votes(vec![self.execute(master, Act::Claim, key, holder, ttl, millis)]);
            }
            Step::All(ref acts) => {
                let votes = acts.iter().map(|&(act, of, holder, ttl)| {
                    let of: Vec<Bytes> = of.iter().map(|nth| key(*nth)).collect();
                    master.execute_all(act, &of, &Bytes::from(holder), whole(ttl), now)
                });
                return Answer::Votes(votes.collect());
            }
            Step::Set(resource, value, ttl) => {
                master.set(key(resource), value, ttl.map(Duration::from_millis), now);
            }
            Step::Hash(resource) => master.set_other_type(key(resource)),
            Step::Delete(resource) => master.delete(&key(resource)),
            Step::Look => {
                let look = |name: &String| {
                    (master.value(name.as_bytes(), now), master.remaining(name.as_bytes(), now))
                };
                return Answer::Keys(self.keys.iter().map(look).collect());
            }
            Step::Script(_) | Step::Pass(..) | Step::Pause(_) | Step::UntilExpiry(..) => {}
        }
        Answer::Nothing
    }
}

/// Runs `steps` on fresh keys, until they ran to their end.
fn run_all(bed: &Testbed, name: &str, keys: usize, steps: &[Step]) {
    let told = (0..200).any(|nth| {
        let mut pair = Pair::new(bed, &format!("{name}:{nth}"), keys);
        steps.iter().all(|step| pair.run(step))
    });
    assert!(told, "{name}: no try of 200 ran to its end within milliseconds");
}

fn bed() -> Testbed {
    Testbed::start(1).expect("a server program")
}

const fn letter(act: Act) -> &'static str {
    match act {
        Act::Claim => "c",
        Act::Watch => "w",
        Act::Raise => "R",
        Act::Renew => "x",
        Act::Heal => "h",
        Act::Release => "d",
        Act::QueueUp => "q",
        Act::Overtake => "o",
        Act::Leave => "l",
    }
}

/// The script's answer for one key, as the real transport reads it.
fn vote(said: &Reply) -> Vote {
    match said {
        Reply::Integer(1) => Vote::Granted,
        Reply::Integer(0) => Vote::Absent,
        Reply::Integer(2) => Vote::Held(Incumbent::default()),
        Reply::Bulk(told) if told.first() == Some(&b'=') => {
            let space = told.iter().position(|byte| *byte == b' ').expect("two parts");
            let (pttl, holder) = (String::from_utf8_lossy(&told[1..space]), &told[space + 1..]);
            let holder = (!holder.is_empty()).then(|| holder.into());
            let remaining = remaining(pttl.parse().expect("a number"));
            Vote::Held(Incumbent { holder, remaining, ..Incumbent::default() })
        }
        Reply::Bulk(words) if words.first() == Some(&b'!') => {
            let words = String::from_utf8_lossy(&words[1..]);
            Vote::Failed(Fault::Refused(words.trim_end().into()))
        }
        said => panic!("the script says {said:?}"),
    }
}

/// The answer for several keys, one of which it may name.
fn vote_on_all(said: &Reply, of: &[usize], keys: &[String]) -> Vote {
    let Reply::Bulk(told) = said else { return vote(said) };
    let (nth, told) = told.split_at(told.iter().position(|byte| *byte == b'=').expect("two parts"));
    let nth: usize = String::from_utf8_lossy(nth).parse().expect("a number");
    match vote(&Reply::Bulk(told.to_vec())) {
        Vote::Held(held) => {
            let resource = Some(keys[of[nth - 1]].as_bytes().into());
            Vote::Held(Incumbent { resource, ..held })
        }
        vote => panic!("{vote:?} in a text"),
    }
}

fn remaining(pttl: i64) -> Remaining {
    match pttl {
        -1 => Remaining::Forever,
        pttl => Remaining::For(Duration::from_millis(pttl.try_into().expect("a time"))),
    }
}

fn looked(value: &Reply, pttl: &Reply) -> (Option<Bytes>, Option<Remaining>) {
    match (value, pttl.integer().expect("a number")) {
        (_, -2) => (None, None),
        (Reply::Bulk(value), pttl) => (Some(Bytes::copy_from_slice(value)), Some(remaining(pttl))),
        (value, _) => panic!("the master looks like {value:?}"),
    }
}

/// Ttls down to a few milliseconds, which no client would ask for.
fn whole(millis: u64) -> Ttl {
    let policy = Policy::new().with_master_timeout(Duration::from_millis(1));
    Ttl::new(Duration::from_millis(millis), &policy).expect("at least five milliseconds")
}

/// The answer to an act that has to do with a counter.
fn numbered(said: &Reply, otherwise: impl Fn(&Reply) -> Vote) -> Answer {
    match said {
        Reply::Bulk(text) if text.first() == Some(&b'+') => {
            let number = std::str::from_utf8(&text[1..]).expect("digits").parse().expect("a number");
            Answer::Numbered(Vote::Granted, Some(number))
        }
        Reply::Bulk(text) if text == b"~" => Answer::Numbered(uncounted(), None),
        said => Answer::Numbered(otherwise(said), None),
    }
}

/// Holder, shards and number in one argument.
fn fenced_holder(holder: &str, fence: Fence, keys: &[String]) -> String {
    let shards: Vec<String> = keys.iter().map(|key| fencing::shard(key.as_bytes()).to_string()).collect();
    let shards = shards.join(",");
    match fence {
        Fence::Propose(number) => format!("{holder}|{shards}|{number}"),
        Fence::Raise { seen, to } => format!("{holder}|{seen}|{shards}|{to}"),
        Fence::Restore(token) => format!("{holder}|{shards}|{token}"),
    }
}

/// The process that the counters belong to.
const RUN: &str = "this one";

fn uncounted() -> Vote {
    Vote::Failed(Fault::Uncounted("".into()))
}

/// Milliseconds of the clock that both masters read.
#[allow(clippy::disallowed_methods, reason = "the real master's clock is this machine's wall clock")]
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    since.as_millis().try_into().expect("before the year 500 million")
}

const fn moment(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

/// Hits the very millisecond: sleeps for most of it and watches the clock for the rest.
fn wait_until(end: u64) {
    while let Some(left) = end.checked_sub(wall_clock()).filter(|left| *left > 0) {
        if left > 2 { thread::sleep(Duration::from_millis(left - 2)) } else { thread::yield_now() }
    }
}

const ALL: [Act; 5] = [Act::Claim, Act::Watch, Act::Renew, Act::Heal, Act::Release];
/// Ours, another's, and values that nearly are ours.
const US: &str = "web-1:1/us";
const THEM: &str = "web-2:2/them";

fn one(act: Act, key: usize, holder: &'static str, ttl: u64) -> Step {
    Step::Script(vec![(act, key, holder, ttl)])
}

fn all(act: Act, of: &'static [usize], holder: &'static str, ttl: u64) -> Step {
    Step::All(vec![(act, of, holder, ttl)])
}

/// Every act on every kind of key.
#[test]
fn every_act_meets_every_kind_of_key() {
    let bed = bed();
    let kinds: [(&str, &[Step]); 14] = [
        ("none", &[]),
        ("ours", &[Step::Plain(0, US, 60_000)]),
        ("ours by the script", &[one(Act::Claim, 0, US, 60_000)]),
        ("ours by watching", &[one(Act::Watch, 0, US, 60_000)]),
        ("ours by healing", &[one(Act::Heal, 0, US, 60_000)]),
        ("ours, with less time", &[Step::Plain(0, US, 400)]),
        ("ours, fenced", &[Step::Set(0, "web-1:1/us|7", Some(60_000))]),
        ("ours, persisted", &[Step::Set(0, US, None)]),
        ("ours, fenced and persisted", &[Step::Set(0, "web-1:1/us|", None)]),
        ("another's", &[Step::Plain(0, THEM, 60_000)]),
        ("another's, for ever", &[Step::Set(0, "1", None)]),
        ("longer than ours", &[Step::Set(0, "web-1:1/us7", Some(60_000))]),
        ("shorter than ours", &[Step::Set(0, "web-1:1/u", Some(60_000))]),
        ("of another type", &[Step::Hash(0)]),
    ];
    for (kind, before) in kinds {
        for act in ALL {
            let then = [
                one(act, 0, US, 50_000),
                Step::Look,
                one(Act::Watch, 0, THEM, 1_000),
                Step::Look,
                Step::Delete(0),
                Step::Look,
            ];
            run_all(&bed, &format!("{act:?} on {kind}"), 1, &[before, &then].concat());
        }
        let then = [Step::Pass(0, US, THEM, 50_000), Step::Look, Step::Pass(0, THEM, US, 40_000), Step::Look];
        run_all(&bed, &format!("from hand to hand on {kind}"), 1, &[before, &then].concat());
    }
    let nothing =
        [Step::Set(0, "", None), one(Act::Watch, 0, US, 1_000), one(Act::Renew, 0, US, 1_000), Step::Look];
    run_all(&bed, "empty", 1, &nothing);
}

/// Every act that has to do with a counter, on every kind of key, with the counter there and lost.
#[test]
fn every_fenced_act_meets_every_kind_of_key() {
    let bed = bed();
    let kinds: [(&str, &[Step]); 8] = [
        ("none", &[]),
        ("ours", &[Step::Fenced(Act::Claim, Fence::Propose(0), 0, US, 60_000)]),
        ("ours, with less time", &[Step::Set(0, "web-1:1/us|41", Some(400))]),
        ("ours, of another incarnation", &[Step::Set(0, "web-1:1/us|7", Some(60_000))]),
        ("another's", &[Step::Plain(0, THEM, 60_000)]),
        ("another's, fenced", &[Step::Set(0, "web-2:2/them|41", Some(60_000))]),
        ("longer than ours", &[Step::Set(0, "web-1:1/us7|41", Some(60_000))]),
        ("of another type", &[Step::Hash(0)]),
    ];
    let acts = [
        (Act::Claim, Fence::Propose(0)),
        (Act::Claim, Fence::Propose(1_000)),
        (Act::Claim, Fence::Propose(fencing::GREATEST)),
        (Act::Watch, Fence::Propose(12)),
        (Act::Raise, Fence::Raise { seen: 41, to: 90 }),
        (Act::Raise, Fence::Raise { seen: 41, to: 3 }),
        (Act::Heal, Fence::Restore(FencingToken::new(77))),
        (Act::Heal, Fence::Restore(FencingToken::new(3))),
    ];
    for counted in [true, false] {
        for (kind, before) in kinds {
            for (act, fence) in acts {
                let begin = [Step::LoseCounters, Step::Recover(40)];
                let lose = [Step::LoseCounters];
                let then = [
                    Step::Fenced(act, fence, 0, US, 50_000),
                    Step::Look,
                    // What the counter is by now shows in what a claim takes.
                    Step::Delete(0),
                    Step::Fenced(Act::Claim, Fence::Propose(0), 0, THEM, 1_000),
                    Step::Look,
                    one(Act::Release, 0, THEM, 1_000),
                    Step::Look,
                ];
                let lose: &[Step] = if counted { &[] } else { &lose };
                let name = format!("{act:?} {fence:?} on {kind}, {counted}");
                run_all(&bed, &name, 1, &[&begin, before, lose, &then].concat());
            }
        }
    }
    let used_up = [
        Step::LoseCounters,
        Step::Recover(fencing::GREATEST - 1),
        Step::Fenced(Act::Claim, Fence::Propose(5), 0, US, 60_000),
        one(Act::Release, 0, US, 1_000),
        Step::Fenced(Act::Claim, Fence::Propose(5), 0, US, 60_000),
        Step::Look,
    ];
    run_all(&bed, "used up", 1, &used_up);
}

/// Every fenced act on every pair of keys: one number is for both, above both counters.
#[test]
fn fenced_acts_on_several_keys_are_for_all_or_none() {
    let bed = bed();
    let kinds: [Kind; 6] = [
        ("none", Step::Delete),
        ("ours", |key| Step::Set(key, "web-1:1/us|41", Some(60_000))),
        ("ours, of another incarnation", |key| Step::Set(key, "web-1:1/us|7", Some(400))),
        ("another's", |key| Step::Plain(key, THEM, 59_000)),
        ("longer than ours", |key| Step::Set(key, "web-1:1/us7|41", None)),
        ("of another type", Step::Hash),
    ];
    let acts = [
        (Act::Claim, Fence::Propose(0)),
        (Act::Watch, Fence::Propose(1_000)),
        (Act::Raise, Fence::Raise { seen: 41, to: 90 }),
        (Act::Raise, Fence::Raise { seen: 41, to: 3 }),
        (Act::Heal, Fence::Restore(FencingToken::new(77))),
    ];
    for (first, one) in kinds {
        for (second, other) in kinds {
            for (act, fence) in acts {
                for counted in [true, false] {
                    let mut steps = vec![Step::LoseCounters, Step::Recover(40)];
                    if !counted {
                        steps.push(Step::LoseCounters);
                    }
                    steps.extend([
                        one(0),
                        other(1),
                        // Its counter is above the others.
                        Step::Fenced(Act::Claim, Fence::Propose(60), 2, US, 30_000),
                        Step::Look,
                        Step::FencedAll(act, fence, &[1, 0], US, 50_000),
                        Step::Look,
                        Step::Delete(0),
                        Step::Delete(1),
                        Step::Delete(2),
                        Step::FencedAll(Act::Claim, Fence::Propose(0), &[0, 2], THEM, 9_000),
                        Step::Look,
                        Step::Fenced(Act::Claim, Fence::Propose(0), 1, THEM, 9_000),
                        all(Act::Release, &[2, 1, 0], THEM, 1_000),
                        Step::Look,
                    ]);
                    run_all(
                        &bed,
                        &format!("{act:?} {fence:?} on {first} and {second}, {counted}"),
                        3,
                        &steps,
                    );
                }
            }
        }
    }
}

/// Every act on every pair of keys, one of which it would take alone and the other not.
#[test]
fn acts_on_several_keys_are_for_all_or_none() {
    let bed = bed();
    let kinds: [Kind; 8] = [
        ("none", Step::Delete),
        ("ours", |key| Step::Plain(key, US, 60_000)),
        ("ours, with less time", |key| Step::Plain(key, US, 400)),
        ("ours, fenced", |key| Step::Set(key, "web-1:1/us|7", Some(60_000))),
        ("another's", |key| Step::Plain(key, THEM, 59_000)),
        ("another's, for ever", |key| Step::Set(key, "web-1:1/us7", None)),
        ("empty", |key| Step::Set(key, "", Some(90_000))),
        ("of another type", Step::Hash),
    ];
    for (first, one) in kinds {
        for (second, other) in kinds {
            for act in ALL {
                let steps = [
                    one(0),
                    other(1),
                    Step::Look,
                    all(act, &[1, 0], US, 50_000),
                    Step::Look,
                    all(Act::Heal, &[0, 1, 2], US, 55_000),
                    Step::Look,
                    all(Act::Renew, &[2, 0], US, 57_000),
                    all(Act::Watch, &[2, 1], THEM, 50_000),
                    all(Act::Release, &[0, 1, 2], US, 1_000),
                    Step::Look,
                ];
                run_all(&bed, &format!("{act:?} on {first} and {second}"), 3, &steps);
            }
        }
    }
}

/// There is no room for the new holder: the old one's key goes all the same, as by two commands.
#[test]
fn a_master_without_room_takes_a_lock_back_and_gives_it_to_nobody() {
    let bed = bed();
    let mut wire = bed[0].wire().expect("the master is up");
    let mut command = |words: &[&str]| wire.command(words).expect("the master answers");
    assert!(command(&["SET", "key", US]).is_ok());
    assert!(command(&["CONFIG", "SET", "maxmemory", "1"]).is_ok());
    let said = command(&["EVAL", PASS, "1", "key", US, THEM, "50000"]);
    let Reply::Array(said) = said else { panic!("{said:?}") };
    let votes: Vec<Vote> = said.iter().map(vote).collect();
    assert_eq!(votes[0], Vote::Granted);
    let refused =
        |vote: &Vote| matches!(vote, Vote::Failed(Fault::Refused(words)) if words.starts_with("OOM"));
    assert!(votes.len() == 2 && refused(&votes[1]), "{votes:?}");
    assert_eq!(command(&["EXISTS", "key"]), Reply::Integer(0));
}

/// A renewal raises the remaining time and never lowers it.
#[test]
fn a_renewal_only_raises() {
    let bed = bed();
    for act in [Act::Renew, Act::Heal] {
        let mut steps = vec![Step::Plain(0, US, 30_000)];
        for ttl in [10_000, 30_000, 30_001, 29_999, 60_000, 5, 59_000] {
            steps.extend([one(act, 0, US, ttl), Step::Look, Step::Pause(1)]);
        }
        run_all(&bed, &format!("raise by {act:?}"), 1, &steps);
    }
}

/// Around the last millisecond: a key whose time is up is there in it, and gone in the next.
#[test]
fn keys_end_in_the_same_millisecond() {
    let bed = bed();
    for later in -2..=3 {
        for act in ALL {
            let steps = [
                Step::Plain(0, US, 8),
                Step::UntilExpiry(0, later),
                one(act, 0, US, 20),
                Step::Look,
                // And of a key that a renewal made last.
                Step::UntilExpiry(0, later),
                Step::Plain(0, THEM, 9),
                Step::Look,
            ];
            run_all(&bed, &format!("{act:?} {later} ms after the end"), 1, &steps);
        }
    }
}

/// Acts on many keys, and many on one, in one call: each sees what those before it did.
#[test]
fn acts_of_one_call_follow_each_other() {
    let acts = vec![
        (Act::Claim, 0, US, 500),
        (Act::Watch, 0, THEM, 500),
        (Act::Renew, 0, US, 900),
        (Act::Renew, 1, US, 900),
        (Act::Heal, 1, US, 900),
        (Act::Watch, 2, US, 900),
        (Act::Release, 2, US, 900),
        (Act::Release, 0, THEM, 900),
        (Act::Release, 0, US, 900),
        (Act::Watch, 0, THEM, 500),
        (Act::Claim, 1, THEM, 700),
    ];
    run_all(&bed(), "batch", 3, &[Step::Hash(2), Step::Script(acts), Step::Look]);
}

/// The same of locks on several keys that overlap: what one may not have is no concern of the others.
#[test]
fn locks_on_several_keys_of_one_call_follow_each_other() {
    let acts: Vec<OnAll> = vec![
        (Act::Claim, &[0, 1], US, 500),
        (Act::Watch, &[2, 1], THEM, 500),
        (Act::Claim, &[2, 3, 4], THEM, 700),
        (Act::Renew, &[1, 0], US, 900),
        (Act::Renew, &[1, 5], US, 900),
        (Act::Release, &[0, 2], US, 900),
        (Act::Heal, &[0, 1], US, 950),
        (Act::Watch, &[0, 5], THEM, 500),
        (Act::Release, &[4, 2, 3], THEM, 900),
        (Act::Claim, &[3, 4, 6], US, 900),
        (Act::Claim, &[3, 4], THEM, 800),
    ];
    run_all(&bed(), "lists", 7, &[Step::Hash(6), Step::All(acts), Step::Look]);
}

/// Who stands where in which line, and what is answered to him; several acts in one call as well.
#[test]
fn lines_are_kept_alike() {
    let bed = bed();
    let mut wire = bed[0].wire().expect("the master is up");
    let mut master = Master::default();
    let mut dice = Dice(7);
    let lines = ["quorlock:line:a", "quorlock:line:b"];
    for nth in 0..600 {
        let acts: Vec<_> = (0..=dice.roll(3))
            .map(|_| {
                let act = dice.of(&[Act::QueueUp, Act::QueueUp, Act::QueueUp, Act::Overtake, Act::Leave]);
                let line = dice.of(&lines);
                (act, format!("{line}:bell:{}", dice.roll(5)), line)
            })
            .collect();
        let (count, letters) =
            (acts.len().to_string(), acts.iter().map(|(act, ..)| letter(*act)).collect::<String>());
        let words = ["EVAL", LINE, &count].into_iter().chain(acts.iter().map(|(_, bell, _)| bell.as_str()));
        let words: Vec<_> =
            words.chain([letters.as_str()]).chain(acts.iter().map(|(_, _, line)| *line)).collect();
        let Reply::Array(said) = wire.command(&words).expect("an answer") else { panic!("no list") };
        for ((act, bell, line), said) in acts.iter().zip(&said) {
            let (bell, line) = (Bytes::from(bell.clone()), Bytes::from(*line));
            let (vote, number) = master.execute_fenced((*act, None), &bell, &line, whole(1_000), moment(nth));
            assert_eq!(
                numbered(said, self::vote),
                Answer::Numbered(vote, number),
                "{act:?} after {nth} calls"
            );
        }
    }
    for bell in 0..5 {
        for line in lines {
            let bell = format!("{line}:bell:{bell}");
            assert_eq!(wire.command(&["EXISTS", &bell]).expect("an answer"), Reply::Integer(0));
        }
    }
    for line in lines {
        let ttl = wire.command(&["PTTL", line]).expect("an answer").integer().expect("a time");
        assert!((1..=60_000).contains(&ttl) || ttl == -2, "{line} stays for {ttl} ms");
    }
}

/// Seeded sequences, with short ttls and pauses that end about when a key does.
#[test]
fn chance_finds_no_difference() {
    let bed = bed();
    let told: usize = thread::scope(|scope| {
        let bed = &bed;
        let run = move |seed: u64| (0..12).map(|nth| random_run(bed, seed * 1_000 + nth)).sum::<usize>();
        let runs: Vec<_> = (0..4).map(|seed| scope.spawn(move || run(seed))).collect();
        runs.into_iter().map(|run| run.join().expect("no difference")).sum()
    });
    assert!(told >= 300, "{told} steps of {} told something", 4 * 12 * STEPS);
}

const STEPS: usize = 60;

/// How many steps it ran.
fn random_run(bed: &Testbed, seed: u64) -> usize {
    let mut dice = Dice(seed);
    let mut pair = Pair::new(bed, &format!("chance:{seed}"), 2);
    let steps: Vec<Step> = (0..STEPS).map(|_| dice.step()).collect();
    steps.iter().take_while(|step| pair.run(step)).count()
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        splitmix::next(&mut self.0) % sides
    }

    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[usize::try_from(self.roll(choice.len() as u64)).expect("small")]
    }

    fn act(&mut self) -> (Act, usize, &'static str, u64) {
        let act = self.of(&ALL);
        (act, self.of(&[0, 0, 1]), self.of(&[US, US, THEM]), self.of(&[5, 6, 8, 12, 20, 40, 1_000]))
    }

    fn step(&mut self) -> Step {
        let key = self.of(&[0, 0, 1]);
        match self.roll(21) {
            20 => Step::Pass(key, self.of(&[US, THEM]), self.of(&[US, THEM]), self.of(&[5, 8, 20])),
            0..=6 => Step::Script(vec![self.act()]),
            7 => Step::Script((0..4).map(|_| self.act()).collect()),
            8 => {
                let (act, _, holder, ttl) = self.act();
                all(act, if self.roll(2) == 0 { &[0, 1] } else { &[1, 0] }, holder, ttl)
            }
            9 => Step::Plain(key, self.of(&[US, THEM]), self.of(&[5, 7, 15, 30])),
            10 => {
                let value = self.of(&[US, "web-1:1/us|3", "web-2:2/them|4", "1", "web-1:1/us7", ""]);
                Step::Set(key, value, self.of(&[None, Some(5), Some(9), Some(30)]))
            }
            11 => self.of(&[Step::Hash as fn(usize) -> Step, Step::Delete])(key),
            12..=13 => Step::Pause(self.of(&[1, 2, 4, 9])),
            14..=18 => Step::UntilExpiry(key, self.of(&[-2, -1, 0, 0, 1, 1, 2])),
            _ => Step::Look,
        }
    }
}
