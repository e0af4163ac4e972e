//! Who works: takes the lock, writes again and again until the work is done, gives the lock back.

use quorlock::{Guard, Redlock};
use tokio::time::{Instant, sleep_until};

use super::trial::Trial;

pub(super) async fn contend(client: &Redlock, trial: &Trial) {
    let request = client.lock(&trial.resource).ttl(trial.ttl).wait(trial.wait).fenced();
    let request = if trial.watchdog { request } else { request.no_renewal() };
    for _ in 0..trial.rounds {
        match request.acquire().await {
            Ok(guard) => work(guard, trial).await,
            Err(error) => trial.miss(error.to_string()),
        }
    }
}

/// With the watchdog it looks at the lock before each write. Without, it trusts that the work is over before the ttl is,
/// as programs without a watchdog do.
async fn work(guard: Guard, trial: &Trial) {
    let Ok(token) = guard.fence() else { return trial.stop() };
    let entry = trial.enter();
    let end = Instant::now() + trial.work;
    loop {
        if trial.watchdog && !guard.is_valid() {
            trial.stop();
            break;
        }
        trial.stroke(entry, token);
        let now = Instant::now();
        if now >= end {
            break;
        }
        sleep_until((now + trial.step()).min(end)).await;
    }
    let _ = guard.release().await;
}
