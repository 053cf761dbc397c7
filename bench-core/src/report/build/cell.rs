//! One cell with its figure, limits and evidence.

use super::super::model::{
    AttemptReport, BandwidthReport, CellReport, ConcurrencyReport, ConcurrencyWord, DataCheckReport,
    DataCheckWord, EvidenceReport, FactReport, FailureReport, LatencyReport, LimitReport, LimitWord,
    PopulationReport, PurposeWord, RttWord,
};
use super::{fine, micros};
use crate::cell::Purpose;
use crate::ids::NodeIndex;
use crate::journal::AttemptKey;
use crate::judge::{
    BandwidthFigure, CellVerdict, Concurrency, Figure, LatencyFigure, Limit, LimitOutcome, LimitSource,
    Population, RunView,
};
use crate::measure::{DataCheck, Measurement, RttShare};
use crate::plan::Spread;
use crate::record::{Observation, Outcome};

pub(super) fn cell(view: &RunView<'_>, verdict: &CellVerdict<'_>) -> CellReport {
    let cell = verdict.cell;
    let case = view.case(&cell);
    let (purpose, of) = match cell.purpose {
        Purpose::Plan => (PurposeWord::Plan, None),
        Purpose::Retest { of } => (PurposeWord::Retest, Some(of.0)),
        Purpose::Repair { of } => (PurposeWord::Repair, Some(of.0)),
    };
    let (bandwidth, latency) = match &verdict.figure {
        Some(Figure::Bandwidth(figure)) => (Some(bandwidth_report(figure)), None),
        Some(Figure::Latency(figure)) => (None, Some(latency_report(figure))),
        None => (None, None),
    };
    CellReport {
        id: cell.id.0,
        test: case.kind,
        size_bytes: case.size.get(),
        rail: cell.rail.0,
        src: view.name(cell.src).to_string(),
        dst: view.name(cell.dst).to_string(),
        purpose,
        of,
        status: verdict.status,
        reason: verdict.reason.clone(),
        round: verdict.round.map(|round| round.0),
        attempt: verdict.attempt.map(attempt),
        superseded: verdict.superseded.iter().copied().map(attempt).collect(),
        bandwidth,
        latency,
        concurrency: concurrency(verdict.concurrency),
        data_check: data_check(verdict),
        limits: verdict.limits.iter().map(limit).collect(),
        source: verdict.source.map(|seen| evidence(view, cell.src, seen)),
        destination: verdict.destination.map(|seen| evidence(view, cell.dst, seen)),
        conflicts: verdict.conflicts.iter().map(|seen| format!("{seen:?}")).collect(),
    }
}

fn attempt(key: AttemptKey) -> AttemptReport {
    AttemptReport { epoch: key.epoch.to_string(), attempt: key.attempt.0 }
}

fn bandwidth_report(figure: &BandwidthFigure) -> BandwidthReport {
    BandwidthReport {
        bw_avg_gbps: fine(figure.average.gbps()),
        bw_min_slice_gbps: figure.slices.map(|slices| fine(slices.min.gbps())),
        bw_max_slice_gbps: figure.slices.map(|slices| fine(slices.max.gbps())),
        slices: figure.slices.map(|slices| slices.slices),
        variation: figure.slices.map(|slices| fine(slices.variation)),
        sender_gbps: figure.sender.map(|rate| fine(rate.gbps())),
        receiver_gbps: figure.receiver.map(|rate| fine(rate.gbps())),
        message_rate_mpps: figure.message_rate_mpps.map(fine),
        retransmits: figure.retransmits,
        window_ms: fine(figure.window.as_secs_f64() * 1e3),
    }
}

fn latency_report(figure: &LatencyFigure<'_>) -> LatencyReport {
    LatencyReport {
        count: figure.histogram.len(),
        lat_min_us: micros(figure.points.min_ns),
        lat_p50_us: micros(figure.points.p50_ns),
        lat_p90_us: micros(figure.points.p90_ns),
        lat_p99_us: micros(figure.points.p99_ns),
        lat_p999_us: micros(figure.points.p999_ns),
        lat_max_us: micros(figure.points.max_ns),
        share: match figure.share {
            RttShare::Half => RttWord::HalfRtt,
            RttShare::Full => RttWord::FullRtt,
        },
        clipped: figure.histogram.clipped(),
        window_ms: fine(figure.window.as_secs_f64() * 1e3),
    }
}

fn concurrency(concurrency: Concurrency) -> ConcurrencyReport {
    let (word, window, overlap, clock_error_ns) = match concurrency {
        Concurrency::Alone => (ConcurrencyWord::Alone, None, None, None),
        Concurrency::Counted { window, overlap, clock_error_ns } => {
            (ConcurrencyWord::Counted, Some(window), Some(overlap), Some(clock_error_ns))
        }
        Concurrency::NotCounted { window, overlap, clock_error_ns, reason: _ } => {
            (ConcurrencyWord::NotCounted, window, Some(overlap), Some(clock_error_ns))
        }
    };
    ConcurrencyReport {
        word,
        common_window_ms: window.map(|window| fine(window.length().as_secs_f64() * 1e3)),
        overlap_share: overlap.map(fine),
        clock_error_us: clock_error_ns.map(micros),
    }
}

/// What the ends say of the data, the worst word first; `None` without a measurement.
fn data_check(verdict: &CellVerdict<'_>) -> Option<DataCheckReport> {
    let checks = [verdict.source, verdict.destination].into_iter().flatten().filter_map(check);
    let worst = checks.max_by_key(|check| match check {
        DataCheck::Unchecked => 0,
        DataCheck::Equal { .. } => 1,
        DataCheck::Different { .. } => 2,
    })?;
    let empty = DataCheckReport {
        word: DataCheckWord::Unchecked,
        bytes: None,
        offset_bytes: None,
        expected: None,
        got: None,
    };
    Some(match worst {
        DataCheck::Unchecked => empty,
        DataCheck::Equal { bytes } => {
            DataCheckReport { word: DataCheckWord::Equal, bytes: Some(bytes), ..empty }
        }
        DataCheck::Different { offset, expected, got } => DataCheckReport {
            word: DataCheckWord::Different,
            offset_bytes: Some(offset),
            expected: Some(expected),
            got: Some(got),
            ..empty
        },
    })
}

fn check(seen: &Observation) -> Option<DataCheck> {
    match &seen.outcome {
        Outcome::Measured(Measurement::Bandwidth(sample)) => Some(sample.check),
        Outcome::Measured(Measurement::Latency(sample)) => Some(sample.check),
        Outcome::Measured(Measurement::Passive { check }) => Some(*check),
        Outcome::Measured(Measurement::Responder { .. }) | Outcome::Failed(_) => None,
    }
}

fn limit(limit: &Limit) -> LimitReport {
    let rate = |value: f64| (limit.spread == Spread::Bandwidth).then(|| fine(value));
    let time = |value: f64| (limit.spread == Spread::Latency).then(|| fine(value));
    let population = |population: Population| PopulationReport {
        cells: population.cells,
        median_gbps: rate(population.median),
        mad_gbps: rate(population.mad),
        median_us: time(population.median),
        mad_us: time(population.mad),
        width_share: fine(population.width),
    };
    let (word, population) = match limit.source {
        LimitSource::Absolute => (LimitWord::Absolute, None),
        LimitSource::LineRate { .. } => (LimitWord::LineRate, None),
        LimitSource::Population(of) => (LimitWord::Population, Some(population(of))),
    };
    LimitReport {
        word,
        met: match limit.outcome {
            LimitOutcome::Met => true,
            LimitOutcome::Missed => false,
        },
        value_gbps: rate(limit.value),
        limit_gbps: rate(limit.limit),
        value_us: time(limit.value),
        limit_us: time(limit.limit),
        population,
        text: limit.to_string(),
    }
}

fn evidence(view: &RunView<'_>, node: NodeIndex, seen: &Observation) -> EvidenceReport {
    let (cpu_ns, failure) = match &seen.outcome {
        Outcome::Measured(Measurement::Bandwidth(sample)) => (sample.cpu_ns, None),
        Outcome::Measured(
            Measurement::Latency(_) | Measurement::Responder { .. } | Measurement::Passive { .. },
        ) => (None, None),
        Outcome::Failed(failure) => (None, Some(failure)),
    };
    EvidenceReport {
        node: view.name(node).to_string(),
        device: seen.evidence.device.clone(),
        local: seen.evidence.local.clone(),
        peer: seen.evidence.peer.clone(),
        facts: seen
            .evidence
            .facts
            .iter()
            .map(|(name, value)| FactReport { name: name.clone(), value: value.clone() })
            .collect(),
        cpu_ms: cpu_ns.map(|nanos| fine(nanos as f64 / 1e6)),
        clock_error_us: micros(seen.clock.error_ns),
        failure: failure.map(|failure| FailureReport {
            kind: failure.kind,
            phase: failure.phase,
            detail: failure.detail.clone(),
            remedy: failure.remedy.clone(),
        }),
    }
}
