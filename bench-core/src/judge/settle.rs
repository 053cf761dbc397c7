//! The final word of a planned cell after its retests.
//!
//! A cell that missed a limit and met it each time it was measured again passes, with a warning that shows both
//! values. That holds only where the planned cell ran alone like its retests: a cell that is slow under load and sound
//! alone is still slow under load.

use std::collections::BTreeMap;

use super::cells::{CellVerdict, Symptom};
use super::finding::{Finding, FindingKind};
use super::status::CellStatus;
use super::view::{Load, RunView};
use crate::cell::Purpose;
use crate::ids::CellId;
use crate::record::Severity;

/// Settles the words of planned cells and returns a finding for each that passes only on retest.
pub(super) fn settle(view: &RunView<'_>, cells: &mut [CellVerdict<'_>]) -> Vec<Finding> {
    let retests = retests_of(cells);
    let load = view.load();
    let mut findings = Vec::new();
    for verdict in cells.iter_mut().take(view.planned.len()) {
        let Some(again) = retests.get(&verdict.id()).filter(|again| !again.is_empty()) else {
            continue;
        };
        if verdict.symptom != Some(Symptom::Slow) {
            continue;
        }
        let all_pass = again.iter().all(|(status, _)| *status == CellStatus::Pass);
        let values: Vec<&str> = again.iter().map(|(_, text)| text.as_str()).collect();
        let values = values.join(" and ");
        match (load, all_pass) {
            (Load::Alone, true) => {
                findings.push(unsteady(view, verdict, &values));
                verdict.status = CellStatus::Pass;
                verdict.symptom = None;
                verdict.reason = format!("unsteady: {}; measured again: {values}", verdict.reason);
            }
            (Load::Concurrent, true) => {
                verdict.reason = format!("{}; slow under load only: alone {values}", verdict.reason);
            }
            (Load::Alone | Load::Concurrent, false) => {
                verdict.reason = format!("{}; measured again: {values}", verdict.reason);
            }
        }
    }
    findings
}

/// The measured and judged retests of each planned cell, as word and figure.
fn retests_of(cells: &[CellVerdict<'_>]) -> BTreeMap<CellId, Vec<(CellStatus, String)>> {
    let mut retests: BTreeMap<CellId, Vec<(CellStatus, String)>> = BTreeMap::new();
    for verdict in cells {
        let Purpose::Retest { of } = verdict.cell.purpose else {
            continue;
        };
        if let (CellStatus::Pass | CellStatus::Fail, Some(figure)) = (verdict.status, verdict.figure) {
            retests.entry(of).or_default().push((verdict.status, figure.text()));
        }
    }
    retests
}

fn unsteady(view: &RunView<'_>, verdict: &CellVerdict<'_>, again: &str) -> Finding {
    let first = verdict.figure.map(|figure| figure.text()).unwrap_or_default();
    Finding {
        kind: FindingKind::Unsteady,
        severity: Severity::Warning,
        certainty: None,
        part: None,
        text: format!(
            "{}: {} was {first} at first and {again} when measured again alone",
            view.path(&verdict.cell),
            view.case(&verdict.cell).title()
        ),
        evidence: vec![verdict.reason.clone()],
        remedy: Some("look for other traffic or throttling on both nodes, then sweep again".to_owned()),
        cells: vec![verdict.id()],
    }
}
