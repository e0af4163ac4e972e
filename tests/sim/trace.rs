//! What a run did, for a person.

#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    /// One that keeps every line.
    pub(crate) fn told() -> Self {
        Self { lines: Some(Vec::new()) }
    }

    pub(crate) fn tell(&mut self, now: u64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>12.6} s  {}", now as f64 / 1e9, line()));
        }
    }

    pub(crate) fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
