//! The runs that are tests, with fixed seeds.

use clap::Parser;

use crate::history::check::{Finding, Judgement, Kind};
use crate::options::Options;
use crate::run;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    flags: &'static str,
    holds: fn(&Judgement) -> Result<(), String>,
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "faults_within_the_assumptions_give_no_two_holders",
        flags: "--seconds 22 --seed 4 --fault kept",
        holds: no_bug,
    },
    Case {
        name: "with_tokens_no_increment_is_lost_whoever_stands_still",
        flags: "--seconds 12 --seed 8 --fault freeze-client,freeze,kill-client,cut-minority,cut-client,lose-replies,\
                reset,client-kill,script-flush,clock-slew",
        holds: no_bug,
    },
    Case {
        name: "faults_that_break_an_assumption_are_named_as_the_cause_of_two_holders",
        // Each of the four. Without tokens: with them, masters that were flushed grant nothing until an operator came.
        flags: "--seconds 9 --seed 2 --resources 1 --fault broken --unfenced --overlaps 4",
        holds: |judgement| {
            no_bug(judgement)?;
            ["clock-step", "flush", "evict", "del"].iter().try_for_each(|word| explains(judgement, word))
        },
    },
    Case {
        name: "without_tokens_a_holder_that_stood_still_writes_over_the_next_one",
        flags: "--seconds 6 --seed 3 --resources 1 --ttl 500 --fault freeze-client --unfenced --oversleep 4",
        holds: |judgement| {
            no_bug(judgement)?;
            if judgement.lost_updates == 0 { Err("no update was lost".into()) } else { Ok(()) }
        },
    },
    #[cfg(feature = "mutants")]
    Case {
        name: "a_client_that_deletes_blindly_is_caught",
        flags: "--seconds 5 --seed 5 --fault freeze-client --mutant blind-delete",
        holds: two_holders,
    },
    #[cfg(feature = "mutants")]
    Case {
        name: "a_client_that_takes_refusals_for_votes_is_caught",
        flags: "--seconds 3 --seed 6 --no-fault --mutant refusals-count",
        holds: two_holders,
    },
    #[cfg(feature = "mutants")]
    Case {
        name: "a_client_that_asks_masters_too_soon_after_a_restart_is_caught",
        flags: "--seconds 6 --seed 7 --resources 1 --ttl 2000 --fault three-at-once --mutant quarantine-too-short \
                --unfenced",
        holds: two_holders,
    },
];

fn no_bug(judgement: &Judgement) -> Result<(), String> {
    let bugs: Vec<String> = judgement.bugs().map(ToString::to_string).collect();
    if bugs.is_empty() { Ok(()) } else { Err(bugs.join("\n")) }
}

fn explains(judgement: &Judgement, word: &str) -> Result<(), String> {
    let named = |by: &String| by.split(", ").any(|by| by.split('=').next() == Some(word));
    let by_it =
        |finding: &Finding| finding.kind == Kind::Overlap && finding.explained_by.as_ref().is_some_and(named);
    if judgement.findings.iter().any(by_it) { Ok(()) } else { Err(format!("{word} gave no two holders")) }
}

#[cfg(feature = "mutants")]
fn two_holders(judgement: &Judgement) -> Result<(), String> {
    match judgement.count(Kind::Overlap, true) {
        0 => Err("the broken client was not caught".into()),
        _ => Ok(()),
    }
}

impl Case {
    /// Below the build's folder for such things, where somebody may look at it afterwards.
    pub(crate) fn run(&self) -> Result<(), String> {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos").join(self.name);
        let words = std::iter::once("chaos").chain(self.flags.split(' '));
        let mut options = Options::try_parse_from(words).map_err(|error| error.to_string())?;
        options.out = Some(folder);
        let seen = run::run(&options).map_err(|error| error.to_string())?;
        print!("{}", run::tell(&seen));
        (self.holds)(&seen.judgement)
    }
}
