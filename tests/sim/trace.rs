//! What a run did, for a person; and a number that two runs alike share.

#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    lines: Option<Vec<String>>,
    fingerprint: u64,
}

impl Trace {
    /// One that keeps every line.
    pub(crate) fn told() -> Self {
        Self { lines: Some(Vec::new()), fingerprint: 0 }
    }

    pub(crate) fn tell(&mut self, now: u64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>12.6} s  {}", now as f64 / 1e9, line()));
        }
    }

    /// Another event, at `at`.
    pub(crate) const fn count(&mut self, at: u64) {
        self.fingerprint = (self.fingerprint ^ at).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
    }

    pub(crate) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
