//! From joining to the first round: waiting for members, their inventories, and the schedule they allow.

use bench_core::agreement::{agree, odd_rates};
use bench_core::cell::Cell;
use bench_core::ids::{CellId, NodeIndex};
use bench_core::journal::{Merged, Standing};
use bench_core::message::Response;
use bench_core::node::NodeInventory;
use bench_core::record::{
    LossWord, NodePresence, Note, Observation, Outcome, RunEnd, RunRecord, RunStart, Severity,
};
use bench_core::schedule::Schedule;

use super::{Context, Run, RunPhase};
use crate::config::{PROBE_TIMEOUT, RECOVERY_PATIENCE};
use crate::event::CallFault;
use crate::members::MemberState;

impl Run {
    /// Joining: goes on when everybody is here or the time is over.
    pub(super) fn try_probe(&mut self, context: &mut Context<'_>) -> bool {
        if !(context.members.complete() || self.overdue(context)) {
            return false;
        }
        let present: Vec<_> = context.members.present().collect();
        for node in present {
            self.ask_inventory(node, context);
        }
        self.phase = RunPhase::Probing;
        self.deadline = Some(context.now.after(PROBE_TIMEOUT));
        true
    }

    /// A node told its inventory, or did not. After the start it joins late: it takes part in what is still to come.
    pub(super) fn probed(
        &mut self,
        node: NodeIndex,
        result: Result<Response, CallFault>,
        context: &Context<'_>,
    ) {
        self.probing.remove(&node);
        let inventory = match result {
            Ok(Response::Inventory(inventory)) => *inventory,
            Ok(Response::NoSuchRails { reason }) => {
                self.hear(node);
                self.unfit_rails(node, &reason, context);
                return;
            }
            Ok(_) | Err(_) => return,
        };
        self.hear(node);
        if self.schedule.is_none() {
            self.inventories[node.usize()] = Some(inventory);
        } else if self.inventories[node.usize()].is_none() {
            self.join_late(node, inventory, context);
        }
    }

    /// The plan takes devices as this node's rails that it has not. Before the start that ends the run.
    fn unfit_rails(&mut self, node: NodeIndex, reason: &str, context: &Context<'_>) {
        let text = format!("{}: {reason}", context.config.roster[node.usize()]);
        match self.schedule {
            None => self.unfit = Some(format!("rails_of of the plan cannot be used: {text}")),
            Some(_) => self.refuse_late(node, format!("{text}: it takes no part")),
        }
    }

    fn join_late(&mut self, node: NodeIndex, inventory: NodeInventory, context: &Context<'_>) {
        let mut all: Vec<&NodeInventory> = self.inventories.iter().flatten().collect();
        all.push(&inventory);
        match agree(&all) {
            Ok(_) => {
                self.inventories[node.usize()] = Some(inventory);
                self.push_start(context);
            }
            Err(mismatch) => {
                let text = format!("{} joined late and takes no part: {mismatch}", inventory.node);
                self.refuse_late(node, text);
            }
        }
    }

    fn refuse_late(&mut self, node: NodeIndex, text: String) {
        self.records.push(RunRecord::Note(Note {
            severity: Severity::Warning,
            node: Some(node),
            text,
            remedy: Some("name the rails on every node with --rails, or correct rails_of".to_owned()),
        }));
    }

    /// Rails that are slower or faster than most.
    fn note_rates(&mut self, context: &Context<'_>) {
        let present: Vec<&NodeInventory> = self.inventories.iter().flatten().collect();
        for odd in odd_rates(&present) {
            let node = context.config.roster.iter().position(|name| *name == odd.node);
            self.records.push(RunRecord::Note(Note {
                severity: Severity::Warning,
                node: node.map(|at| NodeIndex(at as u16)),
                text: odd.to_string(),
                remedy: Some("see the port's negotiated speed, its cable and its switch port".to_owned()),
            }));
        }
    }

    /// Probing: goes on when everybody has told or the time is over.
    pub(super) fn try_begin(&mut self, context: &mut Context<'_>) -> bool {
        if !(self.probing.is_empty() || self.overdue(context)) {
            return false;
        }
        self.begin(context);
        true
    }

    /// From what the nodes told to the first round that is to be played.
    pub(super) fn begin(&mut self, context: &mut Context<'_>) {
        self.deadline = None;
        self.push_start(context);
        match self.compile() {
            Ok(schedule) => {
                self.note_rates(context);
                self.schedule = Some(schedule);
                self.phase = RunPhase::Measuring;
                if let Some(end) = self.rebuild(context) {
                    self.finish(end, context);
                }
            }
            Err(reason) => self.finish(RunEnd::Aborted { reason }, context),
        }
    }

    /// Records who takes part.
    fn push_start(&mut self, context: &Context<'_>) {
        let start = RunStart {
            run: self.id,
            plan: self.plan.clone(),
            roster: context.config.roster.clone(),
            nodes: (0..self.inventories.len()).map(|i| self.presence(NodeIndex(i as u16), context)).collect(),
            epoch: self.epoch,
            wall_seconds: self.wall_seconds,
        };
        self.records.push(RunRecord::Started(Box::new(start)));
    }

    fn presence(&self, node: NodeIndex, context: &Context<'_>) -> NodePresence {
        match (&self.inventories[node.usize()], &context.members.states()[node.usize()]) {
            (Some(inventory), _) => NodePresence::Present(Box::new(inventory.clone())),
            (None, MemberState::Never) => NodePresence::Absent {
                reason: format!(
                    "never joined within {}",
                    bench_core::units::format_duration(context.config.join_timeout)
                ),
            },
            (None, MemberState::Gone { reason }) => {
                NodePresence::Absent { reason: format!("left before the run: {reason}") }
            }
            (None, MemberState::Present { .. }) => NodePresence::Absent {
                reason: format!(
                    "did not tell its inventory within {}",
                    bench_core::units::format_duration(match self.recovery {
                        Some(_) => RECOVERY_PATIENCE,
                        None => PROBE_TIMEOUT,
                    })
                ),
            },
        }
    }

    fn compile(&self) -> Result<Schedule, String> {
        if let Some(reason) = &self.unfit {
            return Err(reason.clone());
        }
        let present: Vec<&NodeInventory> = self.inventories.iter().flatten().collect();
        let rails = agree(&present).map_err(|mismatch| mismatch.to_string())?;
        Schedule::compile(&self.plan, self.inventories.len() as u16, rails).map_err(|error| error.to_string())
    }

    /// Cells of the plan that no attempt completed because infrastructure failed under them, or a node was absent that
    /// is here by now.
    pub(super) fn lost_cells(&self, merged: &Merged<&Observation>) -> Vec<Cell> {
        let mut lost: Vec<CellId> = self
            .records
            .iter()
            .filter_map(|record| match record {
                RunRecord::Lost(loss) => match loss.word {
                    LossWord::Crash | LossWord::Timeout => Some(loss.cell),
                    LossWord::NotTested if loss.attempt.is_none() => Some(loss.cell),
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
            .filter(|cell| cell.ends().iter().all(|(_, node)| self.inventories[node.usize()].is_some()))
            .collect()
    }

    fn is_complete(&self, merged: &Merged<&Observation>, cell: CellId) -> bool {
        merged.cell(self.id, cell).is_some_and(|cell| match cell.standing() {
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
            .filter(|cell| schedule.cell(*cell).is_some_and(|cell| cell.src == node || cell.dst == node))
            .collect()
    }
}
