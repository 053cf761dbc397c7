//! Lists of message sizes as people write them.

use std::collections::BTreeSet;
use std::iter;

use thiserror::Error;

use super::bounds::MAX_CASES;
use crate::units::{Bytes, BytesError};

/// Reads `64K`, `64K,1M`, the doubling range `64K:8M`, and any mix of them, in the order written.
///
/// A range ends with the last doubling that does not exceed its upper end, as in nccl-tests' `-b` and `-e`.
///
/// # Errors
/// [`SizesError`] for any other text, for size 0, a descending range, a size named twice and for more sizes than a
/// plan may have cases.
pub fn parse_sizes(text: &str) -> Result<Vec<Bytes>, SizesError> {
    let mut sizes = Vec::new();
    for item in text.split(',') {
        match item.split_once(':') {
            None => sizes.push(positive(item)?),
            Some((low, high)) => sizes.extend(doubling(positive(low)?, positive(high)?)?),
        }
        if sizes.len() > MAX_CASES {
            return Err(SizesError::TooMany { max: MAX_CASES });
        }
    }
    refuse_repetition(&sizes)?;
    Ok(sizes)
}

/// Why a text is not a list of sizes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SizesError {
    /// One of the sizes cannot be read.
    #[error(transparent)]
    Size(#[from] BytesError),
    /// A message has at least one byte.
    #[error("size 0 measures nothing, the smallest size is 1")]
    Zero,
    /// The lower end is above the upper end.
    #[error("range {low}:{high} descends, write {high}:{low}")]
    Descending {
        /// The lower end as written.
        low: Bytes,
        /// The upper end as written.
        high: Bytes,
    },
    /// The same size twice.
    #[error("size {size} is named twice, name each once")]
    Repeated {
        /// The size.
        size: Bytes,
    },
    /// More sizes than a plan may have cases.
    #[error("more than {max} sizes, name fewer")]
    TooMany {
        /// The most there may be.
        max: usize,
    },
}

/// Refuses a size that stands in `sizes` twice.
pub(super) fn refuse_repetition(sizes: &[Bytes]) -> Result<(), SizesError> {
    let mut seen = BTreeSet::new();
    match sizes.iter().find(|size| !seen.insert(**size)) {
        None => Ok(()),
        Some(size) => Err(SizesError::Repeated { size: *size }),
    }
}

fn positive(text: &str) -> Result<Bytes, SizesError> {
    match text.parse()? {
        Bytes(0) => Err(SizesError::Zero),
        size => Ok(size),
    }
}

fn doubling(low: Bytes, high: Bytes) -> Result<impl Iterator<Item = Bytes>, SizesError> {
    if low > high {
        return Err(SizesError::Descending { low, high });
    }
    Ok(iter::successors(Some(low), move |size| {
        size.get().checked_mul(2).map(Bytes).filter(|next| *next <= high)
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_doubling_ranges_mix_in_the_order_written() {
        let read =
            |text| parse_sizes(text).map(|sizes| sizes.iter().map(Bytes::to_string).collect::<Vec<_>>());
        assert_eq!(read("64K").as_deref(), Ok(&["64K".to_owned()][..]));
        assert_eq!(read("1M, 64K").map(|s| s.join(" ")), Ok("1M 64K".to_owned()));
        assert_eq!(
            read("64K:512K,1,3:13").map(|s| s.join(" ")),
            Ok("64K 128K 256K 512K 1 3 6 12".to_owned())
        );
        assert_eq!(read("8M:8M").map(|s| s.join(" ")), Ok("8M".to_owned()));
    }

    #[test]
    fn each_wrong_list_is_refused_with_its_own_reason() {
        assert!(matches!(parse_sizes(""), Err(SizesError::Size(_))));
        assert!(matches!(parse_sizes("64K,"), Err(SizesError::Size(_))));
        assert!(matches!(parse_sizes("1:2:3"), Err(SizesError::Size(_))));
        assert_eq!(parse_sizes("0:8M"), Err(SizesError::Zero));
        assert!(matches!(parse_sizes("8M:64K"), Err(SizesError::Descending { .. })));
        assert_eq!(parse_sizes("64K:8M,1M"), Err(SizesError::Repeated { size: Bytes(1 << 20) }));
        let many: Vec<String> = (1..=1_001).map(|size| size.to_string()).collect();
        assert_eq!(parse_sizes(&many.join(",")), Err(SizesError::TooMany { max: 1_000 }));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_is_positive(text in "[0-9KMGTkb:,. -]{0,40}|\\PC{0,20}") {
            if let Ok(sizes) = parse_sizes(&text) {
                prop_assert!(!sizes.is_empty() && sizes.iter().all(|size| size.get() > 0));
            }
        }
    }
}
