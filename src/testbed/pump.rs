//! One direction of one connection through the [`Proxy`](super::Proxy).

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::testbed::flow::{Direction, Flow};
use crate::testbed::link::Link;
use crate::testbed::timer::{Alarm, now};

/// How much waits in one direction before no more is read: 100 ms of delay at 640 MB/s.
const ROOM: usize = 64 << 20;

const CHUNK: usize = 64 << 10;

/// Why both directions end at once.
#[derive(Debug)]
pub(super) enum Stop {
    /// Closed in good order.
    Cut,
    /// Reset.
    Reset,
}

impl From<io::Error> for Stop {
    /// What the one side did to its connection, the other side gets to feel.
    fn from(_: io::Error) -> Self {
        Self::Reset
    }
}

/// What waits for its moment.
enum Parcel {
    Bytes(Vec<u8>),
    /// The sender closed its side.
    End,
    Cut,
}

pub(super) struct Pump<'a> {
    direction: Direction,
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    link: Link,
    queue: VecDeque<(Duration, Parcel)>,
    queued: usize,
    reading: bool,
    /// Whether bytes were swallowed. What TCP carries has no gaps: nothing may follow.
    gap: bool,
    /// Which setting is in force, and how many bytes were read under it.
    setting: u64,
    read: u64,
    dice: u64,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        direction: Direction,
        from: ReadHalf<'a>,
        to: WriteHalf<'a>,
        link: Link,
        seed: u64,
    ) -> Self {
        Self {
            direction,
            from,
            to,
            link,
            queue: VecDeque::new(),
            queued: 0,
            reading: true,
            gap: false,
            setting: 0,
            read: 0,
            dice: seed,
        }
    }

    /// Carries bytes until their sender closes its side and all have arrived.
    pub(super) async fn run(mut self) -> Result<(), Stop> {
        let mut alarm = Alarm::new()?;
        let mut settings = self.link.settings();
        let mut chunk = vec![0; CHUNK];
        loop {
            settings.borrow_and_update();
            let flow = self.flow();
            if self.gap && !flow.drop {
                return Err(Stop::Reset);
            }
            if self.reading && flow.cut_after.is_some_and(|limit| self.read >= limit) {
                self.reading = false;
                self.push(&flow, Parcel::Cut);
            }
            let due = self.queue.front().map(|(due, _)| *due).filter(|_| !flow.hold);
            if due.is_some_and(|due| due <= now()) {
                if self.deliver().await? {
                    return Ok(());
                }
                continue;
            }
            let reading = self.reading && !flow.hold && self.queued < ROOM;
            tokio::select! {
                changed = settings.changed() => changed.map_err(|_| Stop::Reset)?,
                read = self.from.read(&mut chunk), if reading => self.take(chunk.get(..read?).unwrap_or(&[])),
                // The queue is looked at anew, since the setting may be another.
                rang = alarm.at(due.unwrap_or_default()), if due.is_some() => rang?,
            }
        }
    }

    /// The setting as it is now: bytes that were sent after a change are treated by it.
    fn flow(&mut self) -> Flow {
        let (flow, setting) = self.link.flow(self.direction);
        if setting != self.setting {
            self.setting = setting;
            self.read = 0;
        }
        flow
    }

    fn take(&mut self, bytes: &[u8]) {
        let flow = self.flow();
        if flow.drop {
            // Nobody learns of the close either.
            self.reading = !bytes.is_empty();
            self.gap = true;
            self.link.count_lost(self.direction, bytes.len());
            return;
        }
        if bytes.is_empty() {
            self.reading = false;
            return self.push(&flow, Parcel::End);
        }
        let left = flow.cut_after.map_or(u64::MAX, |limit| limit.saturating_sub(self.read));
        let bytes = bytes.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(bytes);
        self.read += bytes.len() as u64;
        self.queued += bytes.len();
        self.push(&flow, Parcel::Bytes(bytes.to_vec()));
    }

    fn push(&mut self, flow: &Flow, parcel: Parcel) {
        let jitter = flow.jitter.mul_f64(self.roll());
        // Never before what was sent earlier.
        let earliest = self.queue.back().map_or(Duration::ZERO, |(due, _)| *due);
        self.queue.push_back(((now() + flow.delay + jitter).max(earliest), parcel));
    }

    /// Hands over what is due; whether it was the end.
    async fn deliver(&mut self) -> Result<bool, Stop> {
        match self.queue.pop_front() {
            Some((_, Parcel::Bytes(bytes))) => {
                self.queued -= bytes.len();
                self.to.write_all(&bytes).await?;
                self.link.count_passed(self.direction, bytes.len());
                Ok(false)
            }
            Some((_, Parcel::End)) => {
                self.to.shutdown().await?;
                Ok(true)
            }
            Some((_, Parcel::Cut)) => {
                self.to.shutdown().await?;
                Err(Stop::Cut)
            }
            None => Ok(false),
        }
    }

    /// Evenly from 0 to 1 (splitmix64), the same at every run: the connection's number is the seed.
    fn roll(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.dice;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
