//! From joining to the first round: waiting for members, their inventories, and the schedule they allow.

use bench_core::cell::Cell;
use bench_core::ids::{CellId, NodeIndex};
use bench_core::journal::{Merged, Standing};
use bench_core::message::{Request, Response};
use bench_core::node::NodeInventory;
use bench_core::record::{LossWord, NodePresence, Outcome, RunEnd, RunRecord, RunStart};
use bench_core::schedule::Schedule;

use super::{Context, Run, RunPhase};
use crate::command::Command;
use crate::config::PROBE_TIMEOUT;
use crate::event::{CallFault, CallTag};
use crate::members::MemberState;

impl Run {
    /// Joining: goes on when everybody is here or the time is over.
    pub(super) fn try_probe(&mut self, context: &mut Context<'_>) -> bool {
        if !(context.members.complete() || self.overdue(context)) {
            return false;
        }
        self.waiting = context.members.present().collect();
        for node in &self.waiting {
            let request = Box::new(Request::Probe { epoch: self.epoch });
            context.out.push(Command::Send {
                node: *node,
                tag: CallTag::Probe,
                request,
                deadline: PROBE_TIMEOUT,
            });
        }
        self.phase = RunPhase::Probing;
        self.deadline = Some(context.now.after(PROBE_TIMEOUT));
        true
    }

    /// A node told its inventory, or did not.
    pub(super) fn probed(&mut self, node: NodeIndex, result: Result<Response, CallFault>) {
        if self.phase == RunPhase::Probing {
            self.waiting.retain(|waiting| *waiting != node);
            if let Ok(Response::Inventory(inventory)) = result {
                self.inventories[node.usize()] = Some(*inventory);
            }
        }
    }

    /// Probing: goes on when everybody has told or the time is over.
    pub(super) fn try_begin(&mut self, context: &mut Context<'_>) -> bool {
        if !(self.waiting.is_empty() || self.overdue(context)) {
            return false;
        }
        self.deadline = None;
        self.waiting.clear();
        let start = RunStart {
            run: self.id,
            plan: self.plan.clone(),
            roster: context.config.roster.clone(),
            nodes: (0..self.inventories.len())
                .map(|i| self.presence(NodeIndex(i as u16), context))
                .collect(),
            epoch: self.epoch,
            wall_seconds: self.wall_seconds,
        };
        self.records.push(RunRecord::Started(Box::new(start)));
        match self.compile() {
            Ok(schedule) => {
                self.schedule = Some(schedule);
                self.phase = RunPhase::Measuring;
            }
            Err(reason) => self.finish(RunEnd::Aborted { reason }, context),
        }
        true
    }

    fn presence(&self, node: NodeIndex, context: &Context<'_>) -> NodePresence {
        match (
            &self.inventories[node.usize()],
            &context.members.states()[node.usize()],
        ) {
            (Some(inventory), _) => NodePresence::Present(Box::new(inventory.clone())),
            (None, MemberState::Never) => NodePresence::Absent {
                reason: format!(
                    "never joined within {}",
                    bench_core::units::format_duration(context.config.join_timeout)
                ),
            },
            (None, MemberState::Gone { reason }) => NodePresence::Absent {
                reason: format!("left before the run: {reason}"),
            },
            (None, MemberState::Present { .. }) => NodePresence::Absent {
                reason: format!(
                    "did not tell its inventory within {}",
                    bench_core::units::format_duration(PROBE_TIMEOUT)
                ),
            },
        }
    }

    fn compile(&self) -> Result<Schedule, String> {
        let present: Vec<&NodeInventory> = self.inventories.iter().flatten().collect();
        let rails = common_rails(&present)?;
        Schedule::compile(&self.plan, self.inventories.len() as u16, rails).map_err(|error| error.to_string())
    }

    /// Cells of the plan that no attempt completed because infrastructure failed under them.
    pub(super) fn lost_cells(&self, merged: &Merged) -> Vec<Cell> {
        let mut lost: Vec<CellId> = self
            .records
            .iter()
            .filter_map(|record| match record {
                RunRecord::Lost(loss) => match loss.word {
                    LossWord::Crash | LossWord::Timeout => Some(loss.cell),
                    LossWord::Skip | LossWord::NotTested => None,
                },
                RunRecord::Observed(observation) => match &observation.outcome {
                    Outcome::Failed(failure) if failure.kind.is_infrastructure() => {
                        Some(observation.key.cell)
                    }
                    Outcome::Failed(_) | Outcome::Measured(_) => None,
                },
                RunRecord::Started(_)
                | RunRecord::Round(_)
                | RunRecord::Added(_)
                | RunRecord::Note(_)
                | RunRecord::Ended(_) => None,
            })
            .filter(|cell| !self.is_complete(merged, *cell))
            .collect();
        lost.sort_unstable();
        lost.dedup();
        lost.into_iter()
            .filter_map(|cell| self.schedule.as_ref()?.cell(cell))
            .collect()
    }

    fn is_complete(&self, merged: &Merged, cell: CellId) -> bool {
        merged
            .cell(self.id, cell)
            .is_some_and(|cell| match cell.standing() {
                Standing::Complete { .. } => true,
                Standing::Incomplete { .. } | Standing::Conflict { .. } => false,
            })
    }

    /// Cells of started rounds for which this node's observation is not here.
    pub(super) fn unseen_cells(&self, node: NodeIndex) -> Vec<CellId> {
        let Some(schedule) = &self.schedule else {
            return Vec::new();
        };
        self.records
            .iter()
            .filter_map(|record| match record {
                RunRecord::Lost(loss) if loss.node == Some(node) && loss.attempt.is_some() => Some(loss.cell),
                RunRecord::Lost(_)
                | RunRecord::Observed(_)
                | RunRecord::Started(_)
                | RunRecord::Round(_)
                | RunRecord::Added(_)
                | RunRecord::Note(_)
                | RunRecord::Ended(_) => None,
            })
            .filter(|cell| {
                schedule
                    .cell(*cell)
                    .is_some_and(|cell| cell.src == node || cell.dst == node)
            })
            .collect()
    }
}

/// How many rails every present node has; the text names the places that differ.
fn common_rails(present: &[&NodeInventory]) -> Result<u16, String> {
    let Some(first) = present.first() else {
        return Err("no node told its inventory".to_owned());
    };
    if first.rails.is_empty() {
        return Err(format!(
            "{} has no rail: name its interfaces or addresses with --rails",
            first.node
        ));
    }
    if let Some(other) = present.iter().find(|node| node.rails.len() != first.rails.len()) {
        return Err(format!(
            "the rails of the nodes do not match: {} has {}, {} has {}; name them on both with --rails",
            first.node,
            list_rails(first),
            other.node,
            list_rails(other)
        ));
    }
    Ok(first.rails.len() as u16)
}

fn list_rails(node: &NodeInventory) -> String {
    let rails: Vec<String> = node
        .rails
        .iter()
        .map(|rail| format!("{}={} {}", rail.rail, rail.device, rail.addr))
        .collect();
    format!("{} ({})", rails.len(), rails.join(", "))
}
