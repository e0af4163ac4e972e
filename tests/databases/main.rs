//! The worked examples of fencing, on real masters and real databases, with a holder that stands still past its ttl.

#![allow(clippy::unwrap_used, reason = "a test's own helpers are no less tests")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time, and own their tasks by ending")]

#[path = "../../examples/fenced_postgres.rs"]
#[allow(dead_code, reason = "its main is for who runs it")]
mod fenced_postgres;
#[path = "../../examples/fenced_sqlite.rs"]
#[allow(dead_code, reason = "its main is for who runs it")]
mod fenced_sqlite;

mod postgres;
mod sqlite;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use quorlock::testbed::Testbed;
use quorlock::{FenceError, FencingToken, Policy, Redlock};

const TTL: Duration = Duration::from_millis(700);
const LONG: Duration = Duration::from_secs(30);

async fn client(bed: &Testbed) -> Redlock {
    let policy = Policy::new().with_max_ttl(LONG).with_master_timeout(Duration::from_millis(300));
    let builder = Redlock::builder().masters(bed.urls()).policy(policy);
    let _ = builder.init().await;
    builder.connect().await.unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A holder takes the lock, looks whether it is valid, and its whole program stands still: its one thread does
/// nothing, also no renewal. Meanwhile `meanwhile` is done by who has the lock next. Then the first goes on, with what
/// it knows; that is `after`.
fn frozen_between_look_and_write(
    bed: &Testbed,
    before: impl FnOnce(FencingToken) + Send,
    meanwhile: impl FnOnce(FencingToken),
    after: impl FnOnce(FencingToken) + Send,
) {
    let (held, has_it) = mpsc::channel();
    let (thaw, thawed) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let runtime = runtime();
            let guard = runtime.block_on(async {
                let client = client(bed).await;
                client.lock("stock:ticket").ttl(TTL).fenced().acquire().await.unwrap()
            });
            let token = guard.fence().unwrap();
            before(token);
            assert!(guard.is_valid(), "too slow to show anything");
            held.send(token).unwrap();
            thawed.recv_timeout(LONG).unwrap();
            after(token);
            assert!(matches!(guard.fence(), Err(FenceError::Lost(_))));
            runtime.block_on(async { drop(guard) });
        });
        let earlier = has_it.recv_timeout(LONG).unwrap();
        let runtime = runtime();
        runtime.block_on(async {
            let client = client(bed).await;
            let guard = client.lock("stock:ticket").wait(LONG).fenced().acquire().await.unwrap();
            let token = guard.fence().unwrap();
            assert!(token > earlier, "{token} after {earlier}");
            meanwhile(token);
            let _ = guard.release().await;
        });
        thaw.send(()).unwrap();
    });
}
