//! One contender: a process that increments a number in a file under the lock, again and again.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Duration;

use quorlock::{Guard, Hold, Redlock};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

use super::event::{Event, Order, now};
use crate::args::{DemoWorker, Global};
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;

/// What everybody wants.
pub(crate) const RESOURCE: &str = "demo:counter";

/// How long a wait for the lock is, before the next one begins.
const WAIT: Duration = Duration::from_secs(10);
/// The pauses between claims, short since the lock is held for so short.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(150));
/// Left of the lock, at least, when it writes: a write takes its time, too.
const MARGIN: Duration = Duration::from_millis(100);
/// How often a long thought is interrupted, to see whether a renewal moved the deadline.
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) async fn run(global: &Global, args: &DemoWorker) -> Result<Exit, Failure> {
    end_with_the_demo();
    let Fleet { builder, policy } = Fleet::of(global)?;
    let redlock = builder.policy(policy.with_backoff(BACKOFF.0, BACKOFF.1)).connect().await?;
    let mut orders = Orders::listen();
    say(&Event::Ready)?;
    let worked = work(&redlock, args, &mut orders).await;
    let _ = redlock.close().await;
    worked?;
    say(&Event::Finished)?;
    Ok(Exit::Done)
}

/// A demo that is killed closes our orders, and we end; frozen at that moment, we would never read that.
fn end_with_the_demo() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

async fn work(redlock: &Redlock, args: &DemoWorker, orders: &mut Orders) -> Result<(), Failure> {
    let request = redlock.lock(RESOURCE).ttl(args.ttl).wait(WAIT);
    while !orders.should_stop() {
        match request.acquire().await {
            Ok(guard) => increment(guard, &args.counter, orders).await?,
            Err(error) => say(&Event::Missed { why: error.to_string() })?,
        }
        sleep(a_while(10, 30)).await;
    }
    Ok(())
}

/// Reads, thinks, looks at the lock, writes. Whatever another wrote meanwhile would be lost.
async fn increment(guard: Guard, counter: &Path, orders: &mut Orders) -> Result<(), Failure> {
    let hold = guard.hold();
    say(&Event::Entered { at: now(), valid_until: valid_until(&hold) })?;
    let text = std::fs::read_to_string(counter).unwrap_or_else(|error| error.to_string());
    let Ok(value) = text.trim().parse::<u64>() else {
        say(&Event::Unreadable { text })?;
        return leave(guard).await;
    };
    sleep(a_while(20, 60)).await;
    if orders.should_ponder() {
        say(&Event::Pondering { at: now() })?;
        ponder(&hold, orders).await?;
    }
    say(&Event::Renewed { valid_until: valid_until(&hold) })?;
    if hold.is_valid() && hold.remaining() > MARGIN {
        std::fs::write(counter, (value + 1).to_string())
            .map_err(|error| Failure::other(format!("{}: {error}", counter.display())))?;
        say(&Event::Wrote { at: now(), value: value + 1 })?;
    } else {
        say(&Event::Refused { at: now() })?;
    }
    leave(guard).await
}

/// Thinks until it is told to go on, and tells when a renewal moves the deadline.
async fn ponder(hold: &Hold, orders: &mut Orders) -> Result<(), Failure> {
    let mut told = 0;
    loop {
        let until = valid_until(hold);
        if until > told + 1_000_000 {
            told = until;
            say(&Event::Renewed { valid_until: until })?;
        }
        if let Ok(Order::GoOn | Order::Stop) = tokio::time::timeout(LOOK_EVERY, orders.next()).await {
            return Ok(());
        }
    }
}

async fn leave(guard: Guard) -> Result<(), Failure> {
    // Before the release goes out: from then on another may enter.
    say(&Event::Left { at: now() })?;
    let _ = guard.release().await;
    Ok(())
}

/// Zero once the lock is over. Looks again if it was frozen, or kept waiting, between the two readings.
fn valid_until(hold: &Hold) -> u64 {
    loop {
        let (before, remaining, after) = (now(), hold.remaining(), now());
        if remaining.is_zero() {
            return 0;
        }
        if after - before < 1_000_000 {
            return after + u64::try_from(remaining.as_nanos()).unwrap_or(0);
        }
    }
}

fn say(event: &Event) -> Result<(), Failure> {
    let mut line = serde_json::to_string(event).unwrap_or_default();
    line.push('\n');
    // One write a line, so that a kill does not leave half of one.
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::other(format!("the stage is gone: {error}")))
}

/// Some time from `least` to `most` milliseconds; the clock is random enough for that.
fn a_while(least: u64, most: u64) -> Duration {
    Duration::from_millis(least + now() / 1_000 % (most - least + 1))
}

/// What the stage says, as far as it was heard.
struct Orders {
    heard: UnboundedReceiver<Order>,
    ponder: bool,
    stop: bool,
}

impl Orders {
    fn listen() -> Self {
        let (told, heard) = unbounded_channel();
        // A thread, since a read of standard input cannot be given up. It ends with the process.
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if told.send(Order::read(&line)).is_err() {
                    return;
                }
            }
            // The stage is gone without a word, and the masters with it: nothing is left to give back.
            std::process::exit(Exit::NotHeld.code().into());
        });
        Self { heard, ponder: false, stop: false }
    }

    /// The next order.
    async fn next(&mut self) -> Order {
        let order = self.heard.recv().await.unwrap_or(Order::Stop);
        self.stop |= order == Order::Stop;
        order
    }

    fn hear(&mut self) {
        loop {
            match self.heard.try_recv() {
                Ok(Order::Ponder) => self.ponder = true,
                Ok(Order::GoOn) => {}
                Ok(Order::Stop) => self.stop = true,
                Err(tokio::sync::mpsc::error::TryRecvError::Empty) => return,
                Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => {
                    self.stop = true;
                    return;
                }
            }
        }
    }

    fn should_stop(&mut self) -> bool {
        self.hear();
        self.stop
    }

    fn should_ponder(&mut self) -> bool {
        self.hear();
        std::mem::take(&mut self.ponder) && !self.stop
    }
}
