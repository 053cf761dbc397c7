//! The figure of a cell, from what its two ends measured.
//!
//! Bandwidth is the receiver's bytes in the window and the sender's only confirm it; latency is the initiator's.

use std::time::Duration;

use super::concurrency::{Concurrency, NotCounted};
use crate::cell::End;
use crate::measure::{
    BandwidthSample, DataCheck, Histogram, LatencySample, Measurement, Percentiles, RttShare, SliceStats,
    Window,
};
use crate::plan::{Means, Spread, TestCase};
use crate::record::{Observation, Outcome};
use crate::units::BitsPerSecond;

/// The figure of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure<'a> {
    /// Of a bandwidth cell.
    Bandwidth(BandwidthFigure),
    /// Of a latency cell.
    Latency(LatencyFigure<'a>),
}

/// What a bandwidth cell reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandwidthFigure {
    /// The observer's rate inside the counted window: the cell's figure.
    pub average: BitsPerSecond,
    /// How steady the observer's rate was over its own window; `None` with too few slices.
    pub slices: Option<SliceStats>,
    /// The sender's rate over its own window; `None` where it cannot count, as the end that is read from.
    pub sender: Option<BitsPerSecond>,
    /// The receiver's rate over its own window; `None` where it cannot count, as the end that is written to.
    pub receiver: Option<BitsPerSecond>,
    /// Messages a second, in millions, inside the counted window; `None` for a stream, which has no messages.
    pub message_rate_mpps: Option<f64>,
    /// Segments sent again, where the sender's kernel tells.
    pub retransmits: Option<u64>,
    /// Length of the counted window.
    pub window: Duration,
}

/// What a latency cell reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyFigure<'a> {
    /// Every counted exchange.
    pub histogram: &'a Histogram,
    /// Its points.
    pub points: Percentiles,
    /// Which part of the round trip they are.
    pub share: RttShare,
    /// Length of the initiator's window.
    pub window: Duration,
}

/// What was read from the two ends: a figure, a doubt that forbids its use, or both.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading<'a> {
    pub(super) figure: Option<Figure<'a>>,
    pub(super) doubt: Option<Doubt>,
}

/// Why a measured figure cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Doubt {
    /// The data that arrived is not the data that was sent: the cell fails.
    Corrupt { offset: u64, expected: u8, got: u8 },
    /// The ends counted different amounts.
    EndsDisagree { source: u64, destination: u64, unit: &'static str, allowed: u64 },
    /// It did not run at the same time as the rest of its round.
    NotConcurrent { reason: NotCounted, overlap: f64, clock_error_ns: u64 },
    /// The ends measured nothing that gives a figure.
    NoFigure(&'static str),
}

impl Figure<'_> {
    /// The figure that limits compare: the average in Gb/s, or the p50 in microseconds.
    pub fn value(&self) -> f64 {
        match self {
            Self::Bandwidth(bandwidth) => bandwidth.average.gbps(),
            Self::Latency(latency) => latency.points.p50_ns as f64 / 1e3,
        }
    }

    /// The figure with its unit.
    pub fn text(&self) -> String {
        match self {
            Self::Bandwidth(_) => format!("{:.2} Gb/s", self.value()),
            Self::Latency(_) => format!("p50 {:.2} us", self.value()),
        }
    }
}

/// Reads the figure of a complete attempt.
pub(super) fn read<'a>(
    case: &TestCase,
    source: &'a Observation,
    destination: &'a Observation,
    concurrency: Concurrency,
) -> Reading<'a> {
    let no_figure = |text| Reading { figure: None, doubt: Some(Doubt::NoFigure(text)) };
    let (Outcome::Measured(sent), Outcome::Measured(received)) = (&source.outcome, &destination.outcome)
    else {
        return no_figure("an end has no measurement");
    };
    match (case.kind.spread(), sent, received) {
        (Spread::Bandwidth, Measurement::Bandwidth(sent), Measurement::Bandwidth(received)) => {
            let counts = Counts { sent: Some(sent), received: Some(received) };
            bandwidth(case, counts, [source, destination], concurrency)
        }
        (Spread::Bandwidth, Measurement::Bandwidth(sent), Measurement::Passive { .. }) => {
            let counts = Counts { sent: Some(sent), received: None };
            bandwidth(case, counts, [source, destination], concurrency)
        }
        (Spread::Bandwidth, Measurement::Passive { .. }, Measurement::Bandwidth(received)) => {
            let counts = Counts { sent: None, received: Some(received) };
            bandwidth(case, counts, [source, destination], concurrency)
        }
        (Spread::Latency, Measurement::Latency(timed), Measurement::Responder { answered }) => {
            let errors = source.clock.error_ns.saturating_add(destination.clock.error_ns);
            let disagree = exchanges_disagree(timed, *answered, errors);
            latency(timed, DataCheck::Unchecked, disagree, concurrency)
        }
        (Spread::Latency, Measurement::Latency(timed), Measurement::Passive { check }) => {
            latency(timed, *check, None, concurrency)
        }
        (Spread::Bandwidth | Spread::Latency, _, _) => {
            no_figure("the ends measured something else than the test")
        }
    }
}

/// What the ends of a bandwidth cell counted, as far as they can.
struct Counts<'a> {
    sent: Option<&'a BandwidthSample>,
    received: Option<&'a BandwidthSample>,
}

fn bandwidth<'a>(
    case: &TestCase,
    counts: Counts<'_>,
    [source, destination]: [&Observation; 2],
    concurrency: Concurrency,
) -> Reading<'a> {
    let nothing = |text| Reading { figure: None, doubt: Some(Doubt::NoFigure(text)) };
    let (observed, observer) = match case.kind.observer() {
        End::Source => (counts.sent, source),
        End::Destination => (counts.received, destination),
    };
    let Some(observed) = observed else {
        return nothing("the end whose count is the figure counted nothing");
    };
    let Some(own_rate) = observed.average() else {
        return nothing("an end's window is empty");
    };
    let common = match concurrency {
        Concurrency::Counted { window, .. } => Some(Window {
            start: observer.clock.to_local(window.start),
            end: observer.clock.to_local(window.end),
        }),
        Concurrency::Alone | Concurrency::NotCounted { .. } => None,
    };
    let inside = common.and_then(|common| Some((observed.average_within(&common)?, common.length())));
    let (average, window) = inside.unwrap_or_else(|| (own_rate, observed.window.length()));
    let figure = Figure::Bandwidth(BandwidthFigure {
        average,
        slices: observed.slice_stats(),
        sender: counts.sent.and_then(BandwidthSample::average),
        receiver: counts.received.and_then(BandwidthSample::average),
        message_rate_mpps: message_rate_mpps(case, average),
        retransmits: counts.sent.and_then(|sent| sent.retransmits),
        window,
    });
    let doubt = wrong_data(destination)
        .or_else(|| wrong_data(source))
        .or_else(|| bytes_disagree(case, counts.sent?, counts.received?))
        .or_else(|| not_concurrent(concurrency));
    Reading { figure: Some(figure), doubt }
}

fn message_rate_mpps(case: &TestCase, rate: BitsPerSecond) -> Option<f64> {
    match case.kind.means() {
        Means::Tcp => None,
        Means::Rdma(_) => Some(rate.0 / 8.0 / case.size.get().max(1) as f64 / 1e6),
    }
}

fn wrong_data(observation: &Observation) -> Option<Doubt> {
    match &observation.outcome {
        Outcome::Measured(Measurement::Bandwidth(sample)) => corrupt(sample.check),
        Outcome::Measured(Measurement::Latency(sample)) => corrupt(sample.check),
        Outcome::Measured(Measurement::Passive { check }) => corrupt(*check),
        Outcome::Measured(Measurement::Responder { .. }) | Outcome::Failed(_) => None,
    }
}

fn latency(
    sample: &LatencySample,
    at_responder: DataCheck,
    disagree: Option<Doubt>,
    concurrency: Concurrency,
) -> Reading<'_> {
    let Some(points) = sample.histogram.percentiles() else {
        return Reading { figure: None, doubt: Some(Doubt::NoFigure("no exchange began inside the window")) };
    };
    let figure = Figure::Latency(LatencyFigure {
        histogram: &sample.histogram,
        points,
        share: sample.share,
        window: sample.window.length(),
    });
    let doubt = corrupt(sample.check)
        .or_else(|| corrupt(at_responder))
        .or(disagree)
        .or_else(|| not_concurrent(concurrency));
    Reading { figure: Some(figure), doubt }
}

fn corrupt(check: DataCheck) -> Option<Doubt> {
    match check {
        DataCheck::Unchecked | DataCheck::Equal { .. } => None,
        DataCheck::Different { offset, expected, got } => Some(Doubt::Corrupt { offset, expected, got }),
    }
}

fn not_concurrent(concurrency: Concurrency) -> Option<Doubt> {
    match concurrency {
        Concurrency::Alone | Concurrency::Counted { .. } => None,
        Concurrency::NotCounted { reason, overlap, clock_error_ns, window: _ } => {
            Some(Doubt::NotConcurrent { reason, overlap, clock_error_ns })
        }
    }
}

fn bytes_disagree(case: &TestCase, sent: &BandwidthSample, received: &BandwidthSample) -> Option<Doubt> {
    let scale = received.window.length().as_secs_f64() / sent.window.length().as_secs_f64();
    let source = (sent.bytes as f64 * scale) as u64;
    let share = (source.max(received.bytes) as f64 * AGREEMENT_SHARE) as u64;
    let allowed = share + in_flight_bytes(case);
    (source.abs_diff(received.bytes) > allowed).then_some(Doubt::EndsDisagree {
        source,
        destination: received.bytes,
        unit: "bytes",
        allowed,
    })
}

/// Bytes that may be between the two counts.
fn in_flight_bytes(case: &TestCase) -> u64 {
    let of_one = match case.rdma {
        None => IN_FLIGHT_BYTES_PER_STREAM,
        Some(options) => case.size.get().saturating_mul(u64::from(options.depth)),
    };
    of_one.saturating_mul(u64::from(case.streams.max(1)))
}

/// Beside the 1 %, the two windows may lie apart by the clock errors, at both edges, where exchanges may be as fast as
/// the fastest; and one exchange may be under way at each edge.
fn exchanges_disagree(sample: &LatencySample, answered: u64, clock_error_ns: u64) -> Option<Doubt> {
    let timed = sample.histogram.len();
    let fastest_ns = sample.histogram.percentiles().map_or(1, |points| match sample.share {
        RttShare::Half => 2 * points.min_ns,
        RttShare::Full => points.min_ns,
    });
    let at_edges = 2 * (clock_error_ns / fastest_ns.max(1) + 1);
    let allowed = (timed.max(answered) as f64 * AGREEMENT_SHARE) as u64 + at_edges;
    (timed.abs_diff(answered) > allowed).then_some(Doubt::EndsDisagree {
        source: timed,
        destination: answered,
        unit: "exchanges",
        allowed,
    })
}

/// How far the two ends' counts may be apart beside what is in flight (DESIGN section 2).
const AGREEMENT_SHARE: f64 = 0.01;

/// Bytes that one TCP stream may hold between the two counts: the largest send buffer (tcp_wmem, 4 MiB) and receive
/// buffer (tcp_rmem, 6 MiB) that Linux grows to by default. No buffer size is set by us, so the kernel's bound holds.
const IN_FLIGHT_BYTES_PER_STREAM: u64 = 10 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Window;
    use crate::time::Mono;

    fn sample(exchanges: u64) -> LatencySample {
        let mut histogram = Histogram::new();
        (0..exchanges).for_each(|_| histogram.record(10_000));
        LatencySample {
            window: Window::new(Mono::from_nanos(0), Duration::from_millis(500)),
            histogram,
            share: RttShare::Half,
            check: DataCheck::Unchecked,
        }
    }

    #[test]
    fn counts_may_differ_by_what_the_fastest_exchanges_fit_into_the_clock_error() {
        // Round trips of 20 us: 1 ms of clock error holds 50 of them at each edge, and one more is under way.
        let allowed = 2_000 / 100 + 2 * 51;
        assert_eq!(exchanges_disagree(&sample(2_000), 2_000 - allowed, 1_000_000), None);
        let doubt = exchanges_disagree(&sample(2_000), 2_000 - allowed - 1, 1_000_000);
        assert!(
            matches!(doubt, Some(Doubt::EndsDisagree { allowed: told, .. }) if told == allowed),
            "{doubt:?}"
        );
    }
}
