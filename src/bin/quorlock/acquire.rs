//! `quorlock acquire`: takes a lock and leaves it to its ttl.

use std::time::Duration;

use quorlock::protocol::request::Ttl;
use quorlock::protocol::votes::Tally;
use quorlock::{FencingToken, Guard, Redlock};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use crate::args::{Acquire, Global};
use crate::duration::millis;
use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet};
use crate::output;
use crate::signals::Signals;

pub(crate) async fn run(global: &Global, args: &Acquire) -> Result<Exit, Failure> {
    let Fleet { builder, policy } = Fleet::of(global)?;
    let resources = fleet::resources(&args.resources)?;
    // Before any traffic.
    let ttl = fleet::ttl(args.ttl, &policy);
    Ttl::new(ttl, &policy)?;
    let mut signals = Signals::catch()?;
    let interrupted = |exit| Failure::interrupted(exit, "interrupted while waiting; the lock is not held");

    let redlock = signals.or(builder.connect()).await.map_err(interrupted)??;
    let request = redlock.lock_all(&resources).ttl(ttl).wait(args.wait).no_renewal();
    let request = if args.fence { request.fenced() } else { request };
    let acquired = signals.or(request.acquire()).await;
    let ended = match acquired {
        Err(signal) => Err(interrupted(signal)),
        Ok(Err(error)) => {
            let (key, names) = output::of(&resources);
            let of = json!({ key: names, "holder": null, "validity_ms": 0, "fence": null });
            Err(Failure::from(error).with(of))
        }
        Ok(Ok(guard)) => Ok(leave(guard, policy.master_timeout()).await),
    };
    // What an attempt that failed may have left is deleted before this ends.
    let _ = redlock.close().await;
    let lease = ended?;
    lease.print(global, "acquired", &resources);
    Ok(Exit::Done)
}

/// What is left to another command.
pub(crate) struct Lease {
    holder: String,
    fence: Option<FencingToken>,
    ends: Instant,
    tally: Tally,
}

/// Waits for the masters that were not needed for the win, so that the lock sits on all of them, then lets it go.
pub(crate) async fn leave(guard: Guard, master_timeout: Duration) -> Lease {
    let ends = Instant::now() + guard.remaining();
    let is_complete = || guard.tally().iter().all(|(_, vote)| vote.is_some());
    let stragglers = async {
        while !is_complete() {
            sleep(Duration::from_micros(500)).await;
        }
    };
    let _ = timeout_at(ends.min(Instant::now() + master_timeout), stragglers).await;
    let (tally, fence) = (guard.tally(), guard.fence().ok());
    Lease { holder: guard.abandon().to_string(), fence, ends, tally }
}

impl Lease {
    pub(crate) fn print(&self, global: &Global, outcome: &str, resources: &[&[u8]]) {
        let validity = self.ends.saturating_duration_since(Instant::now());
        let (key, names) = output::of(resources);
        let json = json!({
            "outcome": outcome,
            key: names,
            "holder": self.holder,
            "validity_ms": millis(validity),
            "votes": output::votes(&self.tally),
            "fence": self.fence.map(FencingToken::as_u64),
        });
        let text = match self.fence {
            Some(token) => format!("{} {token}", self.holder),
            None => self.holder.clone(),
        };
        output::result(global, text, &json);
    }
}

/// Gives the connections back in any case.
pub(crate) async fn closing<T>(redlock: &Redlock, work: impl Future<Output = T>) -> T {
    let done = work.await;
    let _ = redlock.close().await;
    done
}
