//! The rate limit over TCP, to 5 % and without a burst.

use std::time::Duration;

use bench_core::plan::TestCase;
use bench_core::units::BitsPerSecond;

use crate::rig::{Rig, bandwidth_case};

#[test]
fn one_gigabit_is_held_within_five_percent_on_one_and_on_four_streams() {
    let rig = Rig::tcp();
    for streams in [1, 4] {
        let case = TestCase {
            streams,
            warmup: Duration::ZERO,
            window: Duration::from_millis(400),
            rate_limit: Some(BitsPerSecond(1e9)),
            ..bandwidth_case()
        };
        let (_, received) = rig.bandwidth(case);
        let rate = received.average().unwrap().gbps();
        assert!((0.95..=1.05).contains(&rate), "{streams} streams: {rate} Gb/s");
        // Without a warm-up the window shows the first byte: 10 ms at 1 Gb/s are 1.25 MB.
        let first = received.marks.first().unwrap();
        assert!(first.bytes <= 2 * 1_250_000, "{streams} streams: {first:?}");
    }
}
