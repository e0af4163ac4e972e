//! The view in a terminal.

use std::io;
use std::time::Duration;

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};
use tokio::time::{Instant, interval, sleep_until};

use super::board::{Board, Event};
use super::keys::{HELP, ORDERS, Order, View, listen};
use super::look::{Lock, Look, State};
use super::plain::{state, summary};
use crate::args::Top;
use crate::duration::show as readable;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::list::Left;
use crate::output::has_colours;

/// How often the bars move.
const REDRAW: Duration = Duration::from_millis(250);
/// How many letters a bar is long.
const BAR: usize = 12;

/// The terminal as it was before, whatever ends this; after a panic, too, by ratatui's hook.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> io::Result<Self> {
        Ok(Self(ratatui::try_init()?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

pub(super) async fn show(args: &Top, fleet: &Fleet) -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::other(format!("the terminal: {error}; --plain needs none"));
    let mut screen = Screen::open().map_err(failed)?;
    let mut typed = listen();
    let (mut board, mut view, colours) = (Board::new(), View::new(), has_colours(&io::stdout()));
    let mut redraw = interval(REDRAW);
    let mut looks = 0;
    let look = async |at: Instant| {
        sleep_until(at).await;
        Look::take(args, fleet).await
    };
    let mut next = Instant::now();
    let mut looking = Box::pin(look(next));
    loop {
        let draw = |frame: &mut Frame<'_>| Picture { board: &board, args, colours }.draw(frame, &mut view);
        screen.0.draw(draw).map_err(failed)?;
        tokio::select! {
            biased;
            event = typed.recv() => match event {
                Some(Ok(event)) => if let Some(exit) = view.hear(&event) { return Ok(exit) },
                Some(Err(error)) => return Err(failed(error)),
                None => return Ok(Exit::Done),
            },
            seen = &mut looking => {
                board.take(seen?);
                looks += 1;
                if args.count.is_some_and(|count| looks >= count) {
                    return Ok(Exit::Done);
                }
                next = (next + args.every).max(Instant::now());
                looking = Box::pin(look(next));
            }
            _ = redraw.tick() => {}
        }
    }
}

struct Picture<'a> {
    board: &'a Board,
    args: &'a Top,
    colours: bool,
}

impl Picture<'_> {
    fn draw(&self, frame: &mut Frame<'_>, view: &mut View) {
        let area = frame.area();
        let masters = self.board.look.as_ref().map_or(0, |look| look.masters.len());
        let [title, upper, middle, lower, foot] =
            Layout::vertical(heights(area.height, masters).map(Constraint::Length)).areas(area);
        frame.render_widget(self.title(), title);
        if let Some(look) = &self.board.look {
            self.masters(frame, upper, look);
            self.locks(frame, middle, look, view);
        }
        self.events(frame, lower);
        frame.render_widget(self.foot(view), foot);
        if view.help {
            let height = u16::try_from(HELP.len() + 2).unwrap_or(u16::MAX).min(area.height);
            let [_, box_area, _] =
                Layout::vertical([Constraint::Fill(1), Constraint::Length(height), Constraint::Fill(1)])
                    .areas(area);
            let text: Vec<Line<'_>> = HELP.iter().map(|line| Line::from(*line)).collect();
            frame.render_widget(Clear, box_area);
            frame.render_widget(Paragraph::new(text).block(Block::bordered().title(" help ")), box_area);
        }
    }

    fn paint(&self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn title(&self) -> Line<'_> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let Some(look) = &self.board.look else {
            return Line::from(vec![
                Span::styled("quorlock top", bold),
                Span::raw("  looks at the masters…"),
            ]);
        };
        let well = look.up() >= look.needed;
        let age = Instant::now().saturating_duration_since(look.at);
        // A master that hangs keeps a look waiting.
        let old = if age > self.args.every + Duration::from_secs(1) {
            format!("  seen {} ago", readable(age))
        } else {
            String::new()
        };
        Line::from(vec![
            Span::styled("quorlock top  ", bold),
            Span::styled(summary(look), self.paint(if well { Color::Green } else { Color::Red })),
            Span::styled(old, self.paint(Color::Yellow)),
        ])
    }

    fn masters(&self, frame: &mut Frame<'_>, area: Rect, look: &Look) {
        let rows = look.masters.iter().enumerate().map(|(nth, master)| {
            let (colour, round_trip) = match master.state {
                State::Up => (Color::Green, readable(master.round_trip)),
                State::Down(_) => (Color::Red, String::new()),
                State::Quarantined(_) | State::NotAdmitted => (Color::Yellow, readable(master.round_trip)),
            };
            let name = Span::raw(format!("m{}", nth + 1));
            let said = Span::styled(state(&master.state), self.paint(colour));
            Row::new([name, Span::raw(master.address.clone()), Span::raw(round_trip), said])
        });
        let widths =
            [Constraint::Length(4), Constraint::Fill(1), Constraint::Length(10), Constraint::Fill(2)];
        let table =
            Table::new(rows, widths).header(heading(["", "master", "round trip", "state"].into_iter()));
        frame.render_widget(table, area);
    }

    fn locks(&self, frame: &mut Frame<'_>, area: Rect, look: &Look, view: &mut View) {
        let mut locks: Vec<(&String, &Lock)> =
            look.locks.iter().filter(|(resource, lock)| view.shows(resource, &lock.holder)).collect();
        match view.order() {
            // As they come.
            Order::Resource => {}
            Order::State => locks.sort_by_key(|(_, lock)| lock.outcome),
            Order::Holder => locks.sort_by_key(|(_, lock)| &lock.holder),
            Order::Votes => locks.sort_by_key(|(_, lock)| lock.votes),
            Order::Remaining => locks.sort_by_key(|(_, lock)| match lock.left {
                Left::Nothing => Duration::ZERO,
                Left::For(left) => left,
                Left::Forever => Duration::MAX,
            }),
        }
        if view.reversed {
            locks.reverse();
        }
        let now = Instant::now();
        let rows = locks.iter().map(|(resource, lock)| {
            let colour = if lock.is_held() { Color::Green } else { Color::Yellow };
            Row::new([
                Span::raw((*resource).clone()),
                Span::styled(lock.outcome, self.paint(colour)),
                Span::raw(lock.holder.clone()),
                Span::raw(format!("{}/{}", lock.votes, look.masters.len())),
                self.left(resource, lock, now),
            ])
        });
        let widths = [
            Constraint::Fill(2),
            Constraint::Length(10),
            Constraint::Fill(3),
            Constraint::Length(7),
            Constraint::Length(24),
        ];
        let arrow = if view.reversed { " ▲" } else { " ▼" };
        let names = ORDERS.iter().map(|(order, name)| {
            if *order == view.order() { format!("{name}{arrow}") } else { (*name).to_owned() }
        });
        let table = Table::new(rows, widths)
            .header(heading(names))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, area, &mut view.table);
    }

    /// A bar of what is left, and how much that is.
    fn left(&self, resource: &str, lock: &Lock, now: Instant) -> Span<'static> {
        let Some((left, longest)) = self.board.left_of(resource, lock, now) else {
            let what = if lock.left == Left::Forever { "no ttl: never expires" } else { "" };
            return Span::styled(what, self.paint(Color::Red));
        };
        let share = left.as_secs_f64() / longest.as_secs_f64().max(f64::EPSILON);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few letters")]
        let full = ((share * BAR as f64).ceil() as usize).min(BAR);
        let colour = if share > 0.34 { Color::Green } else { Color::Yellow };
        let text = format!("{}{} {}", "█".repeat(full), "░".repeat(BAR - full), readable(left));
        Span::styled(text, self.paint(colour))
    }

    fn events(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height.saturating_sub(1));
        let from = self.board.events.len().saturating_sub(room);
        let mut lines = vec![Line::styled("events", Style::new().add_modifier(Modifier::BOLD))];
        lines.extend(self.board.events.iter().skip(from).map(|event| self.event(event)));
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn event(&self, event: &Event) -> Line<'static> {
        let colour = match event.what {
            "down" | "lost" => Color::Red,
            "expired" | "quarantine" => Color::Yellow,
            _ => Color::Reset,
        };
        Line::styled(event.text(), self.paint(colour))
    }

    fn foot(&self, view: &View) -> Line<'_> {
        if view.typing {
            return Line::from(format!("show only: {}▏   Enter keeps it, Esc gives it up", view.filter));
        }
        let filter =
            if view.filter.is_empty() { String::new() } else { format!("   only {:?}", view.filter) };
        Line::from(format!("q quit   ? help   / filter   arrows move and sort   r reverse{filter}"))
    }
}

/// Of title, masters, locks, events and foot. Reckoned here, since what a layout leaves out where there is too little room is left
/// to chance.
fn heights(height: u16, masters: usize) -> [u16; 5] {
    let mut left = height;
    let mut take = |wanted: u16| {
        let given = wanted.min(left);
        left -= given;
        given
    };
    let (foot, title, locks) = (take(1), take(1), take(2));
    let upper = take(u16::try_from(masters + 1).unwrap_or(u16::MAX));
    let lower = take((height / 4).clamp(2, 12));
    [title, upper, locks + left, lower, foot]
}

fn heading<T: Into<ratatui::text::Text<'static>>>(names: impl Iterator<Item = T>) -> Row<'static> {
    Row::new(names.map(|name| ratatui::widgets::Cell::from(name.into())))
        .style(Style::new().add_modifier(Modifier::BOLD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_foot_stays_whatever_the_height_and_no_line_is_left_over() {
        for height in 0..200 {
            let [title, masters, locks, events, foot] = heights(height, 5);
            assert_eq!(title + masters + locks + events + foot, height);
            assert_eq!((foot, title), (height.min(1), height.saturating_sub(1).min(1)), "{height}");
            assert_eq!((masters, events.min(2)), if height >= 12 { (6, 2) } else { (masters, events) });
        }
        assert_eq!(
            [heights(3, 5), heights(14, 5), heights(30, 5)],
            [[1, 0, 1, 0, 1], [1, 6, 3, 3, 1], [1, 6, 15, 7, 1]]
        );
    }
}
