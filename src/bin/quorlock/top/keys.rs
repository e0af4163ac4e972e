//! What is typed, and what that does to the view.

use std::io;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::widgets::TableState;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::exit::Exit;

/// What the locks are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Resource,
    State,
    Holder,
    Votes,
    Remaining,
}

pub(super) const ORDERS: [(Order, &str); 5] = [
    (Order::Resource, "resource"),
    (Order::State, "state"),
    (Order::Holder, "holder"),
    (Order::Votes, "votes"),
    (Order::Remaining, "remaining"),
];

pub(super) const HELP: [&str; 8] = [
    "q, Esc, Ctrl-C   quit",
    "up, down         one lock on; PageUp, PageDown: ten; Home, End",
    "left, right      sort by another column",
    "r                the other way round",
    "/                show only what has this text in its name or holder; Enter keeps it, Esc gives it up",
    "?                this help, and back",
    "",
    "The bar is what is left of the longest time that was seen for this holder. No key changes anything on the masters.",
];

/// How it is looked at.
#[derive(Debug)]
pub(super) struct View {
    sorted_by: usize,
    pub(super) reversed: bool,
    pub(super) filter: String,
    pub(super) typing: bool,
    pub(super) help: bool,
    pub(super) table: TableState,
}

impl View {
    pub(super) fn new() -> Self {
        Self {
            sorted_by: 0,
            reversed: false,
            filter: String::new(),
            typing: false,
            help: false,
            table: TableState::new(),
        }
    }

    pub(super) fn order(&self) -> Order {
        ORDERS[self.sorted_by].0
    }

    pub(super) fn shows(&self, resource: &str, holder: &str) -> bool {
        resource.contains(&self.filter) || holder.contains(&self.filter)
    }

    /// An exit code, if that was the end.
    pub(super) fn hear(&mut self, event: &Event) -> Option<Exit> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.press(*key),
            // Drawn anew in any case.
            _ => None,
        }
    }

    fn press(&mut self, key: KeyEvent) -> Option<Exit> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return (key.code == KeyCode::Char('c')).then_some(Exit::Signal(2));
        }
        if self.typing {
            self.type_in(key.code);
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Exit::Done),
            KeyCode::Char('?') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Esc => return Some(Exit::Done),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Right => self.sorted_by = (self.sorted_by + 1) % ORDERS.len(),
            KeyCode::Left => self.sorted_by = (self.sorted_by + ORDERS.len() - 1) % ORDERS.len(),
            KeyCode::Down => self.table.select_next(),
            KeyCode::Up => self.table.select_previous(),
            KeyCode::PageDown => self.table.scroll_down_by(10),
            KeyCode::PageUp => self.table.scroll_up_by(10),
            KeyCode::Home => self.table.select_first(),
            KeyCode::End => self.table.select_last(),
            _ => {}
        }
        None
    }

    fn type_in(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.filter.clear();
                self.typing = false;
            }
            _ => {}
        }
    }
}

/// Everything the terminal tells, until it is gone.
pub(super) fn listen() -> UnboundedReceiver<io::Result<Event>> {
    let (tell, told) = unbounded_channel();
    // A thread, since a read cannot be given up. It ends with the process.
    std::thread::spawn(move || {
        loop {
            let event = event::read();
            let is_over = event.is_err();
            if tell.send(event).is_err() || is_over {
                return;
            }
        }
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, code: KeyCode) -> Option<Exit> {
        view.hear(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn while_a_filter_is_typed_no_letter_is_a_command() {
        let mut view = View::new();
        for code in ['/', 'q', '?', 'r'].map(KeyCode::Char) {
            assert_eq!(press(&mut view, code), None);
        }
        assert_eq!(view.filter, "q?r");
        assert!(view.shows("a q?r b", "") && view.shows("", "q?r") && !view.shows("q", "r"));
        press(&mut view, KeyCode::Backspace);
        press(&mut view, KeyCode::Enter);
        assert_eq!((view.filter.as_str(), view.typing), ("q?", false));
        // First the filter goes, then the program.
        assert_eq!(press(&mut view, KeyCode::Esc), None);
        assert_eq!(view.filter, "");
        assert_eq!(press(&mut view, KeyCode::Esc), Some(Exit::Done));
        view.typing = true;
        let interrupt = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(view.hear(&interrupt), Some(Exit::Signal(2)));
    }

    #[test]
    fn columns_are_sorted_by_in_a_circle() {
        let mut view = View::new();
        press(&mut view, KeyCode::Left);
        assert_eq!(view.order(), Order::Remaining);
        press(&mut view, KeyCode::Right);
        assert_eq!(view.order(), Order::Resource);
    }
}
