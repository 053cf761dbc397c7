//! What a plan may ask for: the ends of every range, and the values of what it leaves out.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::PlanError;
use crate::units::{BitsPerSecond, Bytes};

/// Measured window. Shorter than five slices of 10 ms has no spread; longer than an hour is a soak test, for which
/// a plan can be run again.
pub(super) const WINDOW: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(3_600);

/// Window where the plan names none, the design's default.
pub(super) const DEFAULT_WINDOW: Duration = Duration::from_secs(2);

/// Traffic before the window.
pub(super) const WARMUP: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);

/// Warm-up where the plan names none: slow start over 400 Gb/s at 1 ms RTT has ended after some 20 round trips.
pub(super) const DEFAULT_WARMUP: Duration = Duration::from_millis(200);

/// Streams of a bandwidth cell. perftest's default is 1; 256 threads saturate every node sold.
pub(super) const STREAMS: RangeInclusive<u16> = 1..=256;

/// Streams where the plan names none, as in iperf3 and perftest.
pub(super) const DEFAULT_STREAMS: u16 = 1;

/// Block of a bandwidth test: each stream holds one in memory.
pub(super) const BANDWIDTH_SIZE: RangeInclusive<Bytes> = Bytes(1)..=Bytes(1 << 30);

/// Message of a latency test: beyond this it measures bandwidth.
pub(super) const LATENCY_SIZE: RangeInclusive<Bytes> = Bytes(1)..=Bytes(1 << 20);

/// Pacing of a cell: below 1 Mb/s a window holds no full block, above 10 Tb/s no NIC exists.
pub(super) const RATE_LIMIT: RangeInclusive<BitsPerSecond> = BitsPerSecond(1e6)..=BitsPerSecond(1e13);

/// Explicit budget.
pub(super) const BUDGET: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(7 * 86_400);

/// Time to arm a round.
pub(super) const PREPARE_TIMEOUT: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(600);

/// Time to arm a round where the plan names none: connecting takes milliseconds, a lost SYN three seconds at most
/// (two retries of 1 s and 2 s, RFC 6298), the rest is for a busy host.
pub(super) const DEFAULT_PREPARE_TIMEOUT: Duration = Duration::from_secs(10);

/// Most cases of a plan: a whole sweep of sizes for every kind many times over, yet a list that a person can check.
pub(super) const MAX_CASES: usize = 1_000;

/// Latency gate: the range of the latency histograms.
pub(super) const MAX_LATENCY: RangeInclusive<Duration> = Duration::from_nanos(1)..=Duration::from_secs(60);

/// Bandwidth gate: any rate a cell can reach.
pub(super) const MIN_BANDWIDTH: RangeInclusive<BitsPerSecond> = BitsPerSecond(1.0)..=BitsPerSecond(1e13);

/// A share of something: more than nothing, at most all.
pub(super) const SHARE: RangeInclusive<f64> = 0.001..=1.0;

/// Share of the median latency above it: up to a hundredfold.
pub(super) const LATENCY_FLOOR: RangeInclusive<f64> = 0.001..=100.0;

/// Robust standard deviations. Under 1 a third of sound cells would fail.
pub(super) const DEVIATIONS: RangeInclusive<f64> = 1.0..=1_000.0;

/// Fewest cells of a population: two cells have no median that a third could differ from.
pub(super) const MIN_CELLS: RangeInclusive<u32> = 3..=1_000_000;

/// Messages under way on a queue pair: current devices take 8,192 to 32,768 work requests.
pub(super) const DEPTH: RangeInclusive<u16> = 1..=8_192;

/// Work requests handed over at once.
pub(super) const POST_LIST: RangeInclusive<u16> = 1..=256;

/// Messages for one completion.
pub(super) const CQ_MOD: RangeInclusive<u16> = 1..=8_192;

/// Bytes inside a work request: no device takes more than about 1 KiB.
pub(super) const INLINE: RangeInclusive<u16> = 0..=4_096;

/// Four bits in the local route header.
pub(super) const SERVICE_LEVEL: RangeInclusive<u8> = 0..=15;

/// Twenty bits in the global route header.
pub(super) const FLOW_LABEL: RangeInclusive<u32> = 0..=0xf_ffff;

/// 0 is no P_Key (InfiniBand specification, 10.9.1).
pub(super) const PKEY: RangeInclusive<u16> = 1..=u16::MAX;

/// Local ACK timeout. 0 would wait for ever; above 22 (17 s) a dead peer outlives every round.
pub(super) const ACK_TIMEOUT: RangeInclusive<u8> = 1..=22;

/// Retries: three bits in the queue pair's context.
pub(super) const RETRIES: RangeInclusive<u8> = 0..=7;

/// Reads under way on a queue pair: current devices allow 16, some 128.
pub(super) const RD_ATOMIC: RangeInclusive<u8> = 1..=128;

/// A value that compares with neither end, as NaN does, is outside.
pub(super) fn within<T: PartialOrd>(
    key: &'static str,
    value: T,
    range: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Result<(), PlanError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(PlanError::OutOfRange { key, value: show(&value), low: show(range.start()), high: show(range.end()) })
}

/// Rails that a plan can name for a node: no machine has more than 32 HCA ports.
pub(super) const MAX_RAILS: usize = 64;

/// Characters of a device's name: the kernel has 15 for a network device and 63 for an RDMA device with its port.
pub(super) const MAX_DEVICE_NAME: usize = 80;
