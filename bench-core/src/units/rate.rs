//! A rate in bits a second.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bits a second; printed as Gb/s with 10^9 bits. Suffixes of the text form are decimal: `2G` is 2 × 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitsPerSecond(pub f64);

impl BitsPerSecond {
    /// The rate at which `bytes` pass in `time`; `None` for an empty time.
    pub fn of(bytes: u64, time: Duration) -> Option<Self> {
        let seconds = time.as_secs_f64();
        (seconds > 0.0).then(|| Self(bytes as f64 * 8.0 / seconds))
    }

    /// A form that is read back exactly, for plans as run: `400G`, `2500M`, `123456789.5`.
    pub fn exact(self) -> String {
        [(1e9, "G"), (1e6, "M")]
            .iter()
            .find(|(factor, _)| (self.0 / factor).fract() == 0.0 && self.0 / factor * factor == self.0)
            .map_or_else(|| self.0.to_string(), |(factor, suffix)| format!("{}{suffix}", self.0 / factor))
    }

    /// In units of 10^9 bits a second.
    pub fn gbps(self) -> f64 {
        self.0 / 1e9
    }
}

impl fmt::Display for BitsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.2} Gb/s", self.gbps()))
    }
}

impl FromStr for BitsPerSecond {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let error = || RateError { text: text.to_owned() };
        let lower = text.trim().to_ascii_lowercase();
        let plain =
            ["bit/s", "b/s", "bps", "bit"].iter().find_map(|unit| lower.strip_suffix(unit)).unwrap_or(&lower);
        let plain = plain.trim();
        let (digits, factor) = [("k", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12)]
            .iter()
            .find_map(|(suffix, factor)| plain.strip_suffix(suffix).map(|digits| (digits, *factor)))
            .unwrap_or((plain, 1.0));
        let value: f64 = digits.trim().parse().map_err(|_| error())?;
        let rate = value * factor;
        if rate.is_finite() && rate > 0.0 { Ok(Self(rate)) } else { Err(error()) }
    }
}

/// A text that is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a rate such as 2G, 400G or 500M (bits a second, suffixes are decimal)")]
pub struct RateError {
    /// The refused text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal() {
        assert_eq!("2G".parse(), Ok(BitsPerSecond(2e9)));
        assert_eq!("400 Gb/s".parse(), Ok(BitsPerSecond(400e9)));
        assert_eq!("500Mbit".parse(), Ok(BitsPerSecond(500e6)));
        for bad in ["", "G", "0", "-1G", "infG", "nan"] {
            assert!(bad.parse::<BitsPerSecond>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_exact_rate_loses_nothing() {
        for rate in [400e9, 2.5e9, 123_456_789.5, 1e6, 0.1 + 0.2, 1e300].map(BitsPerSecond) {
            assert_eq!(rate.exact().parse(), Ok(rate));
        }
        assert_eq!(BitsPerSecond(2.5e9).exact(), "2500M");
    }

    #[test]
    fn no_time_gives_no_rate() {
        assert_eq!(BitsPerSecond::of(10, Duration::ZERO), None);
        assert_eq!(BitsPerSecond::of(125_000_000, Duration::from_secs(1)), Some(BitsPerSecond(1e9)));
    }
}
