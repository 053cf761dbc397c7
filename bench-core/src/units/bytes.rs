//! A count of bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A count of bytes. As text, suffixes are binary as in perftest and nccl-tests: `64K` is 65,536.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Bytes {
    /// The shortest exact form: `64K`, `8M`, `1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, suffix) = SUFFIXES
            .iter()
            .rev()
            .find(|(shift, _)| self.0 != 0 && self.0.trailing_zeros() >= *shift)
            .map_or((0, ""), |(shift, suffix)| (*shift, *suffix));
        f.pad(&format!("{}{suffix}", self.0 >> shift))
    }
}

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Self, BytesError> {
        let upper = text.trim().to_ascii_uppercase();
        let plain = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
        let (digits, shift) = SUFFIXES
            .iter()
            .find_map(|(shift, suffix)| plain.strip_suffix(suffix).map(|digits| (digits, *shift)))
            .unwrap_or((plain, 0));
        digits
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(1 << shift))
            .map(Self)
            .ok_or_else(|| BytesError { text: text.to_owned() })
    }
}

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a size such as 65536, 64K, 8M or 1G (suffixes are binary)")]
pub struct BytesError {
    /// The refused text.
    pub text: String,
}

/// Binary suffixes with the power of two they stand for.
const SUFFIXES: [(u32, &str); 4] = [(10, "K"), (20, "M"), (30, "G"), (40, "T")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_binary_and_round_trip() {
        for (text, bytes) in
            [("64K", 65_536), ("8M", 8 << 20), ("1000", 1_000), ("2GiB", 2 << 30), ("4kb", 4_096)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
        for bad in ["", "K", "-1", "1.5M", "99999999T"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }
}
