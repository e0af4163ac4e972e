//! Durations as a person writes them.

use std::time::Duration;

/// `30s`, `250ms`, `1m 30s`. A number without a unit is refused: half of all readers take it for milliseconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text != "0" && text.parse::<f64>().is_ok() {
        return Err(format!("{text} of what? Write a unit: {text}s, or {text}ms"));
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}: write it as 30s, 250ms or 2m"))
}

/// As a person reads it: `29.7 s`, `0.21 ms`.
pub(crate) fn show(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.01 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// As an option takes it: `30s`, `250ms`.
pub(crate) fn word(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

/// Whole milliseconds for JSON.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_a_unit() {
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        for bad in ["30", "1.5", "-1", "1e3"] {
            assert!(parse(bad).unwrap_err().contains("unit"), "{bad}");
        }
        for bad in ["", "s", "-1s", "10 parsecs", "99999999999999999999s"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
