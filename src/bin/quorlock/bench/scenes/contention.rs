//! Several who want one lock, and what their turns tell.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

use super::super::contender::Contender;
use super::super::stop;

/// How long a turn takes, and the pause after it.
pub(crate) const HOLD: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(20);

/// One hold, in microseconds of a clock that all processes of this machine share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) asked: u64,
    pub(crate) got: u64,
    /// When the release began.
    pub(crate) gave: u64,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.asked, self.got, self.gave)
    }
}

impl FromStr for Turn {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [asked, got, gave] => Ok(Self { asked, got, gave }),
            _ => Err(format!("no turn: {line:?}")),
        }
    }
}

pub(crate) fn now() -> u64 {
    let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Takes turns until then. One that was lost before its end is not counted: it makes no claim to have held.
pub(crate) async fn contend<C: Contender>(contender: &C, key: &str, until: u64) -> Vec<Turn> {
    let mut turns = Vec::new();
    while now() < until && !stop::is_raised() {
        let asked = now();
        let Ok(lock) = contender.acquire(key).await else {
            sleep(PAUSE).await;
            continue;
        };
        let got = now();
        sleep(HOLD).await;
        let gave = now();
        if contender.holds(&lock) {
            turns.push(Turn { asked, got, gave });
        }
        let _ = contender.release(lock).await;
        sleep(PAUSE).await;
    }
    turns
}

/// What the turns of all contenders come to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) overlaps: u64,
    /// From the begin of a release to the next holder, in microseconds, where somebody waited by then.
    pub(crate) gaps: Vec<u32>,
    /// The luckiest contender's turns by the unluckiest's.
    pub(crate) fairness: f64,
    pub(crate) turns: usize,
}

impl Told {
    pub(crate) fn by(contenders: &[Vec<Turn>]) -> Self {
        let mut all: Vec<Turn> = contenders.iter().flatten().copied().collect();
        all.sort_by_key(|turn| turn.got);
        let mut told = Self { turns: all.len(), ..Self::default() };
        let mut held_until = 0;
        for pair in all.windows(2) {
            held_until = held_until.max(pair[0].gave);
            if pair[1].got < held_until {
                told.overlaps += 1;
            } else if pair[1].asked < pair[0].gave {
                told.gaps.push(u32::try_from(pair[1].got - pair[0].gave).unwrap_or(u32::MAX));
            }
        }
        let counts = contenders.iter().map(Vec::len);
        let least = counts.clone().min().unwrap_or(0).max(1);
        told.fairness = counts.max().unwrap_or(0) as f64 / least as f64;
        told
    }
}
