//! A latency histogram: 1 ns to 60 s, three significant digits, every sample kept.

use std::fmt;

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use serde::{Deserialize, Serialize, de};
use thiserror::Error;

/// Nanoseconds counted in an HDR histogram (1 ns to 60 s, 3 digits).
///
/// Merging adds counts; percentiles are never averaged. Values outside the range are held at its ends and counted
/// by [`Histogram::clipped`].
#[derive(Clone)]
pub struct Histogram {
    counts: Hdr<u64>,
    clipped: u64,
}

/// The points of a distribution that reports show, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Smallest value.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile, nearest rank.
    pub p90_ns: u64,
    /// 99th percentile, nearest rank.
    pub p99_ns: u64,
    /// 99.9th percentile, nearest rank.
    pub p999_ns: u64,
    /// Largest value; never left out.
    pub max_ns: u64,
}

impl Histogram {
    /// An empty histogram. Allocates its whole range (216 KiB), so recording allocates nothing.
    pub fn new() -> Self {
        let counts = Hdr::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS)
            .expect("constant bounds that hdrhistogram allows");
        Self { counts, clipped: 0 }
    }

    /// Counts one value.
    pub fn record(&mut self, nanos: u64) {
        if !(LOWEST_NS..=HIGHEST_NS).contains(&nanos) {
            self.clipped += 1;
        }
        self.counts.saturating_record(nanos.clamp(LOWEST_NS, HIGHEST_NS));
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("both histograms have the same constant bounds");
        self.clipped += other.clipped;
    }

    /// How many values were counted.
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many values lay outside 1 ns to 60 s.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// The points that reports show; `None` while empty.
    pub fn percentiles(&self) -> Option<Percentiles> {
        if self.is_empty() {
            return None;
        }
        let at = |quantile| self.counts.value_at_quantile(quantile);
        Some(Percentiles {
            min_ns: self.counts.min(),
            p50_ns: at(0.50),
            p90_ns: at(0.90),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: self.counts.max(),
        })
    }

    /// The recorded buckets as (highest value of the bucket in nanoseconds, count), ascending.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.counts.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }

    /// The HdrHistogram V2 encoding, which other tools read.
    pub fn to_v2(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.counts, &mut bytes).expect("writing into memory cannot fail");
        bytes
    }

    /// Reads the HdrHistogram V2 encoding.
    ///
    /// # Errors
    /// [`HistogramError`] if the bytes are no such encoding or have other bounds than ours.
    pub fn from_v2(bytes: &[u8], clipped: u64) -> Result<Self, HistogramError> {
        let counts: Hdr<u64> = Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(|e| HistogramError::Encoding(e.to_string()))?;
        if counts.low() != LOWEST_NS || counts.high() != HIGHEST_NS || counts.sigfig() != DIGITS {
            return Err(HistogramError::Bounds);
        }
        Ok(Self { counts, clipped })
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts && self.clipped == other.clipped
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} values, {:?})", self.len(), self.percentiles())
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.clipped, self.to_v2()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (clipped, bytes) = <(u64, Vec<u8>)>::deserialize(deserializer)?;
        Self::from_v2(&bytes, clipped).map_err(de::Error::custom)
    }
}

/// Why bytes are not one of our histograms.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HistogramError {
    /// Not an HdrHistogram V2 encoding.
    #[error("not an HdrHistogram V2 encoding: {0}")]
    Encoding(String),
    /// Other bounds or precision.
    #[error("histogram bounds are not 1 ns to 60 s with 3 digits")]
    Bounds,
}

/// Lowest value kept apart: 1 ns, below any clock we read.
const LOWEST_NS: u64 = 1;
/// Highest value: 60 s, above every deadline of an exchange.
const HIGHEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits: 0.1 % is finer than run-to-run noise.
const DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_counts_are_the_sum_and_the_worst_value_stays() {
        let (mut a, mut b) = (Histogram::new(), Histogram::new());
        (1..=1_000).for_each(|i| a.record(i * 1_000));
        b.record(59_000_000_000);
        a.merge(&b);
        let points = a.percentiles().expect("values were recorded");
        assert_eq!(a.len(), 1_001);
        assert!(points.max_ns >= 59_000_000_000, "{points:?}");
        assert!((500_000..=501_500).contains(&points.p50_ns), "{points:?}");
    }

    #[test]
    fn an_encoded_histogram_reads_back_and_a_cut_one_does_not() {
        let mut histogram = Histogram::new();
        [0, 5, 17_000, u64::MAX].into_iter().for_each(|v| histogram.record(v));
        let bytes = histogram.to_v2();
        assert_eq!(Histogram::from_v2(&bytes, histogram.clipped()), Ok(histogram.clone()));
        assert_eq!(histogram.clipped(), 2);
        for cut in 0..bytes.len() {
            assert!(Histogram::from_v2(&bytes[..cut], 0).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        assert_eq!(Histogram::new().percentiles(), None);
    }
}
