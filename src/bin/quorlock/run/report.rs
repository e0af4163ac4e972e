//! What is said while it runs: lines for a person on standard error, events for a program where it wants them.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use serde_json::Value;

use crate::args::{Global, Run};
use crate::exit::{Exit, Failure};
use crate::output::note;

/// What a line is worth. A run that goes well says nothing: cron sends mail for every word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Error,
    Notice,
    Detail,
}

pub(super) struct Report {
    /// What weighs less is not said to a person.
    shown: Option<Weight>,
    events: Option<Box<dyn Write>>,
}

impl Report {
    pub(super) fn open(global: &Global, args: &Run) -> Result<Self, Failure> {
        let events: Option<Box<dyn Write>> = match args.json_fd {
            Some(descriptor) => Some(Box::new(open(descriptor)?)),
            None if global.json => Some(Box::new(io::stderr())),
            None => None,
        };
        let shown = match (global.quiet, global.verbose) {
            // Standard error has events or lines, not both.
            _ if global.json && args.json_fd.is_none() => None,
            (true, _) => Some(Weight::Error),
            (false, 0) => Some(Weight::Notice),
            (false, _) => Some(Weight::Detail),
        };
        Ok(Self { shown, events })
    }

    /// Says one thing to both.
    pub(super) fn say(&mut self, weight: Weight, event: &str, text: impl Display, fields: Value) {
        if self.shown.is_some_and(|shown| weight <= shown) {
            note(format_args!("quorlock: {text}"));
        }
        self.event(event, fields);
    }

    /// Only for a program.
    pub(super) fn event(&mut self, event: &str, mut fields: Value) {
        if let Some(events) = &mut self.events {
            fields["event"] = event.into();
            // In one piece, so that lines of others on the same descriptor stay whole, too.
            let _ = events.write_all(format!("{fields}\n").as_bytes());
        }
    }

    pub(super) fn failure(&mut self, weight: Weight, failure: &Failure) {
        let mut fields = failure.json.clone();
        let outcome = fields.remove("outcome");
        let event = outcome.as_ref().and_then(Value::as_str).unwrap_or("failed");
        fields.insert("error".into(), failure.text.as_str().into());
        self.say(weight, event, format_args!("error: {}", failure.text), Value::Object(fields));
    }
}

/// A descriptor that the caller opened for us. It is opened anew: to take it as it is, safe Rust has no way.
fn open(descriptor: u32) -> Result<File, Failure> {
    let path = format!("/dev/fd/{descriptor}");
    OpenOptions::new().append(true).open(&path).map_err(|error| {
        let text = format!(
            "--json-fd {descriptor}: {path} cannot be written: {error}. Open it in the shell: --json-fd {descriptor} \
             {descriptor}>FILE, or a pipe; sockets do not work"
        );
        Failure::new(Exit::Usage, "bad_request", text)
    })
}
