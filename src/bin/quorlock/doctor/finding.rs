//! What a check came to.

use serde_json::{Value, json};

use crate::explain::catalog::{Check, Lang};

/// From harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Ok,
    /// Nobody can tell: a right is missing, or an option was not given.
    Unchecked,
    Warning,
    Error,
}

impl Verdict {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unchecked => "unchecked",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One check, with what it found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) check: &'static Check,
    pub(crate) verdict: Verdict,
    /// In one line, if nothing is wrong.
    sound: String,
    pub(crate) notes: Vec<Note>,
    pub(crate) fix: Vec<String>,
}

/// What was found about one master or resource.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) verdict: Verdict,
    /// `m3 127.0.0.1:6379`, or a resource.
    pub(crate) subject: String,
    pub(crate) what: String,
}

impl Finding {
    /// Sound, unless something is noted.
    pub(crate) fn of(id: &'static str, sound: impl Into<String>) -> Self {
        let check = Check::of(id);
        Self { check, verdict: Verdict::Ok, sound: sound.into(), notes: Vec::new(), fix: Vec::new() }
    }

    /// Not looked at, for a reason.
    pub(crate) fn unchecked(id: &'static str, why: impl Into<String>, how: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unchecked, fix: vec![how.into()], ..Self::of(id, why) }
    }

    pub(crate) fn note(&mut self, verdict: Verdict, subject: &str, what: impl Into<String>) {
        self.verdict = self.verdict.max(verdict);
        self.notes.push(Note { verdict, subject: subject.to_owned(), what: what.into() });
    }

    /// A command that mends it; each once.
    pub(crate) fn fix(&mut self, command: impl Into<String>) {
        let command = command.into();
        if !self.fix.contains(&command) {
            self.fix.push(command);
        }
    }

    /// Each subject's note in a line, or one line for all.
    pub(crate) fn what(&self) -> &str {
        if self.notes.iter().all(|note| note.verdict == Verdict::Ok) { &self.sound } else { "" }
    }

    pub(crate) fn json(&self) -> Value {
        let notes = self.notes.iter().map(
            |note| json!({ "subject": note.subject, "verdict": note.verdict.as_str(), "what": note.what }),
        );
        json!({
            "id": self.check.id,
            "verdict": self.verdict.as_str(),
            "title": self.check.title(Lang::En),
            "what": self.what(),
            "why": self.check.why(Lang::En),
            "fix": self.fix,
            "notes": notes.collect::<Vec<_>>(),
        })
    }
}
