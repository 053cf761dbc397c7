//! What a simulated cell measures: pure functions of the fabric and the task.

use bench_core::fabric::{Concurrency, Fabric};
use bench_core::ids::{NodeIndex, RailId};
use bench_core::measure::{
    BandwidthSample, DataCheck, Histogram, LatencySample, Mark, Measurement, RttShare, Window,
};
use bench_core::message::CellTask;
use bench_core::plan::{TestCase, Verify};
use bench_core::units::BitsPerSecond;

use crate::data::Timing;

/// One cell on the model.
pub(super) struct Figures<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) task: &'a CellTask,
    pub(super) rail: RailId,
    pub(super) src: NodeIndex,
    pub(super) dst: NodeIndex,
    pub(super) timing: &'a Timing,
}

impl Figures<'_> {
    /// A steady rate over the window, with a mark at every interval.
    pub(super) fn bandwidth(&self, concurrency: Concurrency) -> Measurement {
        let modelled = self.fabric.rate(self.rail, self.src, self.dst, concurrency);
        let rate = limited(modelled, &self.task.case);
        let bytes_in = |nanos: u64| (rate.0 / 8.0 * nanos as f64 / 1e9) as u64;
        let window = self.window();
        let length_ns = window.length().as_nanos() as u64;
        let interval_ns = BandwidthSample::mark_interval(window.length()).as_nanos() as u64;
        let block = self.task.case.size.get().max(1);
        let bytes = bytes_in(length_ns);
        Measurement::Bandwidth(BandwidthSample {
            window,
            bytes,
            marks: (1..=length_ns / interval_ns)
                .take(BandwidthSample::MAX_MARKS)
                .map(|index| Mark {
                    at_ns: index * interval_ns,
                    bytes: bytes_in(index * interval_ns),
                    completions: bytes_in(index * interval_ns) / block,
                })
                .collect(),
            check: self.check(bytes),
            retransmits: None,
            cpu_ns: None,
        })
    }

    /// Exchanges one after the other until the window is full or [`MOST_SAMPLES`] are drawn.
    pub(super) fn latency(&self) -> Measurement {
        let histogram = self.exchanges();
        let bytes = histogram.len().saturating_mul(self.task.case.size.get());
        Measurement::Latency(LatencySample {
            window: self.window(),
            histogram,
            share: RttShare::Half,
            check: self.check(bytes),
        })
    }

    /// As many answers as the initiator has samples.
    pub(super) fn responder(&self) -> Measurement {
        Measurement::Responder { answered: self.exchanges().len() }
    }

    fn exchanges(&self) -> Histogram {
        let purpose = self.task.cell.0.into();
        let mut rng = self.fabric.rng(self.rail, self.src, self.dst, purpose);
        let mut histogram = Histogram::new();
        let mut left = self.timing.window;
        while !left.is_zero() && histogram.len() < MOST_SAMPLES {
            let round_trip = self.fabric.latency_sample(&mut rng, self.rail, self.src, self.dst)
                + self.fabric.latency_sample(&mut rng, self.rail, self.dst, self.src);
            histogram.record(round_trip.as_nanos() as u64 / 2);
            left = left.saturating_sub(round_trip);
        }
        histogram
    }

    fn window(&self) -> Window {
        Window::new(self.timing.window_start(), self.timing.window)
    }

    fn check(&self, bytes: u64) -> DataCheck {
        match self.task.case.verify {
            Verify::Off => DataCheck::Unchecked,
            Verify::Sampled => DataCheck::Equal { bytes },
        }
    }
}

fn limited(rate: BitsPerSecond, case: &TestCase) -> BitsPerSecond {
    BitsPerSecond(case.rate_limit.map_or(rate.0, |limit| rate.0.min(limit.0)))
}

/// Most exchanges drawn for one cell: enough for a p99.9, and thousands of cells stay cheap.
const MOST_SAMPLES: u64 = 4_096;
