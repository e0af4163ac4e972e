//! How a command ends: its exit code, and what went wrong.

use quorlock::protocol::request::RequestError;
use quorlock::protocol::votes::{Fault, Vote};
use quorlock::testbed::TestbedError;
use quorlock::{AcquireError, ConnectError, ExtendError, Refusal};
use serde_json::{Map, Value, json};

use crate::output;

/// The exit codes, most of them from sysexits.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The lock is somebody else's, or nobody's; or anything that has no code of its own.
    NotHeld,
    Usage,
    NoQuorum,
    Busy,
    Lost,
    Config,
    Signal(u8),
    /// What `doctor` found: warnings, or a master is down.
    Warnings,
    /// Errors, or no master may fail any more.
    Errors,
    /// Fewer masters than a quorum.
    NoMajority,
    /// A command's own, 126 and 127 of one that cannot be executed, or what busy was remapped to.
    Code(u8),
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::NotHeld | Self::Warnings => 1,
            Self::Usage => 2,
            Self::Errors => 3,
            Self::NoMajority => 4,
            Self::NoQuorum => 69,
            Self::Busy => 75,
            Self::Lost => 76,
            Self::Config => 78,
            Self::Signal(signal) => 128 + signal,
            Self::Code(code) => code,
        }
    }
}

/// What went wrong: one text for a person, one object for a program.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) text: String,
    pub(crate) json: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, outcome: &str, text: impl Into<String>) -> Self {
        let mut json = Map::new();
        json.insert("outcome".into(), outcome.into());
        Self { exit, text: text.into(), json }
    }

    pub(crate) fn config(text: impl Into<String>) -> Self {
        Self::new(Exit::Config, "bad_configuration", text)
    }

    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(Exit::NotHeld, "failed", text)
    }

    pub(crate) fn interrupted(exit: Exit, text: &str) -> Self {
        Self::new(exit, "interrupted", text)
    }

    /// The same with more to say to a program.
    pub(crate) fn with(mut self, more: Value) -> Self {
        if let Value::Object(more) = more {
            self.json.extend(more);
        }
        self
    }

    fn hint(mut self, hint: &str) -> Self {
        self.text.push('\n');
        self.text.push_str(hint);
        self
    }

    fn refused(exit: Exit, outcome: &str, text: String, refusal: &Refusal) -> Self {
        let masters: Vec<Value> = refusal
            .votes()
            .map(|(master, vote)| json!({ "master": master, "vote": vote.map(ToString::to_string) }))
            .collect();
        let votes = output::votes(refusal.tally());
        Self::new(exit, outcome, text).with(json!({ "votes": votes, "masters": masters }))
    }

    fn no_quorum(outcome: &str, text: String, refusal: &Refusal) -> Self {
        let failure = Self::refused(Exit::NoQuorum, outcome, text, refusal);
        let abstains = |vote: Option<&Vote>| matches!(vote, Some(Vote::Failed(Fault::Quarantined(_))));
        let uncounted = |vote: Option<&Vote>| matches!(vote, Some(Vote::Failed(Fault::Uncounted(_))));
        // The library tells these in words only.
        let says = |what: &str| {
            refusal.votes().any(|(_, vote)| vote.is_some_and(|vote| vote.to_string().contains(what)))
        };
        if says("(max_ttl)") {
            failure.hint(
                "The longest ttl is the fleet's, the same for every client: give it by --max-ttl, or as max_ttl in --config.",
            )
        } else if says("NOPERM") {
            failure
                .hint("`quorlock doctor RESOURCE…` names the right, or the key, that this user lacks (D13).")
        } else if refusal.tally().iter().any(|(_, vote)| uncounted(vote)) {
            failure.hint(
                "Fencing tokens need masters that have their counters: each line says what its master waits for. The lock \
                 itself can be had without --fence.",
            )
        } else if refusal.tally().iter().any(|(_, vote)| abstains(vote)) {
            failure.hint(
                "Masters in quarantine started lately and may have forgotten locks: wait until they vote by themselves. \
                 If this is a\nfirst start, and nobody ever held a lock on them, `quorlock init` admits them at once.",
            )
        } else {
            failure.hint("Start or reach enough of the masters again, or correct the list of masters.")
        }
    }
}

/// One line a master.
fn answers(refusal: &Refusal) -> String {
    let lines = refusal.answers().enumerate();
    lines.map(|(nth, (master, answer))| format!("\n  m{} {master}: {answer}", nth + 1)).collect()
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self::new(Exit::Usage, "bad_request", error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Request(error) => error.into(),
            ConnectError::FenceFloor(error) => Self::new(Exit::Usage, "bad_request", error.to_string()),
            ConnectError::Init(error) => {
                let exit = if error.is_unreached() { Exit::NoQuorum } else { Exit::NotHeld };
                Self::new(exit, "not_admitted", error.to_string())
            }
            error => Self::config(error.to_string()),
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        let text = error.to_string();
        match error {
            AcquireError::Contended(refusal) => Self::refused(Exit::Busy, "busy", text, &refusal)
                .hint("Wait longer (--wait), or see who holds it: `quorlock inspect`."),
            AcquireError::NoQuorum(refusal) => Self::no_quorum("no_quorum", text, &refusal),
            AcquireError::TooLate(refusal) => Self::refused(Exit::NoQuorum, "too_late", text, &refusal)
                .hint("The masters answer too slowly for this ttl: choose a longer --ttl."),
            AcquireError::Request(error) => error.into(),
            _ => Self::other(text),
        }
    }
}

impl From<ExtendError> for Failure {
    fn from(error: ExtendError) -> Self {
        let text = error.to_string();
        match error {
            ExtendError::Lost(_) => Self::new(Exit::Lost, "lost", text),
            ExtendError::Request(error) => error.into(),
            ExtendError::Unconfirmed { refusal, .. } => {
                let gone = |vote: &Vote| matches!(vote, Vote::Absent | Vote::Held(_));
                let gone = refusal.votes().filter(|(_, vote)| vote.is_some_and(gone)).count();
                let (tally, answers) = (refusal.tally(), answers(&refusal));
                let (had, quorum) = (tally.granted().len(), tally.quorum());
                let (masters, needed) = (quorum.masters(), quorum.needed());
                if gone >= quorum.blocking() {
                    let text = format!(
                        "not held: this holder has it on {had} of {masters} masters, {needed} needed"
                    );
                    Self::refused(Exit::NotHeld, "not_held", text + &answers, &refusal).hint(
                        "Its ttl is over, it was released, or the lock is somebody else's: acquire it anew.",
                    )
                } else {
                    let text = format!("no quorum: extended on {had} of {masters} masters, {needed} needed");
                    Self::no_quorum("no_quorum", text + &answers, &refusal)
                }
            }
            _ => Self::other(text),
        }
    }
}

impl From<TestbedError> for Failure {
    fn from(error: TestbedError) -> Self {
        let text = error.to_string();
        match error {
            TestbedError::NotAProgram { .. }
            | TestbedError::NoServer { .. }
            | TestbedError::NoEngine { .. } => Self::config(text),
            TestbedError::NoSuchMaster { .. } => Self::new(Exit::Usage, "bad_request", text),
            _ => Self::other(text),
        }
    }
}
