//! All that one look came to.

use quorlock::Survey;

use super::finding::{Finding, Verdict};
use super::masters::Health;
use crate::exit::Exit;

/// All findings of one look.
pub(super) struct Report {
    pub(super) survey: Survey,
    pub(super) up: usize,
    pub(super) health: Health,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    fn worst(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok)
    }

    pub(super) fn exit(&self) -> Exit {
        match (self.health, self.worst()) {
            (Health::NoQuorum, _) => Exit::NoMajority,
            (Health::NoSpare, _) | (_, Verdict::Error) => Exit::Errors,
            (Health::Degraded, _) | (_, Verdict::Warning) => Exit::Warnings,
            _ => Exit::Done,
        }
    }

    pub(super) fn outcome(&self) -> &'static str {
        match self.exit() {
            Exit::NoMajority => "no_quorum",
            Exit::Errors => "errors",
            Exit::Warnings => "warnings",
            _ => "ok",
        }
    }
}
