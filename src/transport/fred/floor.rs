//! An operator's word on where fencing goes on, when more masters lost their counters than the others can make up for.

use std::fmt;

use futures::future::join_all;

use super::connect::{Connection, Dialer};
use super::counters::{self, Counted, Seen};
use crate::protocol::fencing::{self, Counters, FencingToken};

/// What setting a floor came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceFloor {
    /// All tokens from now on are greater.
    pub floor: FencingToken,
    /// The masters that had lost their counters and go on from the floor.
    pub raised: Vec<String>,
    /// Those that still take no part in fencing, each with the reason. They recover by themselves, once N − w + 1
    /// others take part and their quarantine is over.
    pub left: Vec<(String, String)>,
}

/// Why no floor was set. No master was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FenceFloorError {
    /// A master knows of a greater token.
    TooLow {
        /// The floor asked for.
        floor: FencingToken,
        /// That master.
        master: String,
        /// The greatest of its counters.
        counter: FencingToken,
    },
    /// No number would be left above it.
    TooHigh {
        /// The floor asked for.
        floor: FencingToken,
    },
}

impl fmt::Display for FenceFloorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLow { floor, master, counter } => write!(
                f,
                "the floor {floor} is too low, {master} has a counter at {counter}: give a greater one, or none to have \
                 it chosen"
            ),
            Self::TooHigh { floor } => {
                write!(f, "the floor {floor} leaves no numbers above it: tokens end at {}", fencing::GREATEST)
            }
        }
    }
}

impl std::error::Error for FenceFloorError {}

/// Sets the floor on all masters that lost their counters. `now` is the wall clock in microseconds.
pub(crate) async fn set(
    dialers: &[Dialer],
    wanted: Option<FencingToken>,
    now: u64,
) -> Result<FenceFloor, FenceFloorError> {
    let looks = join_all(dialers.iter().map(look)).await;
    let greatest = |(name, looked): (&Dialer, &Looked)| {
        let (_, counted) = looked.as_ref().ok()?;
        Some((counted.counters.values().copied().max()?, name.name()))
    };
    let known = dialers.iter().zip(&looks).filter_map(greatest).max();
    // Proposals may be a day ahead of the masters' clocks, so tokens may be, too.
    let safe =
        now.saturating_add(fencing::FARTHEST_PROPOSAL).max(known.as_ref().map_or(0, |(most, _)| *most));
    let floor = wanted.unwrap_or(FencingToken::new(safe));
    if floor.as_u64() >= fencing::GREATEST {
        return Err(FenceFloorError::TooHigh { floor });
    }
    if let Some((counter, master)) = known.filter(|(counter, _)| *counter > floor.as_u64()) {
        return Err(FenceFloorError::TooLow { floor, master, counter: FencingToken::new(counter) });
    }
    let counters: Counters = (0..fencing::SHARDS).map(|shard| (shard, floor.as_u64())).collect();
    let mut done = FenceFloor { floor, raised: Vec::new(), left: Vec::new() };
    for (dialer, looked) in dialers.iter().zip(looks) {
        let raised = match looked {
            Ok((_, counted)) if counted.seen == Seen::Counts => continue,
            Ok((connection, _)) => {
                let raised =
                    counters::raise(&connection.client, &connection.info.run_id, false, &counters).await;
                raised.map_err(|why| why.to_string())
            }
            Err(why) => Err(why),
        };
        match raised {
            Ok(()) => done.raised.push(dialer.name()),
            Err(why) => done.left.push((dialer.name(), why)),
        }
    }
    Ok(done)
}

type Looked = Result<(Connection, Counted), String>;

async fn look(dialer: &Dialer) -> Looked {
    let connection = dialer.dial().await?;
    if let Some(why) = connection.info.unfit() {
        return Err(why);
    }
    let counted = counters::read_any(&connection.client, &connection.info.run_id).await?;
    Ok((connection, counted))
}
