//! Who reads the errors and does what they say: where three masters lost their counters together, nothing is granted with
//! a token any more until somebody sets a floor.

use std::time::Duration;

use quorlock::{Policy, Redlock};
use tokio::time::sleep;

use crate::history::Event;
use crate::log::Log;

const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// A resource of his own, that the clients do not use.
const RESOURCE: &str = "operator";

/// Until it is dropped.
pub(crate) async fn attend(masters: Vec<String>, policy: Policy, ttl: Duration, log: Log) {
    let builder = Redlock::builder().masters(masters).policy(policy).label("operator");
    let mut redlock = None;
    loop {
        sleep(LOOKS_EVERY).await;
        let Some(redlock) = &redlock else {
            redlock = builder.clone().connect().await.ok();
            continue;
        };
        match redlock.lock(RESOURCE).ttl(ttl).fenced().try_acquire().await {
            Ok(guard) => drop(guard.release().await),
            Err(why) if why.to_string().contains("quorlock fence-floor") => {
                if let Ok(set) = builder.set_fence_floor(None).await
                    && !set.raised.is_empty()
                {
                    log.say(Event::Floor { floor: set.floor.as_u64(), on: set.raised });
                }
            }
            Err(_) => {}
        }
    }
}
