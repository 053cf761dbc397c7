//! Ping-pong latency on any backend.

use bench_core::measure::{DataCheck, RttShare};
use bench_core::plan::{TestCase, Verify, WaitMode};
use bench_core::units::Bytes;

use crate::rig::Rig;

// Exchanges are one after the other, so twice the sum of the halves fills the window and no more.
pub(crate) fn every_exchange_of_the_window_is_in_the_histogram(rig: &Rig) {
    let case = rig.latency_case();
    let (sample, answered) = rig.latency(case);
    assert!(!sample.histogram.is_empty());
    assert_eq!(sample.share, RttShare::Half);
    assert_eq!(sample.window.length(), case.window);
    // The two ends' clocks are one here; an exchange at either edge may count at one end only.
    assert!(answered.abs_diff(sample.histogram.len()) <= 2, "{answered} answered, {:?}", sample.histogram);
    let spent_ns: u64 = sample.histogram.buckets().iter().map(|(nanos, count)| 2 * nanos * count).sum();
    let p = sample.histogram.percentiles().unwrap();
    let window_ns = case.window.as_nanos() as u64;
    assert!(
        spent_ns <= window_ns + window_ns / 50 + 2 * p.max_ns,
        "{spent_ns} ns spent in a window of {window_ns} ns"
    );
}

pub(crate) fn percentiles_are_ordered_and_the_largest_stays(rig: &Rig) {
    let (sample, _) = rig.latency(rig.latency_case());
    let p = sample.histogram.percentiles().unwrap();
    let ordered = [p.min_ns, p.p50_ns, p.p90_ns, p.p99_ns, p.p999_ns, p.max_ns];
    assert!(ordered.is_sorted(), "{p:?}");
    assert!(p.min_ns > 500, "{p:?}: no message crosses a kernel in less");
    assert_eq!(sample.histogram.clipped(), 0);
}

pub(crate) fn verified_answers_are_equal(rig: &Rig) {
    let case = TestCase { verify: Verify::Sampled, size: Bytes(4_097), ..rig.latency_case() };
    let (sample, _) = rig.latency(case);
    assert!(matches!(sample.check, DataCheck::Equal { bytes } if bytes > 0), "{:?}", sample.check);
    assert_eq!(rig.latency(rig.latency_case()).0.check, DataCheck::Unchecked);
}

pub(crate) fn spinning_times_exchanges_as_blocking_does(rig: &Rig) {
    let (sample, answered) = rig.latency(TestCase { wait: WaitMode::Spinning, ..rig.latency_case() });
    assert!(!sample.histogram.is_empty());
    assert!(answered.abs_diff(sample.histogram.len()) <= 2);
}
