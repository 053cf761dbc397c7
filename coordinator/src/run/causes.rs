//! Why cells left a round: who was seen silent outweighs what a partner reported.

use std::collections::BTreeMap;

use bench_core::cell::{Cell, End};
use bench_core::ids::{Attempt, CellId, NodeId, NodeIndex};
use bench_core::message::Response;
use bench_core::node::NodeInventory;
use bench_core::record::{Failure, FailureKind, Loss, LossWord, Phase};

use super::Context;
use crate::members::MemberState;

/// The cells that left a round, each with its surest cause.
#[derive(Debug)]
pub(super) struct Causes {
    by_cell: BTreeMap<CellId, Cause>,
}

/// Why a cell left the round, and how sure that is.
#[derive(Debug)]
struct Cause {
    loss: Loss,
    sureness: Sureness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sureness {
    Reported,
    Witnessed,
}

impl Causes {
    /// Only cells that are not tested at all.
    pub(super) fn not_tested(losses: Vec<Loss>) -> Self {
        let witnessed = |loss: Loss| (loss.cell, Cause { loss, sureness: Sureness::Witnessed });
        Self { by_cell: losses.into_iter().map(witnessed).collect() }
    }

    /// Whether a cell has left the round.
    pub(super) fn has(&self, cell: CellId) -> bool {
        self.by_cell.contains_key(&cell)
    }

    /// What is lost, by cell.
    pub(super) fn into_losses(self) -> Vec<Loss> {
        self.by_cell.into_values().map(|cause| cause.loss).collect()
    }

    /// A node says that its end of a cell could not be armed.
    pub(super) fn end_failed(
        &mut self,
        cells: &[Cell],
        attempt: Attempt,
        (node, name): (NodeIndex, &NodeId),
        (id, end): (CellId, End),
        failure: &Failure,
    ) {
        let Some(cell) = cells.iter().find(|cell| cell.id == id && cell.node(end) == node) else {
            return;
        };
        // A handshake or connect that got no answer speaks about the other end.
        let about = match failure.phase {
            Phase::Handshake => cell.node(end.other()),
            Phase::Probe
            | Phase::Prepare
            | Phase::Connect
            | Phase::Armed
            | Phase::Warmup
            | Phase::Measure
            | Phase::Collect => node,
        };
        let loss = Loss {
            cell: id,
            attempt: Some(attempt),
            word: word_of(failure.kind),
            node: Some(about),
            phase: Some(failure.phase),
            reason: format!("{name}: {}", with_remedy(failure)),
        };
        self.blame(loss, Sureness::Reported);
    }

    /// A node was seen to be lost: all of its cells leave the round.
    pub(super) fn node_lost(
        &mut self,
        cells: &[Cell],
        attempt: Attempt,
        node: NodeIndex,
        (word, phase): (LossWord, Phase),
        reason: &str,
    ) {
        for cell in cells.iter().filter(|cell| cell.src == node || cell.dst == node) {
            let loss = Loss {
                cell: cell.id,
                attempt: Some(attempt),
                word,
                node: Some(node),
                phase: Some(phase),
                reason: reason.to_owned(),
            };
            self.blame(loss, Sureness::Witnessed);
        }
    }

    fn blame(&mut self, loss: Loss, sureness: Sureness) {
        match self.by_cell.get(&loss.cell) {
            Some(known) if known.sureness >= sureness => {}
            Some(_) | None => {
                self.by_cell.insert(loss.cell, Cause { loss, sureness });
            }
        }
    }
}

/// Which of a cell's nodes cannot take part, and why; `None` if this one can.
pub(super) fn absence(
    node: NodeIndex,
    inventories: &[Option<NodeInventory>],
    context: &Context<'_>,
) -> Option<(NodeIndex, String)> {
    let name = &context.config.roster[node.usize()];
    let reason = match &context.members.states()[node.usize()] {
        MemberState::Present { .. } if inventories[node.usize()].is_some() => return None,
        MemberState::Present { .. } => {
            format!("{name} has not answered since this epoch began: it was killed, hangs or is cut off")
        }
        MemberState::Never => format!("{name} never joined"),
        MemberState::Gone { reason } => format!("{name} is gone: {reason}"),
    };
    Some((node, reason))
}

/// A cell that is not begun because of a node.
pub(super) fn not_tested(cell: &Cell, node: NodeIndex, reason: String) -> Loss {
    Loss { cell: cell.id, attempt: None, word: LossWord::NotTested, node: Some(node), phase: None, reason }
}

fn word_of(kind: FailureKind) -> LossWord {
    match kind {
        FailureKind::Crash | FailureKind::Corrupt => LossWord::Crash,
        FailureKind::Timeout | FailureKind::Late => LossWord::Timeout,
        FailureKind::Unsupported => LossWord::Skip,
        FailureKind::Cancelled => LossWord::NotTested,
    }
}

fn with_remedy(failure: &Failure) -> String {
    match &failure.remedy {
        Some(remedy) => format!("{} ({remedy})", failure.detail),
        None => failure.detail.clone(),
    }
}

/// What an answer that makes no sense is, in a few words.
pub(super) fn describe(response: &Response) -> String {
    match response {
        Response::StaleEpoch { seen } => format!("a refusal: it has seen epoch {seen}"),
        Response::Invalid { reason } => format!("a refusal: {reason}"),
        Response::Refused(refusal) => format!("a refusal: {refusal}"),
        Response::Pong
        | Response::Clock { .. }
        | Response::Inventory(_)
        | Response::NoSuchRails { .. }
        | Response::Prepared(_)
        | Response::Observations(_)
        | Response::Done
        | Response::Handshake(_)
        | Response::Submitted(_)
        | Response::Records(_)
        | Response::Status(_)
        | Response::Attended(_)
        | Response::AlreadyOver { .. }
        | Response::NoCoordinator { .. }
        | Response::Commander(_)
        | Response::Raft { .. }
        | Response::UnknownRun { .. } => "another kind of answer".to_owned(),
    }
}
