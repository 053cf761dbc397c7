//! Bytes over time, with the slices that show how steady the rate was.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DataCheck, Window};
use crate::time::Mono;
use crate::units::BitsPerSecond;

/// What one end of a bandwidth cell counted inside its window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandwidthSample {
    /// The window on this end's clock.
    pub window: Window,
    /// Payload bytes received (sent, at the source) inside the window.
    pub bytes: u64,
    /// Running totals inside the window, in order of time; at most [`BandwidthSample::MAX_MARKS`].
    pub marks: Vec<Mark>,
    /// Result of the data check; `Unchecked` at the source.
    pub check: DataCheck,
    /// TCP segments sent again over the cell's life (TCP_INFO `tcpi_total_retrans`), at the source.
    pub retransmits: Option<u64>,
    /// Processor time that the cell's threads used over the window, nanoseconds, where the kernel tells.
    pub cpu_ns: Option<u64>,
}

/// Running totals at one instant of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Nanoseconds since the window's start.
    pub at_ns: u64,
    /// Bytes since the window's start, over all streams.
    pub bytes: u64,
    /// Completed blocks since the window's start, over all streams.
    pub completions: u64,
}

/// How steady the rate was over slices of max(10 ms, 64 completions).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceStats {
    /// How many slices.
    pub slices: u32,
    /// Rate of the slowest slice.
    pub min: BitsPerSecond,
    /// Rate of the fastest slice.
    pub max: BitsPerSecond,
    /// Standard deviation of the slices' rates over their mean (coefficient of variation).
    pub variation: f64,
}

impl BandwidthSample {
    /// Most marks a sample keeps: bounds its size to about 2 KiB.
    pub const MAX_MARKS: usize = 256;
    /// Shortest time between two marks and shortest slice.
    pub const MIN_SLICE: Duration = Duration::from_millis(10);
    /// Fewest completed blocks in a slice: with fewer, the block size shows as spread.
    pub const MIN_SLICE_COMPLETIONS: u64 = 64;

    /// The time between two marks for a window of this length.
    pub fn mark_interval(window: Duration) -> Duration {
        Self::MIN_SLICE.max(window / Self::MAX_MARKS as u32)
    }

    /// The average rate over the window; `None` for an empty window.
    pub fn average(&self) -> Option<BitsPerSecond> {
        BitsPerSecond::of(self.bytes, self.window.length())
    }

    /// The rate inside `common`, a window on the same clock, interpolated between marks; `None` if `common`
    /// does not lie inside this sample's window or is empty.
    pub fn average_within(&self, common: &Window) -> Option<BitsPerSecond> {
        let inside = self.window.intersection(common).filter(|both| both == common)?;
        let bytes = self.bytes_at(inside.end)? - self.bytes_at(inside.start)?;
        BitsPerSecond::of(bytes.max(0.0) as u64, inside.length())
    }

    /// Slice statistics; `None` where the window holds fewer than four slices.
    pub fn slice_stats(&self) -> Option<SliceStats> {
        let rates = self.slice_rates();
        if rates.len() < MIN_SLICES {
            return None;
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let variance = rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (rates.len() - 1) as f64;
        Some(SliceStats {
            slices: rates.len() as u32,
            min: BitsPerSecond(rates.iter().copied().fold(f64::INFINITY, f64::min)),
            max: BitsPerSecond(rates.iter().copied().fold(0.0, f64::max)),
            variation: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
        })
    }

    fn slice_rates(&self) -> Vec<f64> {
        let mut rates = Vec::new();
        let mut from = Mark { at_ns: 0, bytes: 0, completions: 0 };
        for mark in &self.marks {
            let time = Duration::from_nanos(mark.at_ns.saturating_sub(from.at_ns));
            let completions = mark.completions.saturating_sub(from.completions);
            if time >= Self::MIN_SLICE && completions >= Self::MIN_SLICE_COMPLETIONS {
                let bytes = mark.bytes.saturating_sub(from.bytes);
                rates.extend(BitsPerSecond::of(bytes, time).map(|rate| rate.0));
                from = *mark;
            }
        }
        rates
    }

    fn bytes_at(&self, at: Mono) -> Option<f64> {
        let at_ns = at.since(self.window.start).as_nanos() as u64;
        let end = Mark { at_ns: self.window.length().as_nanos() as u64, bytes: self.bytes, completions: 0 };
        let mut before = Mark { at_ns: 0, bytes: 0, completions: 0 };
        for mark in self.marks.iter().chain(std::iter::once(&end)) {
            if mark.at_ns >= at_ns {
                let span = mark.at_ns - before.at_ns;
                let share = if span == 0 { 1.0 } else { (at_ns - before.at_ns) as f64 / span as f64 };
                return Some(before.bytes as f64 + share * (mark.bytes.saturating_sub(before.bytes)) as f64);
            }
            before = *mark;
        }
        None
    }
}

/// Fewest slices from which a spread is told.
const MIN_SLICES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(bytes_per_mark: u64, completions_per_mark: u64) -> BandwidthSample {
        let marks: Vec<Mark> = (1..=100)
            .map(|i| Mark {
                at_ns: i * 10_000_000,
                bytes: i * bytes_per_mark,
                completions: i * completions_per_mark,
            })
            .collect();
        BandwidthSample {
            window: Window::new(Mono::from_nanos(5_000), Duration::from_secs(1)),
            bytes: 100 * bytes_per_mark,
            marks,
            check: DataCheck::Unchecked,
            retransmits: None,
            cpu_ns: None,
        }
    }

    #[test]
    fn a_steady_rate_has_no_spread_and_the_same_rate_in_any_part() {
        let sample = steady(1_000_000, 64);
        let stats = sample.slice_stats().expect("100 slices");
        assert_eq!((stats.slices, stats.variation), (100, 0.0));
        let part = Window::new(Mono::from_nanos(5_000 + 123_456_789), Duration::from_millis(333));
        let (whole, within) =
            (sample.average().expect("a window"), sample.average_within(&part).expect("inside"));
        assert!((whole.0 - within.0).abs() / whole.0 < 1e-6, "{whole} {within}");
    }

    #[test]
    fn few_completions_make_longer_slices_and_too_few_make_none() {
        assert_eq!(steady(1, 16).slice_stats().map(|s| s.slices), Some(25));
        assert_eq!(steady(1, 1).slice_stats(), None);
    }

    #[test]
    fn a_part_outside_the_window_has_no_rate() {
        let sample = steady(1_000, 64);
        assert_eq!(sample.average_within(&Window::new(Mono::from_nanos(0), Duration::from_millis(1))), None);
    }
}
