//! `quorlock top`: masters, locks and what happens to them, as it goes on.
//!
//! | file | is |
//! |---|---|
//! | `look` | what is seen at one moment |
//! | `board` | the latest look, and what happened since the one before |
//! | `plain` | lines and objects |
//! | `keys`, `screen` | a terminal: what is typed, what is drawn |

mod board;
#[cfg(feature = "top")]
mod keys;
mod look;
mod plain;
#[cfg(feature = "top")]
mod screen;

use std::io::{self, IsTerminal};
use std::time::Duration;

use crate::args::{Global, Top};
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::signals::Signals;

/// More often would be no view but a load.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn run(global: &Global, args: &Top) -> Result<Exit, Failure> {
    let fleet = Fleet::of(global)?;
    if args.every < SHORTEST_PAUSE {
        let text = format!("--every {:?} is too often: {SHORTEST_PAUSE:?} or more", args.every);
        return Err(Failure::new(Exit::Usage, "bad_request", text));
    }
    let mut signals = Signals::catch()?;
    let plain = args.plain || global.json || !io::stdout().is_terminal() || !io::stdin().is_terminal();
    let shown = if plain {
        signals.or(plain::print(global, args, &fleet)).await
    } else {
        signals.or(draw(args, &fleet)).await
    };
    // Whoever looks on ends it by a signal: nothing went wrong.
    shown.unwrap_or_else(Ok)
}

#[cfg(feature = "top")]
async fn draw(args: &Top, fleet: &Fleet) -> Result<Exit, Failure> {
    screen::show(args, fleet).await
}

#[cfg(not(feature = "top"))]
#[allow(clippy::unused_async, reason = "as the one that draws")]
async fn draw(_: &Top, _: &Fleet) -> Result<Exit, Failure> {
    Err(Failure::new(
        Exit::Usage,
        "bad_request",
        "this build has no view for terminals: install it with `--features top`, or add --plain for lines",
    ))
}
