//! Shapes of SVG, in a square of coordinates that a phone can show.

use std::fmt::{Display, Write as _};

pub(super) const WIDTH: f64 = 440.0;

/// A text that means nothing to the markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[derive(Default)]
pub(super) struct Canvas {
    body: String,
    height: f64,
}

impl Canvas {
    pub(super) fn new(height: f64) -> Self {
        Self { body: String::new(), height }
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let (width, title) = (width.max(0.0), escape(title));
        let title = if title.is_empty() { title } else { format!("<title>{title}</title>") };
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\">{title}</rect>"
        );
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), text: impl Display) {
        let text = escape(&text.to_string());
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    pub(super) fn curve(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(self.body, "<polyline class=\"curve {class}\" points=\"{}\"/>", points.join(" "));
    }

    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let _ = writeln!(self.body, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>");
    }

    /// The element within a page, which says the rest.
    pub(super) fn svg(&self, label: &str) -> String {
        element(label, self.height, &self.body)
    }

    /// A picture that stands alone: with its title, whose colour is whose, and a style of its own.
    pub(super) fn picture(&self, title: &str, legend: &[String], style: &str) -> String {
        let mut head = Self::new(26.0);
        head.text("name", (0.0, 16.0), title);
        let mut x = 0.0;
        for (nth, name) in legend.iter().enumerate() {
            let width = 26.0 + 7.0 * name.chars().count() as f64;
            if nth == 0 || x + width > WIDTH {
                (x, head.height) = (0.0, head.height + 18.0);
            }
            head.rect(&format!("bar k{nth}"), (x, head.height - 13.0), (10.0, 10.0), "");
            head.text("", (x + 15.0, head.height - 4.0), name);
            x += width;
        }
        let (top, height) = (head.height + 6.0, head.height + 6.0 + self.height);
        let body = format!(
            "<style>{style}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n{}\
             <g transform=\"translate(0 {top})\">\n{}</g>\n",
            head.body, self.body
        );
        element(title, height, &body)
    }
}

fn element(label: &str, height: f64, body: &str) -> String {
    let label = escape(label);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{label}\">\n{body}</svg>"
    )
}

/// From a value to a place, in powers of ten.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Wide enough for these.
    pub(super) fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        let (low, high) = ((low * 0.9).log10(), (high * 1.1).log10());
        Self { low, high, from, to }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.max(1e-9).log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values within, few enough to be read.
    pub(super) fn marks(&self) -> Vec<f64> {
        let mut marks = Vec::new();
        let steps: &[f64] = if self.high - self.low > 1.6 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        for power in self.low.floor() as i32..=self.high.ceil() as i32 {
            for step in steps {
                let mark = step * 10f64.powi(power);
                if (self.low..=self.high).contains(&mark.log10()) {
                    marks.push(mark);
                }
            }
        }
        marks
    }
}

/// Microseconds as a person reads them.
pub(super) fn micros(value: f64) -> String {
    let short = |value: f64| {
        let text = if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") };
        let digits =
            text.find('.').map_or(text.len(), |point| if point >= 2 { point + 2 } else { point + 3 });
        let text = text[..digits.min(text.len())].to_owned();
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match value {
        value if value >= 1e6 => format!("{} s", short(value / 1e6)),
        value if value >= 1e3 => format!("{} ms", short(value / 1e3)),
        value => format!("{} µs", short(value)),
    }
}
