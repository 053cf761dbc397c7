//! What a broken path does to a TCP cell: every failure names kind, phase and both addresses.

use std::time::Duration;

use bench_core::measure::{DataCheck, Measurement};
use bench_core::plan::{TestCase, Verify};
use bench_core::record::{FailureKind, Phase};
use bench_core::units::BitsPerSecond;
use transport::clock;
use transport::data::{Stop, Timing};

use crate::proxy::{Proxy, Trouble};
use crate::rig::{Results, Rig, bandwidth_case, latency_case, sample_of, timing};

/// 100 Mb/s: 12.5 kB a millisecond, so that a position is a time.
fn paced_case() -> TestCase {
    TestCase { rate_limit: Some(BitsPerSecond(100e6)), ..bandwidth_case() }
}

fn through(trouble: Trouble, case: TestCase) -> (Results, Timing) {
    let rig = Rig::tcp();
    let mut ends = rig.prepared(case);
    let proxy = Proxy::before(&ends.destination.info().unwrap(), trouble);
    ends.connect(proxy.info()).unwrap();
    let timing = timing(&case);
    let results = ends.run(&timing, &Stop::default());
    let latest = timing.deadline().after(Duration::from_secs(1));
    assert!(clock::now() <= latest, "{results:?}");
    (results, timing)
}

#[test]
fn a_flipped_bit_is_found_with_its_position() {
    let case = TestCase { verify: Verify::Sampled, ..paced_case() };
    // In the warm-up, where every byte is compared.
    let (results, _) = through(Trouble::Flip { at: 100_000 }, case);
    match sample_of(results.destination).check {
        DataCheck::Different { offset, expected, got } => {
            assert_eq!((offset, got), (100_000, expected ^ 0x40));
        }
        other => panic!("{other:?}"),
    }
    assert!(results.source.is_ok());
}

#[test]
fn a_flipped_bit_in_an_answer_is_found() {
    let case = TestCase { verify: Verify::Sampled, ..latency_case() };
    let (results, _) = through(Trouble::Flip { at: 1_000 }, case);
    let Ok(Measurement::Latency(sample)) = results.source else {
        panic!("{results:?}");
    };
    assert!(matches!(sample.check, DataCheck::Different { offset: 1_000, .. }), "{:?}", sample.check);
}

// 100 ms of traffic: 50 ms of warm-up and 50 ms of window are over.
#[test]
fn a_connection_that_breaks_in_the_window_is_a_crash_with_both_addresses() {
    let (results, _) = through(Trouble::Close { at: 1_250_000 }, paced_case());
    // The proxy is 127.0.0.3 to the source and 127.0.0.1 to the destination.
    for (result, local, peer) in
        [(results.source, "127.0.0.1:", "127.0.0.3:"), (results.destination, "127.0.0.2:", "127.0.0.1:")]
    {
        let failure = result.unwrap_err();
        assert_eq!((failure.kind, failure.phase), (FailureKind::Crash, Phase::Measure), "{failure:?}");
        assert!(failure.detail.contains(local) && failure.detail.contains(peer), "{failure:?}");
        assert!(failure.remedy.is_some());
    }
}

#[test]
fn a_path_that_falls_silent_is_a_timeout_at_the_deadline() {
    for case in [paced_case(), latency_case()] {
        let (results, timing) = through(Trouble::Stall { at: 20_000 }, case);
        for result in [results.source, results.destination] {
            let failure = result.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Timeout, "{failure:?}");
            assert!(failure.detail.contains("nothing moved for"), "{failure:?}");
        }
        assert!(clock::now() >= timing.deadline());
    }
}
