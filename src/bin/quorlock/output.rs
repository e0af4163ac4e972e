//! What is printed where.

use std::fmt::Display;
use std::io::{self, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use quorlock::protocol::votes::{Tally, Vote};
use serde_json::{Value, json};

use crate::args::Global;

/// Prints a result: the text, or the object with `--json`. Whoever does not read it to the end has had enough.
pub(crate) fn result(global: &Global, text: impl Display, json: &Value) {
    let mut out = io::stdout().lock();
    let _ = if global.json { writeln!(out, "{json}") } else { writeln!(out, "{text}") };
    let _ = out.flush();
}

/// A line for a person, on standard error.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether colours are wanted there: a terminal, and no `NO_COLOR`.
pub(crate) fn has_colours(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// How many masters said what.
pub(crate) fn votes(tally: &Tally) -> Value {
    let absent = tally.iter().filter(|(_, vote)| matches!(vote, Some(Vote::Absent))).count();
    json!({
        "granted": tally.granted().len(),
        "held": tally.held().len(),
        "failed": tally.failed().len(),
        "unknown": tally.unknown().len(),
        "absent": absent,
    })
}

/// `1 master`, `2 masters`.
pub(crate) fn count(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// What a lock is on, for a program: `resource`, or a list of `resources` if there are several.
pub(crate) fn of(resources: &[&[u8]]) -> (&'static str, Value) {
    match resources {
        [one] => ("resource", text(one).into()),
        several => ("resources", several.iter().copied().map(text).collect()),
    }
}

/// The same for a person: each in quotes.
pub(crate) fn names(resources: &[&[u8]]) -> String {
    let quoted: Vec<String> = resources.iter().map(|resource| format!("{:?}", text(resource))).collect();
    quoted.join(", ")
}

/// The bytes as text where they are, and escaped where they are not.
pub(crate) fn text(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| bytes.escape_ascii().to_string(), str::to_owned)
}
