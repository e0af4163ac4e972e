//! Lines for a person or a log, objects for a program.

use std::io::{self, Write};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::board::{Board, Event};
use super::look::{Look, State};
use crate::args::{Global, Top};
use crate::duration::show;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::list::Left;
use crate::output::count;
use crate::table::Table;

pub(super) async fn print(global: &Global, args: &Top, fleet: &Fleet) -> Result<Exit, Failure> {
    let mut board = Board::new();
    let mut looks = 0;
    loop {
        let next = Instant::now() + args.every;
        let events = board.take(Look::take(args, fleet).await?);
        if let Some(look) = &board.look {
            let text = if global.json {
                object(&board, look, &events).to_string()
            } else {
                lines(&board, look, &events).join("\n")
            };
            let mut out = io::stdout().lock();
            // Whoever reads no more has had enough.
            if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
                return Ok(Exit::Done);
            }
        }
        looks += 1;
        if args.count.is_some_and(|count| looks >= count) {
            return Ok(Exit::Done);
        }
        sleep_until(next).await;
    }
}

/// What all of it comes to, in one line.
pub(super) fn summary(look: &Look) -> String {
    let masters = look.masters.len();
    let quorum = if look.up() < look.needed { format!(", {} needed", look.needed) } else { String::new() };
    let more = if look.is_complete { "" } else { ", and more than --limit shows" };
    format!("{} of {masters} masters up{quorum}, {} held{more}", look.up(), count(look.held(), "lock"))
}

/// How a master is, in words.
pub(super) fn state(state: &State) -> String {
    match state {
        State::Up => "up".to_owned(),
        State::Quarantined(left) => format!("quarantined for {}", show(*left)),
        State::NotAdmitted => "up, not admitted yet".to_owned(),
        State::Down(why) => format!("down: {why}"),
    }
}

fn lines(board: &Board, look: &Look, events: &[Event]) -> Vec<String> {
    let at = look.at.saturating_duration_since(board.began()).as_secs_f64();
    let mut lines = vec![format!("{at:7.1} s  {}", summary(look))];
    let mut masters = Table::new(["", "master", "round trip", "state"]);
    for (nth, master) in look.masters.iter().enumerate() {
        let is_down = matches!(master.state, State::Down(_));
        let round_trip = if is_down { String::new() } else { show(master.round_trip) };
        let row = [format!("m{}", nth + 1), master.address.clone(), round_trip, state(&master.state)];
        masters.row(row, None);
    }
    lines.extend(masters.lines());
    if !look.locks.is_empty() {
        let mut locks = Table::new(["resource", "state", "holder", "votes", "remaining"]);
        for (resource, lock) in &look.locks {
            let left = match lock.left {
                Left::For(left) => show(left),
                Left::Forever => "no ttl".to_owned(),
                Left::Nothing => String::new(),
            };
            let votes = format!("{}/{}", lock.votes, look.masters.len());
            locks.row([resource.clone(), lock.outcome.to_owned(), lock.holder.clone(), votes, left], None);
        }
        lines.extend(locks.lines());
    }
    lines.extend(events.iter().map(Event::text));
    lines.push(String::new());
    lines
}

fn object(board: &Board, look: &Look, events: &[Event]) -> Value {
    let at = look.at.saturating_duration_since(board.began()).as_secs_f64();
    json!({
        "at_s": (at * 1e3).round() / 1e3,
        "needed": look.needed,
        "masters": look.masters.iter().map(super::look::Master::json).collect::<Vec<_>>(),
        "locks": look.locks.values().map(|lock| &lock.json).collect::<Vec<_>>(),
        "complete": look.is_complete,
        "events": events.iter().map(Event::json).collect::<Vec<_>>(),
    })
}
