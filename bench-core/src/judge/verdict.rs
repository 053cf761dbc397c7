//! The word of the run with its reasons, and the findings about what was not measured or judged.

use std::collections::BTreeMap;

use super::cells::{CellVerdict, Symptom};
use super::finding::{Finding, FindingKind};
use super::status::{CellStatus, RunVerdict};
use super::view::RunView;
use crate::plan::Pattern;
use crate::record::{RunEnd, Severity};

/// The word of the run: fail beats incomplete, incomplete beats not judged, and pass takes every planned cell.
pub(super) fn verdict(view: &RunView<'_>, cells: &[CellVerdict<'_>]) -> (RunVerdict, Vec<String>) {
    let planned = &cells[..view.planned.len()];
    let count = |status| planned.iter().filter(|cell| cell.status == status).count();
    let corrupt_added =
        cells[view.planned.len()..].iter().filter(|cell| cell.symptom == Some(Symptom::Corrupt)).count();
    let without = [
        CellStatus::Crash,
        CellStatus::Timeout,
        CellStatus::Skip,
        CellStatus::NotTested,
        CellStatus::Invalid,
    ];
    let missing: usize = without.into_iter().map(count).sum();
    let ended = matches!(view.end, Some(RunEnd::Completed));
    let word = if count(CellStatus::Fail) + corrupt_added > 0 {
        RunVerdict::Fail
    } else if missing > 0 || !ended || planned.is_empty() {
        RunVerdict::Incomplete
    } else if count(CellStatus::NotJudged) > 0 {
        RunVerdict::NotJudged
    } else {
        RunVerdict::Pass
    };
    let mut reasons: Vec<String> = CellStatus::ALL
        .into_iter()
        .filter(|status| *status != CellStatus::Pass && count(*status) > 0)
        .map(|status| {
            let example = planned.iter().find(|cell| cell.status == status);
            let example = example.map(|cell| example_text(view, cell)).unwrap_or_default();
            format!("{} of {} cells {}: {example}", count(status), planned.len(), phrase(status))
        })
        .collect();
    if corrupt_added > 0 {
        reasons.push(format!("{corrupt_added} retests carried wrong data"));
    }
    reasons.extend(end_reason(view, planned));
    reasons.push(coverage(view, count(CellStatus::Pass)));
    (word, reasons)
}

fn phrase(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Pass => "pass",
        CellStatus::Fail => "fail",
        CellStatus::Crash => "crashed",
        CellStatus::Timeout => "timed out",
        CellStatus::Skip => "were skipped",
        CellStatus::NotTested => "were not tested",
        CellStatus::NotJudged => "are not judged",
        CellStatus::Invalid => "are invalid",
    }
}

fn example_text(view: &RunView<'_>, cell: &CellVerdict<'_>) -> String {
    let title = view.case(&cell.cell).title();
    format!("{title}, {}: {}", view.path(&cell.cell), cell.reason)
}

fn end_reason(view: &RunView<'_>, planned: &[CellVerdict<'_>]) -> Option<String> {
    match view.end {
        Some(RunEnd::Completed) if planned.is_empty() => Some("the plan has no cell".to_owned()),
        Some(RunEnd::Completed) => None,
        Some(RunEnd::Cancelled) => Some("the run was cancelled".to_owned()),
        Some(RunEnd::Aborted { reason }) => Some(format!("the run was aborted: {reason}")),
        None => Some("the run had not ended when these records were taken".to_owned()),
    }
}

fn coverage(view: &RunView<'_>, passing: usize) -> String {
    let coverage = view.coverage;
    format!(
        "{passing} of {} planned cells pass; the plan covers {} of {} directed pairs",
        view.planned.len(),
        coverage.planned_pairs,
        coverage.possible_pairs
    )
}

/// Findings that no part is blamed for: not tested, invalid, not judged, the run's own notes, loopback.
pub(super) fn findings(view: &RunView<'_>, cells: &[CellVerdict<'_>]) -> Vec<Finding> {
    let planned = &cells[..view.planned.len()];
    let mut findings = Vec::new();
    for (status, kind) in [
        (CellStatus::NotTested, FindingKind::NotTested),
        (CellStatus::Skip, FindingKind::NotTested),
        (CellStatus::Invalid, FindingKind::Invalid),
        (CellStatus::NotJudged, FindingKind::NotJudged),
    ] {
        findings.extend(by_reason(view, planned, status, kind));
    }
    findings.extend(view.notes.iter().map(|note| Finding {
        kind: FindingKind::Note,
        severity: note.severity,
        certainty: None,
        part: None,
        text: match note.node {
            None => note.text.clone(),
            Some(node) if node.usize() < view.start.roster.len() => {
                format!("{}: {}", view.name(node), note.text)
            }
            Some(node) => format!("node {node}: {}", note.text),
        },
        evidence: Vec::new(),
        remedy: note.remedy.clone(),
        cells: Vec::new(),
    }));
    if view.strays > 0 {
        findings.push(plain(
            Severity::Warning,
            format!("{} records of another run or of cells that nobody planned were left out", view.strays),
        ));
    }
    if view.start.plan.pattern == Pattern::Loopback {
        findings.push(plain(
            Severity::Warning,
            "every cell is a loopback: this says something of the hosts and nothing of the fabric".to_owned(),
        ));
    }
    findings
}

fn plain(severity: Severity, text: String) -> Finding {
    Finding {
        kind: FindingKind::Note,
        severity,
        certainty: None,
        part: None,
        text,
        evidence: Vec::new(),
        remedy: None,
        cells: Vec::new(),
    }
}

/// One finding per reason, not one per cell.
fn by_reason(
    view: &RunView<'_>,
    planned: &[CellVerdict<'_>],
    status: CellStatus,
    kind: FindingKind,
) -> Vec<Finding> {
    let mut groups: BTreeMap<String, Vec<&CellVerdict<'_>>> = BTreeMap::new();
    for cell in planned.iter().filter(|cell| cell.status == status) {
        groups.entry(shape(&cell.reason, kind)).or_default().push(cell);
    }
    groups
        .into_values()
        .map(|group| Finding {
            kind,
            severity: Severity::Warning,
            certainty: None,
            part: None,
            text: format!("{} {}: {}", counted(group.len(), "cell"), phrase(status), group[0].reason),
            evidence: group.iter().take(EXAMPLES).map(|cell| example_text(view, cell)).collect(),
            remedy: None,
            cells: group.iter().map(|cell| cell.id()).collect(),
        })
        .collect()
}

/// A reason without the numbers of the single cell. Numbers in the reason of an untested cell are names.
fn shape(reason: &str, kind: FindingKind) -> String {
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    match kind {
        FindingKind::NotTested => reason.to_owned(),
        FindingKind::Corrupt
        | FindingKind::Slow
        | FindingKind::Lost
        | FindingKind::Invalid
        | FindingKind::Unsteady
        | FindingKind::NotJudged
        | FindingKind::Note => {
            let words = reason.split_whitespace().filter(|word| !is_number(word));
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

/// A count with its noun: `1 cell`, `2 cells`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Cells that a finding shows as evidence; all are listed by number.
const EXAMPLES: usize = 3;
