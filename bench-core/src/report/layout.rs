//! What the forms for people have in common: which rows of a matrix are shown, how figures read, what was not tested.

use super::model::{CellReport, FindingReport, MatrixReport, RunReport};
use crate::judge::CellStatus;
use crate::units::Bytes;

/// A matrix as text: names of the shown nodes, and a field for each pair.
pub(super) struct Grid {
    /// What is shown, such as `tcp_bw 128K, rail 0: Gb/s`.
    pub(super) title: String,
    /// Median and worst cell; what was cut.
    pub(super) notes: Vec<String>,
    /// The shown nodes.
    pub(super) names: Vec<String>,
    /// One row for each shown node.
    pub(super) rows: Vec<Vec<String>>,
}

/// A matrix with at most [`MAX_ROWS`] nodes: those with the worst cells.
pub(super) fn grid(matrix: &MatrixReport) -> Grid {
    let shown = shown(matrix);
    let rows =
        shown.iter().map(|row| shown.iter().map(|column| field(matrix, *row, *column)).collect()).collect();
    let unit = if matrix.bw_avg_gbps.is_some() { "Gb/s" } else { "p50/p99 us" };
    let mut notes = Vec::new();
    let medians = [(matrix.bw_median_gbps, "Gb/s"), (matrix.lat_median_p50_us, "us (p50)")];
    for (value, unit) in medians {
        notes.extend(value.map(|value| format!("median {value:.2} {unit}")));
    }
    if let Some(worst) = &matrix.worst {
        let value = worst.bw_avg_gbps.or(worst.lat_p50_us).unwrap_or_default();
        notes.push(format!("worst {} -> {}: {value:.2}", worst.src, worst.dst));
    }
    if shown.len() < matrix.names.len() {
        notes.push(format!(
            "cut to the {} of {} nodes with the worst cells; cells.csv and the JSON have all",
            shown.len(),
            matrix.names.len()
        ));
    }
    Grid {
        title: format!(
            "{} {}, rail {}: {unit}, row sends to column",
            matrix.test,
            Bytes(matrix.size_bytes),
            matrix.rail
        ),
        notes,
        names: shown.iter().map(|node| matrix.names[*node].clone()).collect(),
        rows,
    }
}

fn field(matrix: &MatrixReport, row: usize, column: usize) -> String {
    let at = |grid: &Option<Vec<Vec<Option<f64>>>>| grid.as_ref()?.get(row)?.get(column).copied()?;
    match (at(&matrix.bw_avg_gbps), at(&matrix.lat_p50_us), at(&matrix.lat_p99_us)) {
        (Some(rate), _, _) => format!("{rate:.2}"),
        (None, Some(p50), Some(p99)) => format!("{p50:.1}/{p99:.1}"),
        (None, _, _) => NOTHING.to_owned(),
    }
}

/// The nodes that are shown, in their order.
fn shown(matrix: &MatrixReport) -> Vec<usize> {
    let nodes = matrix.names.len();
    if nodes <= MAX_ROWS {
        return (0..nodes).collect();
    }
    // Low is bad: rates as they are, times negative.
    let value = |row: usize, column: usize| {
        let at = |grid: &Option<Vec<Vec<Option<f64>>>>| grid.as_ref()?.get(row)?.get(column).copied()?;
        at(&matrix.bw_avg_gbps).or_else(|| at(&matrix.lat_p50_us).map(|time| -time))
    };
    let worst = |node: usize| {
        let cells = (0..nodes).flat_map(|other| [value(node, other), value(other, node)]);
        cells.flatten().fold(f64::INFINITY, f64::min)
    };
    let mut ranked: Vec<(f64, usize)> = (0..nodes).map(|node| (worst(node), node)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut shown: Vec<usize> = ranked.into_iter().take(MAX_ROWS).map(|(_, node)| node).collect();
    shown.sort_unstable();
    shown
}

/// A finding with its severity and how sure it is.
pub(super) fn finding(finding: &FindingReport) -> String {
    let severity = format!("{:?}", finding.severity).to_lowercase();
    match finding.certainty {
        Some(certainty) => format!("{severity} ({}): {}", certainty.name(), finding.text),
        None => format!("{severity}: {}", finding.text),
    }
}

/// Columns of the latency table.
pub(super) const LATENCY_COLUMNS: [&str; 10] =
    ["test", "rail", "cells", "count", "min", "p50", "p90", "p99", "p99.9", "max"];

/// One line of the latency table for each test, size and rail, in microseconds.
pub(super) fn latency_rows(report: &RunReport) -> Vec<Vec<String>> {
    report
        .histograms
        .iter()
        .map(|h| {
            let us = |value: f64| format!("{value:.2}");
            vec![
                format!("{} {}", h.test, Bytes(h.size_bytes)),
                h.rail.to_string(),
                h.cells.to_string(),
                h.count.to_string(),
                us(h.lat_min_us),
                us(h.lat_p50_us),
                us(h.lat_p90_us),
                us(h.lat_p99_us),
                us(h.lat_p999_us),
                us(h.lat_max_us),
            ]
        })
        .collect()
}

/// Coverage, rounds and gaps in sentences.
pub(super) fn coverage(report: &RunReport) -> Vec<String> {
    let s = &report.schedule;
    let mut lines = vec![
        format!(
            "pattern {}: {} of {} rounds played, {} added; {} cells planned, {} added",
            s.pattern, s.rounds_played, s.rounds_planned, s.rounds_added, s.cells_planned, s.cells_added
        ),
        format!(
            "{} of {} directed pairs measured, {} planned",
            s.coverage.measured_pairs, s.coverage.possible_pairs, s.coverage.planned_pairs
        ),
    ];
    if let Some(gaps) = &s.gaps {
        lines.push(format!(
            "between rounds: p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms over {} gaps",
            gaps.p50_ms, gaps.p99_ms, gaps.max_ms, gaps.count
        ));
    }
    lines
}

/// Cells without a usable measurement, at most [`MAX_LISTED`] and a line that counts the rest.
pub(super) fn not_tested(report: &RunReport) -> Vec<String> {
    let without: Vec<&CellReport> = report
        .cells
        .iter()
        .filter(|cell| match cell.status {
            CellStatus::Crash
            | CellStatus::Timeout
            | CellStatus::Skip
            | CellStatus::NotTested
            | CellStatus::Invalid => true,
            CellStatus::Pass | CellStatus::Fail | CellStatus::NotJudged => false,
        })
        .collect();
    let mut lines: Vec<String> = without
        .iter()
        .take(MAX_LISTED)
        .map(|cell| {
            format!(
                "{} {}, rail {}, {} -> {}: {}: {}",
                cell.test,
                Bytes(cell.size_bytes),
                cell.rail,
                cell.src,
                cell.dst,
                cell.status,
                cell.reason
            )
        })
        .collect();
    if without.len() > MAX_LISTED {
        lines.push(format!("and {} more; cells.csv and the JSON have all", without.len() - MAX_LISTED));
    }
    lines
}

/// What stands where there is no value.
const NOTHING: &str = "-";
/// Most rows and columns of a matrix: 16 fields of eight characters fill a wide terminal.
const MAX_ROWS: usize = 16;
/// Most cells that are listed one by one.
const MAX_LISTED: usize = 20;
