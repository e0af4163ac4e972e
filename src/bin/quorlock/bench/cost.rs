//! What the masters say they have done.

use super::bare::BareFred;

/// Sums over all masters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) commands: f64,
    pub(crate) received: f64,
    pub(crate) sent: f64,
    /// Microseconds, user and system.
    pub(crate) cpu: f64,
    pub(crate) clients: f64,
}

impl Counters {
    pub(crate) async fn read(asked: &BareFred) -> Result<Self, String> {
        let mut sum = Self::default();
        for info in asked.ask("INFO", &["all"]).await? {
            let number = |key: &str| -> f64 {
                let line = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
                line.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
            };
            sum.commands += number("total_commands_processed");
            sum.received += number("total_net_input_bytes");
            sum.sent += number("total_net_output_bytes");
            sum.cpu += (number("used_cpu_user") + number("used_cpu_sys")) * 1e6;
            sum.clients += number("connected_clients");
        }
        Ok(sum)
    }

    /// From then to now.
    pub(crate) fn since(self, then: Self) -> Self {
        Self {
            commands: self.commands - then.commands,
            received: self.received - then.received,
            sent: self.sent - then.sent,
            cpu: self.cpu - then.cpu,
            clients: self.clients - then.clients,
        }
    }
}
