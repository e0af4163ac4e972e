//! Which masters take part in fencing, and how one that lost its counters has them again (rule 17).
//!
//! Nothing of this runs before the first request for a fencing token. Then a *pass* looks at every master that votes:
//!
//! * it counts, if its counters are those of the very process that the connection leads to;
//! * if nobody has counters, and nobody is away, fencing was never used here: all begin at zero;
//! * else a master that lost its counters takes the greatest of N − w + 1 that count. It votes, so its quarantine is
//!   over, and that was known *before* the others were read: no claim that its old votes support is under way;
//! * where fewer count, the last tokens may be forgotten. Nobody guesses: an operator sets a floor.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::fred::clients::Client;
use ::fred::interfaces::LuaInterface;
use futures::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::admission::ADMITTED;
use super::connect::explain;
use crate::protocol::fencing::{self, Counters};
use crate::protocol::quorum::{MasterId, Quorum};
use crate::transport::script::COUNTERS;

const COUNTERS_SCRIPT: &str = include_str!("../lua/counters.lua");

/// How often masters beyond the w needed are seen to.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection that votes, and the process it leads to.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) client: Client,
    pub(super) run_id: Arc<str>,
}

/// One master's part in fencing, as far as this client knows.
#[derive(Debug)]
pub(super) struct Part {
    master: MasterId,
    name: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    line: Option<Line>,
    counts: bool,
    why_not: Option<Arc<str>>,
}

/// What a look at a master's counters shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Counts,
    Lost,
    None,
    Away(Arc<str>),
}

impl Part {
    pub(super) fn new(master: MasterId, name: String) -> Arc<Self> {
        Arc::new(Self { master, name, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The master votes on a new connection, or on none.
    pub(super) fn vote_on(&self, line: Option<Line>) {
        *self.state() = State { line, ..State::default() };
    }

    /// The master said that it does not count.
    pub(super) fn doubt(&self) {
        self.state().counts = false;
    }

    /// Whether it counts; `None` if it does not vote.
    pub(super) fn counts(&self) -> Option<bool> {
        let state = self.state();
        state.line.as_ref().map(|_| state.counts)
    }

    pub(super) fn why_not(&self) -> Option<Arc<str>> {
        self.state().why_not.clone()
    }

    fn line(&self) -> Option<Line> {
        self.state().line.clone()
    }

    /// Notes what a pass found, unless it was another process. True if the reason is a new one.
    fn note(&self, line: &Line, why_not: Option<Arc<str>>) -> bool {
        let mut state = self.state();
        if state.line.as_ref().is_none_or(|now| now.run_id != line.run_id) {
            return false;
        }
        state.counts = why_not.is_none();
        let news = state.why_not != why_not;
        state.why_not = why_not;
        news
    }
}

/// At most one pass at a time.
#[derive(Debug, Default)]
pub(super) struct Passes {
    under_way: AtomicBool,
    ended: Notify,
    last: Mutex<Option<Instant>>,
}

impl Passes {
    /// Begins a pass, unless one is under way, or was lately and it is not urgent.
    pub(super) fn begin(self: &Arc<Self>, urgent: bool) -> Option<Pass> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !urgent && last.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        if self.under_way.swap(true, Ordering::SeqCst) {
            return None;
        }
        *last = Some(Instant::now());
        Some(Pass(self.clone()))
    }

    /// Waits for the end of the pass under way, if there is one.
    pub(super) async fn ended(&self) {
        let ended = self.ended.notified();
        if self.under_way.load(Ordering::SeqCst) {
            ended.await;
        }
    }
}

/// A pass under way; dropped, it has ended.
#[derive(Debug)]
pub(super) struct Pass(Arc<Passes>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.under_way.store(false, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}

impl Pass {
    /// Looks at all masters, and sees to those that do not count.
    pub(super) async fn run(self, parts: Vec<Arc<Part>>, quorum: Quorum) {
        let lines: Vec<Option<Line>> = parts.iter().map(|part| part.line()).collect();
        let seen = join_all(lines.iter().map(look_on)).await;
        let first = seen.iter().all(|seen| *seen == Seen::None);
        let reads = if first || seen.iter().all(|seen| *seen == Seen::Counts) {
            Vec::new()
        } else {
            let counting = lines.iter().zip(&seen).filter(|(_, seen)| **seen == Seen::Counts);
            let lines: Vec<&Line> = counting.filter_map(|(line, _)| line.as_ref()).collect();
            join_all(lines.into_iter().map(read)).await.into_iter().flatten().collect()
        };
        let shortage = shortage(&parts, quorum, &seen, reads.len());
        let recovered = fencing::recover(quorum, reads);
        let work = parts.iter().zip(&lines).zip(&seen).map(async |((part, line), seen)| {
            let Some(line) = line else { return };
            let why_not = match (seen, &recovered) {
                (Seen::Counts, _) => None,
                (Seen::Away(why), _) => Some(why.clone()),
                (Seen::None, _) if first => recover(line, true, &Counters::new()).await.err(),
                (Seen::Lost | Seen::None, Some(counters)) => recover(line, false, counters).await.err(),
                (Seen::Lost | Seen::None, None) => Some(shortage.clone()),
            };
            let recovering = *seen != Seen::Counts;
            match (part.note(line, why_not.clone()), why_not) {
                (_, None) if recovering => tracing::info!(master = %part.name, "takes part in fencing"),
                (true, Some(why)) => tracing::error!(master = %part.name, %why, "takes no part in fencing"),
                _ => {}
            }
        });
        join_all(work).await;
    }
}

/// Why those that lost their counters cannot have them again.
fn shortage(parts: &[Arc<Part>], quorum: Quorum, seen: &[Seen], reads: usize) -> Arc<str> {
    let those = |which: &dyn Fn(&Seen) -> bool| {
        let those = parts.iter().zip(seen).filter(|(_, seen)| which(seen));
        those.map(|(part, _)| format!("{} {}", part.master, part.name)).collect::<Vec<_>>().join(", ")
    };
    let away = those(&|seen| matches!(seen, Seen::Away(_)));
    let needed = fencing::reads_to_recover(quorum);
    if !seen.iter().any(|seen| matches!(seen, Seen::Counts | Seen::Lost)) {
        return format!(
            "fencing was never used on the masters that vote, but {away} cannot be asked: all {} must be there once \
             (or: quorlock fence-floor)",
            quorum.masters()
        )
        .into();
    }
    if !away.is_empty() {
        return format!(
            "it lost its counters and needs those of {needed} other masters, of which {reads} can be asked; {away} \
             cannot"
        )
        .into();
    }
    let lost = those(&|seen| matches!(seen, Seen::Lost | Seen::None));
    format!(
        "{lost} lost their counters together, and only {reads} of the {needed} others needed still have theirs: tokens \
         could repeat. Set a floor above all tokens handed out: quorlock fence-floor"
    )
    .into()
}

async fn look_on(line: &Option<Line>) -> Seen {
    match line {
        Some(line) => look(&line.client, &line.run_id).await,
        None => Seen::Away("it does not vote".into()),
    }
}

async fn look(client: &Client, run_id: &str) -> Seen {
    let said = client.eval::<String, _, _, _>(COUNTERS_SCRIPT, vec![COUNTERS], vec![run_id]);
    match said.await {
        Ok(said) if said == "counts" => Seen::Counts,
        Ok(said) if said == "lost" => Seen::Lost,
        Ok(said) if said == "none" => Seen::None,
        Ok(said) => Seen::Away(format!("a look at its counters says {said:?}").into()),
        Err(error) => Seen::Away(explain(&error).into()),
    }
}

/// All counters, if they are those of this process.
async fn read(line: &Line) -> Option<Counters> {
    let counted = read_any(&line.client, &line.run_id).await.ok()?;
    (counted.seen == Seen::Counts).then_some(counted.counters)
}

/// A master's counters, and whether they can be relied on.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) seen: Seen,
    pub(super) counters: Counters,
}

pub(super) async fn read_any(client: &Client, run_id: &str) -> Result<Counted, String> {
    let said = client.eval::<Vec<String>, _, _, _>(COUNTERS_SCRIPT, vec![COUNTERS], vec![run_id, "all"]);
    let said = said.await.map_err(|error| explain(&error))?;
    let mut counted = Counted { seen: Seen::None, counters: Counters::new() };
    for pair in said.chunks_exact(2) {
        match (pair[0].parse(), pair[1].parse()) {
            (Ok(shard), Ok(counter)) => _ = counted.counters.insert(shard, counter),
            _ if pair[0] == "run" && pair[1] == run_id => counted.seen = Seen::Counts,
            _ if pair[0] == "run" => {}
            _ => return Err(format!("its counter {} is no number: {:?}", pair[0], pair[1])),
        }
    }
    if !said.is_empty() && counted.seen == Seen::None {
        counted.seen = Seen::Lost;
    }
    Ok(counted)
}

async fn recover(line: &Line, first: bool, counters: &Counters) -> Result<(), Arc<str>> {
    raise(&line.client, &line.run_id, first, counters).await
}

/// Raises the counters of a master, and has it take part.
pub(super) async fn raise(
    client: &Client,
    run_id: &str,
    first: bool,
    counters: &Counters,
) -> Result<(), Arc<str>> {
    let mut args = vec![run_id.to_owned(), if first { "first" } else { "" }.to_owned()];
    args.extend(counters.iter().flat_map(|(shard, counter)| [shard.to_string(), counter.to_string()]));
    let said =
        client.eval::<String, _, _, _>(include_str!("../lua/recover.lua"), vec![COUNTERS, ADMITTED], args);
    match said.await {
        Ok(said) if said == "counts" => Ok(()),
        Ok(said) if said == "quarantine" => Err("its quarantine is not over".into()),
        Ok(said) => Err(format!("its counters changed meanwhile ({said})").into()),
        Err(error) => Err(explain(&error).into()),
    }
}
