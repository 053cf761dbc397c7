//! Matrices, merged histograms and findings.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::model::{FindingReport, HistogramReport, MatrixReport, PartReport, PartWord, WorstReport};
use super::{fine, micros, usable};
use crate::ids::{CaseIndex, RailId};
use crate::judge::{
    CellVerdict, Direction, Figure, Finding, LatencyFigure, Part, Rails, RunView, Side, median,
};
use crate::measure::Histogram;
use crate::plan::Spread;

type Groups<'v, 'a> = BTreeMap<(CaseIndex, RailId), Vec<(&'v CellVerdict<'a>, Option<Figure<'a>>)>>;

/// Planned cells by test and rail, with the figures that count.
fn groups<'v, 'a>(planned: &'v [CellVerdict<'a>]) -> Groups<'v, 'a> {
    let mut groups = Groups::new();
    for verdict in planned {
        let key = (verdict.cell.case, verdict.cell.rail);
        groups.entry(key).or_default().push((verdict, usable(verdict)));
    }
    groups
}

pub(super) fn matrices(view: &RunView<'_>, planned: &[CellVerdict<'_>]) -> Vec<MatrixReport> {
    groups(planned)
        .into_iter()
        .map(|((case, rail), cells)| {
            let case = &view.start.plan.cases[case.usize()];
            let spread = case.kind.spread();
            let grid = |value: &dyn Fn(&Figure<'_>) -> Option<f64>| {
                let nodes = view.start.roster.len();
                let mut grid = vec![vec![None; nodes]; nodes];
                for (verdict, figure) in &cells {
                    let place = &mut grid[verdict.cell.src.usize()][verdict.cell.dst.usize()];
                    *place = figure.as_ref().and_then(value).map(fine);
                }
                grid
            };
            let rate = spread == Spread::Bandwidth;
            let mut values: Vec<f64> =
                cells.iter().filter_map(|(_, figure)| Some(figure.as_ref()?.value())).collect();
            values.sort_by(f64::total_cmp);
            let middle = median(&values, spread).map(fine);
            MatrixReport {
                test: case.kind,
                size_bytes: case.size.get(),
                rail: rail.0,
                names: view.start.roster.iter().map(ToString::to_string).collect(),
                bw_avg_gbps: rate.then(|| grid(&|figure| Some(figure.value()))),
                lat_p50_us: (!rate).then(|| grid(&|figure| Some(figure.value()))),
                lat_p99_us: (!rate).then(|| grid(&p99_us)),
                bw_median_gbps: middle.filter(|_| rate),
                lat_median_p50_us: middle.filter(|_| !rate),
                worst: worst(view, &cells, spread),
            }
        })
        .collect()
}

fn p99_us(figure: &Figure<'_>) -> Option<f64> {
    match figure {
        Figure::Bandwidth(_) => None,
        Figure::Latency(latency) => Some(micros(latency.points.p99_ns)),
    }
}

fn worst(
    view: &RunView<'_>,
    cells: &[(&CellVerdict<'_>, Option<Figure<'_>>)],
    spread: Spread,
) -> Option<WorstReport> {
    let valued = cells.iter().filter_map(|(verdict, figure)| Some((verdict, figure.as_ref()?.value())));
    let (verdict, value) = valued.min_by(|(_, a), (_, b)| match spread {
        Spread::Bandwidth => a.total_cmp(b),
        Spread::Latency => b.total_cmp(a),
    })?;
    Some(WorstReport {
        cell: verdict.cell.id.0,
        src: view.name(verdict.cell.src).to_string(),
        dst: view.name(verdict.cell.dst).to_string(),
        bw_avg_gbps: (spread == Spread::Bandwidth).then(|| fine(value)),
        lat_p50_us: (spread == Spread::Latency).then(|| fine(value)),
    })
}

pub(super) fn histograms(view: &RunView<'_>, planned: &[CellVerdict<'_>]) -> Vec<HistogramReport> {
    groups(planned)
        .into_iter()
        .filter_map(|((case, rail), cells)| {
            let latencies: Vec<LatencyFigure<'_>> = cells
                .iter()
                .filter_map(|(_, figure)| match figure {
                    Some(Figure::Latency(latency)) => Some(*latency),
                    Some(Figure::Bandwidth(_)) | None => None,
                })
                .collect();
            let mut whole = Histogram::new();
            latencies.iter().for_each(|latency| whole.merge(latency.histogram));
            let points = whole.percentiles()?;
            let case = &view.start.plan.cases[case.usize()];
            Some(HistogramReport {
                test: case.kind,
                size_bytes: case.size.get(),
                rail: rail.0,
                cells: latencies.len() as u32,
                count: whole.len(),
                clipped: whole.clipped(),
                lat_min_us: micros(points.min_ns),
                lat_p50_us: micros(points.p50_ns),
                lat_p90_us: micros(points.p90_ns),
                lat_p99_us: micros(points.p99_ns),
                lat_p999_us: micros(points.p999_ns),
                lat_max_us: micros(points.max_ns),
                buckets_le_ns: whole.buckets(),
                hdr_v2_base64: STANDARD.encode(whole.to_v2()),
            })
        })
        .collect()
}

pub(super) fn finding(view: &RunView<'_>, finding: &Finding) -> FindingReport {
    FindingReport {
        kind: finding.kind,
        severity: finding.severity,
        certainty: finding.certainty,
        part: finding.part.map(|part| self::part(view, part)),
        text: finding.text.clone(),
        evidence: finding.evidence.clone(),
        remedy: finding.remedy.clone(),
        cells: finding.cells.iter().map(|cell| cell.0).collect(),
    }
}

fn part(view: &RunView<'_>, part: Part) -> PartReport {
    let name = |node| view.name(node).to_string();
    let number = |rails: Rails| match rails {
        Rails::All => None,
        Rails::One(rail) => Some(rail.0),
    };
    let (word, nodes, rail) = match part {
        Part::Everything => (PartWord::Everything, Vec::new(), None),
        Part::Rail(rail) => (PartWord::Rail, Vec::new(), Some(rail.0)),
        Part::Node { node, rails, side } => {
            let word = match side {
                Side::Both => PartWord::Node,
                Side::Send => PartWord::NodeSend,
                Side::Receive => PartWord::NodeReceive,
            };
            (word, vec![name(node)], number(rails))
        }
        Part::Pair { a, b, rails, direction } => {
            let word = match direction {
                Direction::Both => PartWord::Pair,
                Direction::Forward => PartWord::PairForward,
            };
            (word, vec![name(a), name(b)], number(rails))
        }
    };
    PartReport { word, nodes, rail }
}
