//! Cells that count although something died or hung on the way: what that was belongs into the report.

use std::collections::BTreeSet;

use super::cells::{CellVerdict, said};
use super::finding::{Finding, FindingKind};
use super::status::CellStatus;
use super::verdict::counted;
use super::view::RunView;
use crate::cell::End;
use crate::ids::CellId;
use crate::record::{LossWord, Outcome, Severity};

/// One finding for all of them, with what was said of the lost attempts.
pub(super) fn findings(view: &RunView<'_>, cells: &[CellVerdict<'_>]) -> Vec<Finding> {
    let mut evidence = BTreeSet::new();
    let mut repeated: Vec<CellId> = Vec::new();
    for cell in cells.iter().filter(|cell| counts(cell.status)) {
        let lines = lost_attempts(view, cell);
        if !lines.is_empty() {
            repeated.push(cell.id());
            evidence.extend(lines);
        }
    }
    if repeated.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        kind: FindingKind::Note,
        severity: Severity::Warning,
        certainty: None,
        part: None,
        text: format!(
            "{} measured although something died or hung on the way",
            counted(repeated.len(), "cell")
        ),
        evidence: evidence.into_iter().take(LINES).collect(),
        remedy: Some("look at the agent's log of the nodes that are named".to_owned()),
        cells: repeated,
    }]
}

/// Whether the cell has a figure, in spite of what was lost.
fn counts(status: CellStatus) -> bool {
    match status {
        CellStatus::Pass | CellStatus::Fail | CellStatus::NotJudged => true,
        CellStatus::Crash
        | CellStatus::Timeout
        | CellStatus::Skip
        | CellStatus::NotTested
        | CellStatus::Invalid => false,
    }
}

fn lost_attempts(view: &RunView<'_>, cell: &CellVerdict<'_>) -> Vec<String> {
    let losses = view.losses.get(&cell.id()).into_iter().flatten();
    let mut lines: Vec<String> = losses
        .filter(|placed| match placed.loss.word {
            LossWord::Crash | LossWord::Timeout => true,
            LossWord::Skip | LossWord::NotTested => false,
        })
        .map(|placed| placed.loss.reason.clone())
        .collect();
    let Some(merged) = view.merged.cell(view.start.run, cell.id()) else {
        return lines;
    };
    for (_, ends) in merged.attempts().filter(|(key, _)| cell.superseded.contains(key)) {
        let seen = ends.source.iter().map(|seen| (End::Source, seen));
        let seen = seen.chain(ends.destination.iter().map(|seen| (End::Destination, seen)));
        lines.extend(seen.filter_map(|(end, observation)| match &observation.outcome {
            Outcome::Measured(_) => None,
            Outcome::Failed(failure) => Some(said(view.name(cell.cell.node(end)).as_str(), failure)),
        }));
    }
    lines
}

/// Different lines that the finding shows: both ends of two cells and the coordinator's words on them.
const LINES: usize = 6;
