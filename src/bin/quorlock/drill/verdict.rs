//! What the drill comes to.

use quorlock::Policy;
use serde_json::{Value, json};

use super::pace::Pace;
use super::trial::{Done, Trial};
use crate::args::Drill;
use crate::duration::{millis, show};
use crate::output::count;
use crate::table::Table;

pub(super) struct Verdict {
    done: Vec<Done>,
    problems: Vec<String>,
    advice: Vec<String>,
    ttl_ms: u64,
    contenders: u8,
    pace: Value,
}

impl Verdict {
    pub(super) fn of(args: &Drill, policy: &Policy, pace: Pace, trials: Vec<Trial>) -> Self {
        let done: Vec<Done> = trials.into_iter().map(Trial::done).collect();
        let problems = problems(&done);
        let mut advice = pace.lines(policy);
        advice.extend(lessons(&done));
        Self {
            done,
            problems,
            advice,
            ttl_ms: millis(args.ttl),
            contenders: args.contenders,
            pace: pace.json(policy),
        }
    }

    /// What is not as it must be.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(super) fn text(&self) -> String {
        let mut table = Table::new([
            "work",
            "renewed",
            "masters",
            "entries",
            "double",
            "double, fenced",
            "refused by the fence",
            "told in time",
        ]);
        for done in &self.done {
            let row = [
                format!("{} % of the ttl, {}", done.percent, show(done.work)),
                if done.watchdog { "yes" } else { "no" }.to_owned(),
                if done.frozen { "one frozen" } else { "all well" }.to_owned(),
                done.entries.to_string(),
                done.double_unfenced.to_string(),
                done.double_fenced.to_string(),
                done.refused.to_string(),
                done.stopped.to_string(),
            ];
            table.row(row, None);
        }
        let choose = self.advice.iter().map(|line| format!("  {line}"));
        [table.lines(), vec![String::new(), "choose".to_owned()], choose.collect()].concat().join("\n")
    }

    pub(super) fn json(&self) -> Value {
        let run = |done: &Done| {
            json!({
                "work_percent": done.percent,
                "work_ms": millis(done.work),
                "renewed": done.watchdog,
                "frozen": done.frozen,
                "entries": done.entries,
                "double_unfenced": done.double_unfenced,
                "double_fenced": done.double_fenced,
                "refused": done.refused,
                "told_in_time": done.stopped,
                "missed": done.missed,
            })
        };
        json!({
            "outcome": if self.problems.is_empty() { "ok" } else { "failed" },
            "ttl_ms": self.ttl_ms,
            "contenders": self.contenders,
            "runs": self.done.iter().map(run).collect::<Vec<_>>(),
            "choose": self.pace,
            "problems": self.problems,
        })
    }
}

fn problems(done: &[Done]) -> Vec<String> {
    let mut problems = Vec::new();
    for run in done {
        let name = format!(
            "{} % of the ttl, {}, {}",
            run.percent,
            if run.watchdog { "renewed" } else { "not renewed" },
            if run.frozen { "one master frozen" } else { "all masters well" }
        );
        let mut problem = |what: String| problems.push(format!("{name}: {what}"));
        if run.watchdog && run.double_unfenced > 0 {
            problem(format!(
                "{} double entries under a lock that is renewed: there must be none",
                run.double_unfenced
            ));
        }
        if run.double_fenced > 0 {
            problem(format!("{} double entries past the fence: there must be none", run.double_fenced));
        }
        if !run.watchdog && run.percent > 100 && run.double_unfenced == 0 && run.missed.is_empty() {
            problem(
                "no double entry was seen where there must be some: the machine is too busy to show it; try a longer --ttl"
                    .to_owned(),
            );
        }
        if let Some(why) = run.missed.first() {
            problem(format!("{} without the lock, the first: {why}", count(run.missed.len(), "wait")));
        }
    }
    problems
}

/// What the figures say.
fn lessons(done: &[Done]) -> Vec<String> {
    let sum = |runs: &dyn Fn(&&Done) -> bool, figure: fn(&Done) -> usize| -> usize {
        done.iter().filter(runs).map(figure).sum()
    };
    let long = |watchdog: bool| move |run: &&Done| run.percent > 100 && run.watchdog == watchdog;
    let entries = sum(&long(false), |run| run.entries);
    let (left, kept) =
        (sum(&long(false), |run| run.double_unfenced), sum(&long(true), |run| run.double_unfenced));
    let (passed, refused) = (sum(&|_| true, |run| run.double_fenced), sum(&|_| true, |run| run.refused));
    vec![
        format!(
            "the renewal, which is on unless `.no_renewal()` switches it off: work longer than the ttl was entered twice \
             {left} of {entries} times without it, {kept} with it"
        ),
        format!(
            "a fencing token (`.fenced()`) where a second write would do harm: the fence refused {refused} late writes, and let \
             {} through",
            if passed == 0 { "none".to_owned() } else { passed.to_string() }
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run(
        watchdog: bool,
        frozen: bool,
        double_unfenced: usize,
        double_fenced: usize,
        missed: &[&str],
    ) -> Done {
        let work = Duration::from_millis(1500);
        let missed = missed.iter().map(|why| (*why).to_owned()).collect();
        Done {
            percent: 150,
            watchdog,
            frozen,
            work,
            entries: 6,
            double_unfenced,
            double_fenced,
            refused: 66,
            stopped: 0,
            missed,
        }
    }

    #[test]
    fn what_must_not_be_is_a_problem_and_what_must_be_is_none() {
        assert_eq!(problems(&[run(true, false, 0, 0, &[]), run(false, true, 4, 0, &[])]), [""; 0]);
        for (bad, words) in [
            (
                run(true, false, 2, 0, &[]),
                "renewed, all masters well: 2 double entries under a lock that is renewed",
            ),
            (run(false, true, 4, 1, &[]), "one master frozen: 1 double entries past the fence"),
            (run(false, false, 0, 0, &[]), "no double entry was seen where there must be some"),
            (run(true, false, 0, 0, &["busy", "late"]), "2 waits without the lock, the first: busy"),
        ] {
            let problems = problems(&[bad]);
            assert!(problems.len() == 1 && problems[0].contains(words), "{words}: {problems:?}");
        }
    }

    #[test]
    fn each_run_has_a_row_with_its_figures() {
        let verdict = Verdict {
            done: vec![run(true, false, 0, 0, &[]), run(false, true, 4, 1, &[])],
            problems: Vec::new(),
            advice: Vec::new(),
            ttl_ms: 1000,
            contenders: 3,
            pace: Value::Null,
        };
        let text = verdict.text();
        let words =
            |nth: usize| text.lines().nth(nth).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(1), "150 % of the ttl, 1.50 s yes all well 6 0 0 66 0");
        assert_eq!(words(2), "150 % of the ttl, 1.50 s no one frozen 6 4 1 66 0");
    }
}
