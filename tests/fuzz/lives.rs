//! One life of an attempt, told by bytes: any answers, in any order, late or never, connections that break, calls of
//! its user, at any time. What the client does with the machine is done here; what masters do is not: they lie freely.

use std::time::Duration;

use quorlock::Policy;
use quorlock::protocol::attempt::{Attempt, Stage};
use quorlock::protocol::fanout::{Act, Dispatch, Fence, Link};
use quorlock::protocol::fencing::FencingToken;
use quorlock::protocol::quorum::{MasterId, Quorum};
use quorlock::protocol::request::Ttl;
use quorlock::protocol::time::Moment;
use quorlock::protocol::votes::{Fault, Incumbent, Remaining, Reply, Vote};

const MASTERS: usize = 5;

/// Lives it, and checks after each step what must hold whatever the masters say.
pub(crate) fn live(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let mut next = || bytes.next();
    let (Ok(quorum), Some(first)) = (Quorum::majority(MASTERS), next()) else { return };
    let quorum = if first & 1 == 0 { quorum } else { quorum.with_min_votes(4).unwrap_or(quorum) };
    let policy = Policy::new();
    let mut asked = Duration::from_millis(if first & 2 == 0 { 600 } else { 5_000 });
    let Ok(ttl) = Ttl::new(asked, &policy) else { return };
    let mut now = Moment::from_nanos(10_000_000_000);
    let timeout = policy.master_timeout();
    let mut attempt = if first & 4 == 0 {
        let claim = Attempt::claim(quorum, ttl, timeout, now);
        let claim = if first & 8 == 0 { claim } else { claim.watching(quorum.everyone()) };
        if first & 16 == 0 { claim } else { claim.fenced(u64::from(first >> 5)) }
    } else {
        Attempt::adopt(quorum, ttl, timeout, now)
    };
    if first & 16 != 0 {
        attempt = attempt.of_several();
    }
    let mut out: Vec<Dispatch> = Vec::new();
    // The latest moment to which each master's yes could carry the lease.
    let mut carried = [Moment::from_nanos(0); MASTERS];
    let mut links = [1_u32; MASTERS];
    // What each master's key took of its counter, and what the counter is known to have reached while that key stood.
    let mut counted = [None::<(u64, u64)>; MASTERS];
    loop {
        while let Some(dispatch) = attempt.next_dispatch() {
            assert!(dispatch.stamp <= now, "stamped in the future: {dispatch:?}");
            out.push(dispatch);
        }
        let before = attempt.stage();
        let Some(step) = next() else { break };
        match step % 12 {
            0..=4 if !out.is_empty() => {
                let nth = if step & 128 == 0 { 0 } else { usize::from(next().unwrap_or(0)) % out.len() };
                let dispatch = out.remove(nth);
                let index = dispatch.to.index();
                let reply = reply(next().unwrap_or(0), links[index]);
                count(&mut counted[index], &dispatch, &reply);
                if reply.vote == Vote::Granted && !matches!(dispatch.act, Act::Release | Act::Raise) {
                    carried[index] = carried[index].max(dispatch.stamp.plus(dispatch.ttl.validity()));
                }
                let _ = attempt.wants(&dispatch, now);
                attempt.on_reply(&dispatch, reply, now);
            }
            5 => now = now.plus(Duration::from_micros(u64::from(next().unwrap_or(0)) * 100)),
            6 => now = now.plus(Duration::from_millis(u64::from(next().unwrap_or(0)) * 10)),
            7 => now = attempt.next_time().filter(|due| *due != Moment::NEVER).unwrap_or(now).max(now),
            8 => attempt.on_time(now),
            9 => {
                let index = usize::from(next().unwrap_or(0)) % (MASTERS + 1);
                if let Some(master) = MasterId::new(index) {
                    if let Some(link) = links.get_mut(index) {
                        *link += 1;
                    }
                    attempt.on_link(master, step & 128 != 0, now);
                }
            }
            10 => match next().unwrap_or(0) % 6 {
                0 => attempt.release(now),
                1 => attempt.abandon(now),
                2 => attempt.watch_over(now.plus(asked / 3), asked / 3),
                3 => attempt.end_hold_at(now.plus(asked * 2), now),
                4 => {
                    asked += Duration::from_millis(250);
                    if let Some(round) =
                        Ttl::new(asked, &policy).ok().and_then(|ttl| attempt.extend(ttl, now))
                    {
                        let _ = attempt.extension(round, now);
                    }
                }
                _ => attempt.lapse(),
            },
            _ => {
                let _ = attempt.take_news();
            }
        }
        check(&attempt, before, carried, quorum);
        if before == Stage::Claiming && attempt.stage() == Stage::Held {
            check_token(&attempt, counted, quorum);
        }
    }
}

fn reply(byte: u8, link: u32) -> Reply {
    let held = |remaining| {
        let holder = Some(b"web-9:1/other".as_slice().into());
        Vote::Held(Incumbent { holder, remaining, ..Incumbent::default() })
    };
    let vote = match byte % 8 {
        0..=2 => Vote::Granted,
        3 => held(Remaining::For(Duration::from_millis(u64::from(byte)))),
        4 => held(Remaining::Forever),
        5 => Vote::Absent,
        6 => Vote::Unknown(Fault::TimedOut),
        _ => return Reply::unsent(Fault::Overloaded),
    };
    let number = (byte & 64 == 0).then_some(u64::from(byte >> 4));
    Reply { vote, link: Some(Link(link.saturating_sub(u32::from(byte >> 7)))), number }
}

/// Books what an answer tells of the counter.
fn count(counted: &mut Option<(u64, u64)>, dispatch: &Dispatch, reply: &Reply) {
    match (dispatch.fence, &reply.vote, reply.number) {
        (Some(Fence::Propose(_)), Vote::Granted, Some(number)) => *counted = Some((number, number)),
        (Some(Fence::Raise { to, .. }), Vote::Granted, _) => {
            *counted = counted.map(|(took, reached)| (took, reached.max(to)));
        }
        (Some(Fence::Raise { .. }), ..) => *counted = None,
        _ => {}
    }
}

fn check_token(attempt: &Attempt, counted: [Option<(u64, u64)>; MASTERS], quorum: Quorum) {
    let Some(token) = attempt.token().map(FencingToken::as_u64) else { return };
    let backs = |(took, reached): &(u64, u64)| *took <= token && token <= *reached;
    let backing = counted.iter().flatten().filter(|known| backs(known)).count();
    assert!(backing >= quorum.needed(), "token {token} of {counted:?} (rule 17)");
}

fn check(attempt: &Attempt, before: Stage, mut carried: [Moment; MASTERS], quorum: Quorum) {
    let after = attempt.stage();
    match before {
        Stage::Released | Stage::Failed => assert_eq!(before, after, "what is over came back (hazard H26)"),
        // A holder may give back what it lost, too.
        Stage::Lost(_) => assert!(after == before || after == Stage::Released, "{before:?} to {after:?}"),
        Stage::Held => assert!(!matches!(after, Stage::Claiming | Stage::Failed), "{before:?} to {after:?}"),
        Stage::Claiming => {}
    }
    if let Some(deadline) = attempt.deadline() {
        carried.sort_unstable();
        let carried = carried[MASTERS - quorum.needed()];
        assert!(
            deadline <= carried,
            "valid until {deadline:?}, w masters said yes until {carried:?} (rule 3)"
        );
    }
    if attempt.is_finished() {
        assert!(attempt.next_time().is_none(), "finished, and yet something is due");
    }
    let _ = (attempt.tally(), attempt.backing(), attempt.strays(), attempt.released(), attempt.risk_begins());
}
