//! What the demo comes to.

use std::fmt::Write;

use serde_json::{Value, json};

use super::script::Seen;
use super::stage::{Stage, TTL};
use crate::duration::millis;

pub(crate) struct Verdict {
    done: Option<usize>,
    expected: usize,
    overlaps: usize,
    refused: usize,
    missed: u64,
    seen: Seen,
    acquisitions: Vec<usize>,
    story: Vec<Value>,
    problems: Vec<String>,
}

pub(crate) fn judge(stage: &Stage, seen: &Seen) -> Verdict {
    let ledger = &stage.ledger;
    let mut verdict = Verdict {
        done: std::fs::read_to_string(&stage.counter).ok().and_then(|text| text.trim().parse().ok()),
        expected: ledger.wrote(),
        overlaps: ledger.overlaps(),
        refused: ledger.refused(),
        missed: ledger.missed(),
        seen: *seen,
        acquisitions: ledger.acquisitions(),
        story: stage.story.told().to_vec(),
        problems: [ledger.problems(), &ledger.lost_updates()].concat(),
    };
    verdict.check();
    verdict
}

impl Verdict {
    pub(crate) fn is_right(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    fn check(&mut self) {
        let seen = &self.seen;
        let checks = [
            (self.done == Some(self.expected), "the file's value is not the number of increments"),
            (self.expected > 0, "nothing was incremented"),
            (self.overlaps == 0, "two held the lock at once"),
            (seen.thawed, "no master was frozen and thawed"),
            (seen.quarantined, "the quarantine of the master that came back empty was not seen"),
            (seen.readmitted, "the master that came back empty did not vote again"),
            (seen.refused_after_thaw, "the holder that was frozen past its ttl did not refuse to write"),
            (seen.gap.is_some(), "no holder was killed"),
        ];
        let failed = checks.iter().filter(|(holds, _)| !holds).map(|(_, what)| (*what).to_owned());
        self.problems.extend(failed);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: String| {
            let _ = writeln!(text, "{what:<32}{value}");
        };
        let done = self.done.map_or("unreadable".to_owned(), |done| done.to_string());
        let gap = self.seen.gap.map_or("none".to_owned(), |gap| format!("{} ms", gap.as_millis()));
        let acquisitions: Vec<String> = self.acquisitions.iter().map(ToString::to_string).collect();
        line("\nincrements done", format!(" {done} (the value in the file)"));
        line("increments expected", format!("{} (the writes that the contenders reported)", self.expected));
        line("overlapping holds", self.overlaps.to_string());
        line("writes refused, lock over", self.refused.to_string());
        line("longest gap after a crash", format!("{gap} (the ttl is {} ms)", TTL.as_millis()));
        line("waits that ended without", self.missed.to_string());
        line("acquisitions per contender", acquisitions.join(" "));
        let end = if self.is_right() { "all is right" } else { "something is wrong" };
        format!("{text}{end}")
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "outcome": if self.is_right() { "ok" } else { "failed" },
            "increments_done": self.done,
            "increments_expected": self.expected,
            "overlaps": self.overlaps,
            "refused": self.refused,
            "refused_after_thaw": self.seen.refused_after_thaw,
            "longest_gap_ms": self.seen.gap.map(millis),
            "ttl_ms": millis(TTL),
            "missed": self.missed,
            "acquisitions": self.acquisitions,
            "problems": self.problems,
            "timeline": self.story,
        })
    }
}
