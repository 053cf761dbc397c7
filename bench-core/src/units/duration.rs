//! Durations as people write them.

use std::time::Duration;

use thiserror::Error;

/// Reads `2s`, `500ms`, `1m30s`, `2h` or a bare number of seconds such as `2` or `0.5` (perftest's `-D`).
///
/// # Errors
/// [`DurationError`] for any other text, and for a time that no clock holds.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError { text: text.to_owned() };
    let trimmed = text.trim();
    if let Ok(seconds) = trimmed.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| error());
    }
    let mut total = Duration::ZERO;
    let mut rest = trimmed;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(error)?;
        let (number, tail) = rest.split_at(digits);
        let (seconds, tail) = UNITS
            .iter()
            .find_map(|(unit, seconds)| tail.strip_prefix(unit).map(|tail| (*seconds, tail)))
            .ok_or_else(error)?;
        let value: f64 = number.parse().map_err(|_| error())?;
        let part = Duration::try_from_secs_f64(value * seconds).map_err(|_| error())?;
        total = total.checked_add(part).ok_or_else(error)?;
        rest = tail;
    }
    if trimmed.is_empty() { Err(error()) } else { Ok(total) }
}

/// The shortest readable form: `850us`, `500ms`, `2s`, `1m30s`, `2h05m`.
pub fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds, time.subsec_nanos()) {
        (0, nanos) if nanos < 1_000_000 => format!("{}us", nanos / 1_000),
        (0, nanos) => format!("{}ms", nanos / 1_000_000),
        (1..=59, nanos) if nanos >= 50_000_000 => format!("{:.1}s", time.as_secs_f64()),
        (1..=59, _) => format!("{seconds}s"),
        (60..=3_599, _) => format!("{}m{:02}s", seconds / 60, seconds % 60),
        (_, _) => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A form that [`parse_duration`] reads back exactly, for plans as run: `2s`, `1500ms`, `20000001ns`.
pub fn exact_duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
        .iter()
        .find(|(length, _)| nanos.is_multiple_of(*length))
        .map_or_else(|| format!("{nanos}ns"), |(length, unit)| format!("{}{unit}", nanos / length))
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a duration such as 2s, 500ms or 1m30s")]
pub struct DurationError {
    /// The refused text.
    pub text: String,
}

/// Units with their length in seconds; longer names first so that `ms` is not read as `m`.
const UNITS: [(&str, f64); 6] =
    [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_written() {
        for (text, millis) in
            [("2s", 2_000), ("500ms", 500), ("1m30s", 90_000), ("2", 2_000), ("0.5", 500), ("2h", 7_200_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "s", "2x", "-1", "2 s 3", "inf"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_exact_duration_loses_nothing_in_a_week() {
        for nanos in [0, 1, 999, 1_500_000, 2_000_000_000, 3_600_000_000_001, 604_799_999_999_999] {
            let time = Duration::from_nanos(nanos);
            assert_eq!(parse_duration(&exact_duration(time)), Ok(time));
        }
    }

    #[test]
    fn durations_print_short() {
        let show = |millis| format_duration(Duration::from_millis(millis));
        assert_eq!(
            [show(0), show(500), show(2_000), show(2_500), show(90_000), show(7_500_000)],
            ["0us", "500ms", "2s", "2.5s", "1m30s", "2h05m"]
        );
    }
}
