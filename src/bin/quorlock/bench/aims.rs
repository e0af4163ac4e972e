//! What the library should reach, and whether this run saw it.

use super::chance::Chance;
use super::report::{Aim, Ratio, Report};
use super::scenes::renewal::{PEER_WATCHDOG, WATCHDOG};
use super::sums::Estimate;

struct Asked {
    what: &'static str,
    section: &'static str,
    of: (&'static str, &'static str),
    figure: &'static str,
    /// By the same figure of this row, or as it is.
    to: Option<&'static str>,
    /// And that by what the same two are of these rows.
    as_of: Option<(&'static str, &'static str)>,
    bound: Bound,
}

enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};

const fn asked(
    what: &'static str,
    section: &'static str,
    of: (&'static str, &'static str),
    figure: &'static str,
    to: Option<&'static str>,
    bound: Bound,
) -> Asked {
    Asked { what, section, of, figure, to, as_of: None, bound }
}

const OURS: (&str, &str) = ("", "quorlock");
const FAR: (&str, &str) = ("2/10/30/70/140 ms", "quorlock");
const FAR_64: (&str, &str) = ("2/10/30/70/140 ms, 64 tasks", "quorlock");
const ONE: (&str, &str) = ("8 in one process", "quorlock");
const EIGHT: (&str, &str) = ("8 processes", "quorlock");

const ASKED: &[Asked] = &[
    asked(
        "acquire p50, one task / bare fred's fan-out",
        "loopback",
        OURS,
        "acquire p50",
        Some("fred"),
        AtMost(1.10),
    ),
    asked("acquire p50, one task / rslock", "loopback", OURS, "acquire p50", Some("rslock"), AtMost(1.0)),
    asked(
        "release p50, one task / bare fred's fan-out",
        "loopback",
        OURS,
        "release p50",
        Some("fred"),
        AtMost(1.10),
    ),
    Asked {
        as_of: Some(("fred", "single")),
        ..asked(
            "acquire p50, five masters / one, by what it is of bare fred",
            "loopback",
            OURS,
            "acquire p50",
            Some("quorlock-1"),
            AtMost(1.10),
        )
    },
    asked(
        "client CPU, one task / bare fred's fan-out",
        "loopback",
        OURS,
        "client CPU",
        Some("fred"),
        AtMost(1.10),
    ),
    asked("cycles/s, 64 tasks / rslock", "tasks", OURS, "cycles", Some("rslock"), AtLeast(1.6)),
    asked("client CPU, 64 tasks / rslock", "tasks", OURS, "client CPU", Some("rslock"), AtMost(0.55)),
    asked("acquire p50 behind 2/10/30/70/140 ms, µs", "distance", FAR, "acquire p50", None, AtMost(30_900.0)),
    asked("the same with 64 tasks, µs", "distance", FAR_64, "acquire p50", None, AtMost(30_900.0)),
    asked(
        "acquire p99, one master frozen / healthy",
        "faults",
        ("", "one frozen"),
        "acquire p99",
        Some("healthy"),
        AtMost(1.5),
    ),
    asked(
        "acquire p99, two masters frozen / healthy",
        "faults",
        ("", "two frozen"),
        "acquire p99",
        Some("healthy"),
        AtMost(1.5),
    ),
    asked(
        "release p50, one master frozen / healthy",
        "faults",
        ("", "one frozen"),
        "release p50",
        Some("healthy"),
        AtMost(1.10),
    ),
    asked(
        "release p50, two masters frozen / healthy",
        "faults",
        ("", "two frozen"),
        "release p50",
        Some("healthy"),
        AtMost(1.10),
    ),
    asked("hand-off p50, 8 in one process, ms", "handoff", ONE, "hand-off p50", None, AtMost(0.30)),
    asked("commands a turn there", "handoff", ONE, "commands", None, AtMost(10.5)),
    asked("luckiest / unluckiest there", "handoff", ONE, "luckiest/unluckiest", None, AtMost(1.1)),
    asked("hand-off p50, 8 processes, ms", "handoff", EIGHT, "hand-off p50", None, AtMost(0.7)),
    asked("commands a turn there", "handoff", EIGHT, "commands", None, AtMost(60.0)),
    asked("luckiest / unluckiest there", "handoff", EIGHT, "luckiest/unluckiest", None, AtMost(1.5)),
    asked(
        "client CPU a renewal by hand, 64 at once / rslock",
        "renewal",
        ("64 at once", "quorlock"),
        "client CPU",
        Some("rslock"),
        AtMost(0.5),
    ),
    asked(
        "client CPU a renewal, watchdog, 1,000 locks / rslock of 1,000",
        "renewal",
        (WATCHDOG, "quorlock, 1000 locks"),
        "client CPU",
        Some(PEER_WATCHDOG),
        AtMost(0.15),
    ),
    asked(
        "the same, 10,000 locks",
        "renewal",
        (WATCHDOG, "quorlock, 10000 locks"),
        "client CPU",
        Some(PEER_WATCHDOG),
        AtMost(0.15),
    ),
];

/// Those that this run can tell of.
pub(crate) fn of(report: &Report, chance: &mut Chance) -> Vec<Aim> {
    ASKED.iter().filter_map(|asked| asked.look(report, chance)).collect()
}

impl Asked {
    fn look(&self, report: &Report, chance: &mut Chance) -> Option<Aim> {
        let section = report.section(self.section)?;
        let (group, name) = self.of;
        let blocks = |name| Some(section.row(group, name)?.figure(self.figure)?.blocks.as_slice());
        let measured: Estimate = match self.to {
            None => section.row(group, name)?.figure(self.figure)?.estimate,
            Some(to) => {
                let ours = Ratio::of(to, blocks(name)?, blocks(to)?, chance)?;
                match self.as_of {
                    None => ours.estimate,
                    Some((five, one)) => {
                        let theirs = Ratio::of(one, blocks(five)?, blocks(one)?, chance)?;
                        Ratio::of(five, &ours.blocks, &theirs.blocks, chance)?.estimate
                    }
                }
            }
        };
        let (asked, met) = match self.bound {
            AtMost(bound) => (format!("at most {bound}"), measured.median <= bound),
            AtLeast(bound) => (format!("at least {bound}"), measured.median >= bound),
        };
        Some(Aim { what: self.what.into(), asked, measured, met })
    }
}
