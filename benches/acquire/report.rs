//! What was measured, for people and for programs.

use serde_json::{Value, json};

use crate::blocks::Measured;
use crate::chance::Chance;
use crate::slice::Figures;
use crate::sums::{Estimate, median};

/// One figure of a row.
struct Column {
    title: &'static str,
    key: &'static str,
    figure: fn(&Figures) -> f64,
    /// Whether its ratio to the base is shown, too.
    ratio: bool,
}

const fn column(title: &'static str, key: &'static str, figure: fn(&Figures) -> f64, ratio: bool) -> Column {
    Column { title, key, figure, ratio }
}

const ONE_TASK: &[Column] = &[
    column("acquire p50 µs", "acquire_p50_us", |f| f.acquire_p50, true),
    column("p99", "acquire_p99_us", |f| f.acquire_p99, false),
    column("release p50 µs", "release_p50_us", |f| f.release_p50, true),
    column("p99", "release_p99_us", |f| f.release_p99, false),
    column("CPU s/1k", "cpu_s_per_1000", |f| f.cpu / 1e3, true),
];

const MANY_TASKS: &[Column] = &[
    column("cycles/s", "cycles_per_s", |f| f.rate, true),
    column("CPU s/1k", "cpu_s_per_1000", |f| f.cpu / 1e3, true),
    column("acquire p50 µs", "acquire_p50_us", |f| f.acquire_p50, false),
    column("p99", "acquire_p99_us", |f| f.acquire_p99, false),
];

const FROZEN: &[Column] = &[
    column("acquire p50 µs", "acquire_p50_us", |f| f.acquire_p50, true),
    column("p99", "acquire_p99_us", |f| f.acquire_p99, true),
    column("release p50 µs", "release_p50_us", |f| f.release_p50, true),
    column("p99", "release_p99_us", |f| f.release_p99, true),
];

/// One workload's results.
pub(crate) struct Section {
    pub(crate) letter: char,
    pub(crate) measured: Measured,
}

impl Section {
    fn title(&self) -> &'static str {
        match self.letter {
            'A' => "one task, a fresh key each cycle; ratios to fred, those of one master to single",
            'B' => "64 tasks, unique keys",
            _ => "one task while masters are frozen, quorlock; ratios to healthy",
        }
    }

    fn columns(&self) -> &'static [Column] {
        match self.letter {
            'A' => ONE_TASK,
            'B' => MANY_TASKS,
            _ => FROZEN,
        }
    }

    /// What a row is divided by.
    fn base(&self, row: &str) -> &'static str {
        match self.letter {
            'A' if row == "single" || row == "quorlock-1" => "single",
            'A' => "fred",
            'B' if self.measured.row("rslock").is_some() => "rslock",
            'B' => "fred",
            _ => "healthy",
        }
    }

    pub(crate) fn print(&self, chance: &mut Chance) {
        println!("\n{}  {}", self.letter, self.title());
        if self.letter == 'B' {
            println!("   ratios to {}", self.base(""));
        }
        print!("   {:<15}", "");
        for column in self.columns() {
            print!("{:>15}", column.title);
            if column.ratio {
                print!("{:>19}", "ratio");
            }
        }
        println!("{:>9}", "cycles");
        for (row, blocks) in &self.measured.rows {
            print!("   {row:<15}");
            for column in self.columns() {
                let values: Vec<f64> = blocks.iter().map(column.figure).collect();
                print!("{:>15}", short(median(&values)));
                if column.ratio {
                    let ratios = self.measured.ratios(row, self.base(row), column.figure);
                    print!("{:>19}", ratio(&ratios, chance));
                }
            }
            println!("{:>9}", blocks.iter().map(|figures| figures.cycles).sum::<f64>());
        }
    }

    pub(crate) fn json(&self, chance: &mut Chance) -> Value {
        let rows = self.measured.rows.iter().map(|(row, blocks)| {
            let mut object = serde_json::Map::new();
            object.insert("arm".into(), json!(row));
            object.insert("ratios_to".into(), json!(self.base(row)));
            object.insert("cycles".into(), json!(blocks.iter().map(|figures| figures.cycles).sum::<f64>()));
            for column in self.columns() {
                let values: Vec<f64> = blocks.iter().map(column.figure).collect();
                object.insert(column.key.into(), json!(median(&values)));
                object.insert(format!("{}_blocks", column.key), json!(values));
                let ratios = self.measured.ratios(row, self.base(row), column.figure);
                if column.ratio && !ratios.is_empty() {
                    let estimate = Estimate::of(&ratios, chance);
                    let ratio =
                        json!({ "median": estimate.median, "low": estimate.low, "high": estimate.high });
                    object.insert(format!("{}_ratio", column.key), ratio);
                }
            }
            Value::Object(object)
        });
        json!({ "workload": self.letter, "title": self.title(), "rows": rows.collect::<Vec<_>>() })
    }
}

/// What the design asks for.
struct Aim {
    letter: char,
    what: &'static str,
    of: &'static str,
    to: &'static str,
    figure: fn(&Figures) -> f64,
    /// The ratio of these two is what the ratio is measured by.
    than: Option<(&'static str, &'static str)>,
    bound: Bound,
}

enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    const fn is_met(&self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= *bound,
            Self::AtLeast(bound) => value >= *bound,
        }
    }
}

const AIMS: &[Aim] = &[
    at_most(1.10, 'A', "acquire p50", "quorlock", "fred", |f| f.acquire_p50),
    at_most(1.10, 'A', "acquire p50", "quorlock", "fred-resp3", |f| f.acquire_p50),
    at_most(1.00, 'A', "acquire p50", "quorlock", "rslock", |f| f.acquire_p50),
    Aim {
        than: Some(("fred", "single")),
        ..at_most(1.10, 'A', "acquire p50", "quorlock", "quorlock-1", |f| f.acquire_p50)
    },
    at_most(1.10, 'A', "release p50", "quorlock", "fred", |f| f.release_p50),
    at_most(1.10, 'A', "CPU of a cycle", "quorlock", "fred", |f| f.cpu),
    at_most(1.10, 'A', "CPU of a cycle", "quorlock", "fred-resp3", |f| f.cpu),
    Aim { bound: Bound::AtLeast(1.6), ..at_most(0.0, 'B', "cycles/s", "quorlock", "rslock", |f| f.rate) },
    at_most(0.55, 'B', "CPU of a cycle", "quorlock", "rslock", |f| f.cpu),
    at_most(1.50, 'C', "acquire p99", "one frozen", "healthy", |f| f.acquire_p99),
    at_most(1.50, 'C', "acquire p99", "two frozen", "healthy", |f| f.acquire_p99),
];

const fn at_most(
    bound: f64,
    letter: char,
    what: &'static str,
    of: &'static str,
    to: &'static str,
    figure: fn(&Figures) -> f64,
) -> Aim {
    Aim { letter, what, of, to, figure, than: None, bound: Bound::AtMost(bound) }
}

/// How the aims stand.
pub(crate) fn aims(sections: &[Section], chance: &mut Chance) -> Vec<Value> {
    let measured = |letter| sections.iter().find(|section| section.letter == letter);
    AIMS.iter()
        .filter_map(|aim| {
            let measured = &measured(aim.letter)?.measured;
            let mut ratios = measured.ratios(aim.of, aim.to, aim.figure);
            let mut to = aim.to.to_owned();
            if let Some((of, than)) = aim.than {
                let others = measured.ratios(of, than, aim.figure);
                ratios = ratios.iter().zip(&others).map(|(ratio, other)| ratio / other).collect();
                to = format!("{to}, by that of {of}");
            }
            if ratios.is_empty() {
                return None;
            }
            let estimate = Estimate::of(&ratios, chance);
            let (word, bound) = match aim.bound {
                Bound::AtMost(bound) => ("at most", bound),
                Bound::AtLeast(bound) => ("at least", bound),
            };
            Some(json!({
                "workload": aim.letter, "what": aim.what, "of": aim.of, "to": to,
                "ratio": estimate.median, "low": estimate.low, "high": estimate.high,
                "aim": format!("{word} {bound:.2}"), "met": aim.bound.is_met(estimate.median),
            }))
        })
        .collect()
}

pub(crate) fn print_aims(aims: &[Value]) {
    if aims.is_empty() {
        return;
    }
    println!("\n   {:<56}{:>19}   {:<15}", "aims", "ratio", "asked");
    for aim in aims {
        let text = |key: &str| aim[key].as_str().unwrap_or_default();
        let number = |key: &str| aim[key].as_f64().unwrap_or(f64::NAN);
        let what = format!("{} {}, {} / {}", text("workload"), text("what"), text("of"), text("to"));
        let ratio = interval(number("ratio"), number("low"), number("high"));
        let met = if aim["met"] == json!(true) { "met" } else { "missed" };
        println!("   {what:<56}{ratio:>19}   {:<15}{met}", text("aim"));
    }
}

fn ratio(ratios: &[f64], chance: &mut Chance) -> String {
    if ratios.is_empty() {
        return String::new();
    }
    let Estimate { median, low, high } = Estimate::of(ratios, chance);
    interval(median, low, high)
}

fn interval(median: f64, low: f64, high: f64) -> String {
    format!("{median:.2} [{low:.2}–{high:.2}]")
}

fn short(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => format!("{value:.0}"),
        value if value >= 100.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}
