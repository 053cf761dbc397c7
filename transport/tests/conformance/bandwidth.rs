//! Bandwidth on any backend.

use std::time::Duration;

use bench_core::measure::{BandwidthSample, DataCheck};
use bench_core::plan::{TestCase, Verify, WaitMode};
use bench_core::units::{BitsPerSecond, Bytes};

use crate::rig::Rig;

// The limit keeps the socket buffers short, so the two counts can differ by little more than 1 %.
pub(crate) fn both_ends_agree_on_the_bytes_of_the_window(rig: &Rig) {
    let case = limited(rig.bandwidth_case(), 1e9);
    let (sent, received) = rig.bandwidth(case);
    assert!(received.bytes > 0);
    let difference = sent.bytes.abs_diff(received.bytes);
    let allowed = received.bytes / 100 + IN_FLIGHT;
    assert!(difference <= allowed, "{} sent, {} received", sent.bytes, received.bytes);
    assert_eq!(received.window.length(), case.window);
    assert_eq!(sent.window, received.window);
}

pub(crate) fn marks_grow_and_stay_inside_the_window(rig: &Rig) {
    let (sent, received) = rig.bandwidth(rig.bandwidth_case());
    for sample in [sent, received] {
        let expected = sample.window.length().as_millis() / BandwidthSample::MIN_SLICE.as_millis();
        assert_eq!(sample.marks.len() as u128, expected);
        for pair in sample.marks.windows(2) {
            assert!(pair[0].at_ns < pair[1].at_ns, "{pair:?}");
            assert!(pair[0].bytes <= pair[1].bytes && pair[0].completions <= pair[1].completions, "{pair:?}");
        }
        let last = sample.marks.last().unwrap();
        assert!(u128::from(last.at_ns) <= sample.window.length().as_nanos());
        assert!(last.bytes <= sample.bytes);
        assert_eq!(last.completions, last.bytes / (128 << 10));
    }
}

pub(crate) fn a_rate_limit_is_not_exceeded(rig: &Rig) {
    let (_, received) = rig.bandwidth(limited(rig.bandwidth_case(), 500e6));
    let rate = received.average().unwrap();
    assert!(rate.0 <= 525e6, "{rate}");
    assert!(rate.0 >= 250e6, "{rate}: a busy machine may be slow, but not this slow");
}

pub(crate) fn several_streams_are_one_sample(rig: &Rig) {
    let case = TestCase { streams: 4, ..limited(rig.bandwidth_case(), 1e9) };
    let (sent, received) = rig.bandwidth(case);
    let difference = sent.bytes.abs_diff(received.bytes);
    assert!(
        difference <= received.bytes / 100 + 4 * IN_FLIGHT,
        "{} sent, {} received",
        sent.bytes,
        received.bytes
    );
    // One stream's share would be a quarter.
    assert!(received.average().unwrap().0 > 500e6);
}

pub(crate) fn verified_data_is_equal_and_counted(rig: &Rig) {
    let case = TestCase { verify: Verify::Sampled, size: Bytes(100_001), streams: 2, ..rig.bandwidth_case() };
    let (sent, received) = rig.bandwidth(case);
    assert!(matches!(received.check, DataCheck::Equal { bytes } if bytes > 0), "{:?}", received.check);
    assert!(!matches!(sent.check, DataCheck::Different { .. }));
    let (_, unchecked) = rig.bandwidth(rig.bandwidth_case());
    assert_eq!(unchecked.check, DataCheck::Unchecked);
}

pub(crate) fn spinning_moves_data_as_blocking_does(rig: &Rig) {
    let case = TestCase {
        wait: WaitMode::Spinning,
        window: Duration::from_millis(100),
        ..limited(rig.bandwidth_case(), 500e6)
    };
    let (sent, received) = rig.bandwidth(case);
    assert!(received.bytes > 0);
    assert!(sent.bytes.abs_diff(received.bytes) <= received.bytes / 100 + IN_FLIGHT);
    assert_eq!(received.window.length(), case.window);
}

fn limited(case: TestCase, bits_per_second: f64) -> TestCase {
    TestCase { rate_limit: Some(BitsPerSecond(bits_per_second)), ..case }
}

/// Bytes that may be on their way in one paced stream when the window opens or closes: 34 ms at 1 Gb/s, a delay that the
/// scheduler of a busy machine causes.
const IN_FLIGHT: u64 = 4 << 20;
