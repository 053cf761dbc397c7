//! Crashed and timed-out cells whose node is known: one finding a node, not one a cell.

use std::collections::BTreeMap;

use crate::ids::NodeIndex;
use crate::judge::cells::{CellVerdict, Symptom};
use crate::judge::finding::{Finding, FindingKind};
use crate::judge::verdict::counted;
use crate::judge::view::{PlacedLoss, RunView};
use crate::record::{LossWord, Severity};

/// One finding for each node that took cells with it.
pub(super) fn by_node(view: &RunView<'_>, cells: &[CellVerdict<'_>]) -> Vec<Finding> {
    let mut nodes: BTreeMap<NodeIndex, Vec<&CellVerdict<'_>>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.symptom == Some(Symptom::Lost)) {
        if let Some(node) = node_of(view, cell) {
            nodes.entry(node).or_default().push(cell);
        }
    }
    nodes.into_iter().map(|(node, lost)| finding(view, node, &lost)).collect()
}

/// The node that the coordinator holds a cell's loss against.
pub(super) fn node_of(view: &RunView<'_>, cell: &CellVerdict<'_>) -> Option<NodeIndex> {
    let node = last_loss(view, cell)?.loss.node?;
    (node.usize() < view.start.roster.len()).then_some(node)
}

fn last_loss<'v>(view: &'v RunView<'_>, cell: &CellVerdict<'_>) -> Option<&'v PlacedLoss<'v>> {
    view.losses.get(&cell.id())?.last()
}

fn finding(view: &RunView<'_>, node: NodeIndex, lost: &[&CellVerdict<'_>]) -> Finding {
    let losses: Vec<&PlacedLoss<'_>> = lost.iter().filter_map(|cell| last_loss(view, cell)).collect();
    let first = losses.iter().filter_map(|placed| placed.round).min();
    let when = first.map_or_else(|| "before the first round".to_owned(), |round| format!("in {round}"));
    // A node that died was silent as well, for those who noticed that first.
    let silent = losses.iter().all(|placed| match placed.loss.word {
        LossWord::Timeout => true,
        LossWord::Crash | LossWord::Skip | LossWord::NotTested => false,
    });
    let did = if silent { "fell silent" } else { "died" };
    let mut reasons: Vec<String> = Vec::new();
    for placed in &losses {
        let phase = placed.loss.phase.map(|phase| format!(" in {}", format!("{phase:?}").to_lowercase()));
        let line = format!("{}{}", placed.loss.reason, phase.unwrap_or_default());
        if !reasons.contains(&line) {
            reasons.push(line);
        }
    }
    reasons.truncate(REASONS);
    Finding {
        kind: FindingKind::Lost,
        severity: Severity::Error,
        certainty: None,
        part: None,
        text: format!(
            "node {} {did} {when} and took {} with it",
            view.name(node),
            counted(lost.len(), "cell")
        ),
        evidence: reasons,
        remedy: Some(format!("look at the agent's log and the kernel log of {}", view.name(node))),
        cells: lost.iter().map(|cell| cell.id()).collect(),
    }
}

/// Different reasons that a finding shows.
const REASONS: usize = 3;
