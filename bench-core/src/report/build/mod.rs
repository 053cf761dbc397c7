//! From a judgement to the structs of the contract.

mod cell;
mod run;
mod summary;

use std::collections::BTreeMap;

use super::model::{EndReport, EndWord, RailReport, RunReport, SCHEMA};
use crate::ids::{NodeIndex, RailId};
use crate::judge::{CellStatus, CellVerdict, Figure, Judgement, RunView};
use crate::record::RunEnd;

/// The report of a judged run.
pub(super) fn report(view: &RunView<'_>, judgement: &Judgement<'_>) -> RunReport {
    let (planned, _added) = judgement.cells.split_at(view.planned.len());
    RunReport {
        schema: SCHEMA.to_owned(),
        run_id: view.start.run.to_string(),
        verdict: judgement.verdict,
        reasons: judgement.reasons.clone(),
        started_wall: iso_8601(view.start.wall_seconds),
        end: end(view.end),
        plan: run::plan(&view.start.plan, view.start.roster.len() as u16),
        schedule: run::schedule(view, planned),
        nodes: run::nodes(view),
        rails: rails(view, planned),
        cells: judgement.cells.iter().map(|verdict| cell::cell(view, verdict)).collect(),
        matrices: summary::matrices(view, planned),
        histograms: summary::histograms(view, planned),
        findings: judgement.findings.iter().map(|finding| summary::finding(view, finding)).collect(),
    }
}

/// The figure of a cell if it counts: measured, and nothing forbids its use.
fn usable<'a>(verdict: &CellVerdict<'a>) -> Option<Figure<'a>> {
    match verdict.status {
        CellStatus::Pass | CellStatus::Fail | CellStatus::NotJudged => verdict.figure,
        CellStatus::Crash
        | CellStatus::Timeout
        | CellStatus::Skip
        | CellStatus::NotTested
        | CellStatus::Invalid => None,
    }
}

fn end(end: Option<&RunEnd>) -> EndReport {
    let (word, reason) = match end {
        None => (EndWord::Open, None),
        Some(RunEnd::Completed) => (EndWord::Completed, None),
        Some(RunEnd::Cancelled) => (EndWord::Cancelled, None),
        Some(RunEnd::Aborted { reason }) => (EndWord::Aborted, Some(reason.clone())),
    };
    EndReport { word, reason }
}

fn rails(view: &RunView<'_>, planned: &[CellVerdict<'_>]) -> Vec<RailReport> {
    let mut rails: BTreeMap<RailId, BTreeMap<CellStatus, u32>> = BTreeMap::new();
    for verdict in planned {
        let words = rails.entry(verdict.cell.rail).or_default();
        *words.entry(verdict.status).or_insert(0) += 1;
    }
    rails
        .into_iter()
        .map(|(rail, cells)| {
            let inventories =
                (0..view.start.nodes.len() as u16).filter_map(|n| view.endpoint(NodeIndex(n), rail));
            let on_nodes: Vec<&str> = inventories.map(|endpoint| endpoint.device.as_str()).collect();
            let mut devices: Vec<String> = on_nodes.iter().map(|device| (*device).to_owned()).collect();
            devices.sort();
            devices.dedup();
            RailReport { rail: rail.0, nodes: on_nodes.len() as u32, devices, cells }
        })
        .collect()
}

/// Rounds to a number of decimals, so that the text of a figure does not depend on the last bit.
fn rounded(value: f64, decimals: i32) -> f64 {
    let factor = 10_f64.powi(decimals);
    (value * factor).round() / factor
}

/// A rate or a length in milliseconds: to six decimals, 1 kb/s or 1 ns.
fn fine(value: f64) -> f64 {
    rounded(value, 6)
}

/// Nanoseconds in microseconds: exact to the nanosecond.
fn micros(nanos: u64) -> f64 {
    rounded(nanos as f64 / 1e3, 3)
}

/// Seconds since 1970 as `2026-11-30T20:14:00Z` (days to civil date: Howard Hinnant, "chrono-compatible low-level
/// date algorithms", civil_from_days).
fn iso_8601(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::iso_8601;

    #[test]
    fn wall_seconds_print_as_utc() {
        assert_eq!(iso_8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_8601(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(iso_8601(1_796_069_640), "2026-11-30T20:14:00Z");
    }
}
