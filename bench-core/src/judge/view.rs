//! The records of a run in the order in which judging asks for them.

use std::collections::BTreeMap;

use thiserror::Error;

use super::source::{CellSource, Coverage};
use crate::cell::Cell;
use crate::ids::{CellId, NodeId, NodeIndex, RailId, RoundId};
use crate::journal::{Merged, merge};
use crate::node::{NodeInventory, RailEndpoint};
use crate::plan::{Duplex, Pattern, Plan, RailMode, TestCase};
use crate::record::{Loss, NodePresence, Note, Observation, RoundRecord, RunEnd, RunRecord, RunStart};

/// The records of one run, sorted by what they are about. Borrows the records.
#[derive(Debug)]
pub struct RunView<'a> {
    /// How the run began.
    pub start: &'a RunStart,
    /// The planned cells; cell `c` is at position `c`.
    pub planned: Vec<Cell>,
    /// Retests and repairs, in the order in which they were added.
    pub added: Vec<Cell>,
    /// How many rounds are planned.
    pub rounds_planned: u32,
    /// How much of what could be measured is planned.
    pub coverage: Coverage,
    /// Every start of a round, in order.
    pub rounds: Vec<&'a RoundRecord>,
    /// The union of the observations.
    pub merged: Merged<&'a Observation>,
    /// What was lost of each cell, in order.
    pub losses: BTreeMap<CellId, Vec<PlacedLoss<'a>>>,
    /// Notes, in order.
    pub notes: Vec<&'a Note>,
    /// How the run ended; `None` if the records stop before.
    pub end: Option<&'a RunEnd>,
    /// Observations and losses of another run or of cells that nobody planned. Not used.
    pub strays: u32,
}

/// A loss with the round that had been started last before it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct PlacedLoss<'a> {
    /// The loss.
    pub loss: &'a Loss,
    /// The last round started before; `None` before the first.
    pub round: Option<RoundId>,
}

/// Why records cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JudgeError {
    /// No record says how the run began.
    #[error("the records of the run hold no start; fetch them again from record 0")]
    NoStart,
    /// A cell names a test case, node or rail that the plan or roster does not have.
    #[error(
        "cell {cell} does not fit the run's plan and roster; use the schedule that was compiled for this run"
    )]
    ForeignCell {
        /// The cell.
        cell: CellId,
    },
}

impl<'a> RunView<'a> {
    /// Sorts the records of one run.
    ///
    /// # Errors
    /// [`JudgeError`] if there is no start, or a cell does not fit the plan and roster of the start.
    pub fn new(records: &'a [RunRecord], cells: &dyn CellSource) -> Result<Self, JudgeError> {
        let start = records
            .iter()
            .rev()
            .find_map(|record| match record {
                RunRecord::Started(start) => Some(&**start),
                RunRecord::Round(_)
                | RunRecord::Observed(_)
                | RunRecord::Lost(_)
                | RunRecord::Added(_)
                | RunRecord::Note(_)
                | RunRecord::Ended(_) => None,
            })
            .ok_or(JudgeError::NoStart)?;
        let mut view = Self {
            start,
            planned: (0..cells.cells()).filter_map(|id| cells.cell(CellId(id))).collect(),
            added: Vec::new(),
            rounds_planned: cells.rounds(),
            coverage: cells.coverage(),
            rounds: Vec::new(),
            merged: merge([]),
            losses: BTreeMap::new(),
            notes: Vec::new(),
            end: None,
            strays: 0,
        };
        view.sort(records);
        view.check_cells()?;
        Ok(view)
    }

    fn sort(&mut self, records: &'a [RunRecord]) {
        let added = records.iter().flat_map(|record| match record {
            RunRecord::Added(cells) => cells.as_slice(),
            RunRecord::Started(_)
            | RunRecord::Round(_)
            | RunRecord::Observed(_)
            | RunRecord::Lost(_)
            | RunRecord::Note(_)
            | RunRecord::Ended(_) => &[],
        });
        let mut seen = BTreeMap::new();
        for cell in added {
            seen.entry(cell.id).or_insert(*cell);
        }
        self.added = seen.into_values().collect();
        let mut observations = Vec::new();
        for record in records {
            match record {
                RunRecord::Started(_) | RunRecord::Added(_) => {}
                RunRecord::Round(round) => self.rounds.push(round),
                RunRecord::Observed(seen) => {
                    if seen.key.run == self.start.run && self.cell(seen.key.cell).is_some() {
                        observations.push(seen);
                    } else {
                        self.strays += 1;
                    }
                }
                RunRecord::Lost(loss) => self.place(loss),
                RunRecord::Note(note) => self.notes.push(note),
                RunRecord::Ended(end) => self.end = Some(end),
            }
        }
        self.merged = merge(observations);
    }

    fn place(&mut self, loss: &'a Loss) {
        if self.cell(loss.cell).is_none() {
            self.strays += 1;
            return;
        }
        let round = self.rounds.last().map(|round| round.round);
        self.losses.entry(loss.cell).or_default().push(PlacedLoss { loss, round });
    }

    fn check_cells(&self) -> Result<(), JudgeError> {
        let nodes = self.start.roster.len();
        let cases = self.start.plan.cases.len();
        match self
            .cells()
            .find(|cell| cell.src.usize() >= nodes || cell.dst.usize() >= nodes || cell.case.usize() >= cases)
        {
            None => Ok(()),
            Some(cell) => Err(JudgeError::ForeignCell { cell: cell.id }),
        }
    }

    /// Every cell, planned ones first.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.planned.iter().chain(&self.added)
    }

    /// The cell of this number, planned or added.
    pub fn cell(&self, id: CellId) -> Option<&Cell> {
        self.planned.get(id.0 as usize).or_else(|| self.added.iter().find(|cell| cell.id == id))
    }

    /// The test case of a cell of this run.
    pub fn case(&self, cell: &Cell) -> &'a TestCase {
        &self.start.plan.cases[cell.case.usize()]
    }

    /// The name of a node of this run.
    pub fn name(&self, node: NodeIndex) -> &'a NodeId {
        &self.start.roster[node.usize()]
    }

    /// What a node said of itself; `None` if it did not take part.
    pub fn inventory(&self, node: NodeIndex) -> Option<&'a NodeInventory> {
        match self.start.nodes.get(node.usize())? {
            NodePresence::Present(inventory) => Some(inventory),
            NodePresence::Absent { .. } => None,
        }
    }

    /// A node's endpoint of a rail.
    pub fn endpoint(&self, node: NodeIndex, rail: RailId) -> Option<&'a RailEndpoint> {
        self.inventory(node)?.rails.iter().find(|endpoint| endpoint.rail == rail)
    }

    /// A pair on its rail, such as `n0 -> n1, rail 3`.
    pub fn path(&self, cell: &Cell) -> String {
        format!("{} -> {}, rail {}", self.name(cell.src), self.name(cell.dst), cell.rail.0)
    }

    /// Whether planned cells share nodes or links with others of their round.
    pub fn load(&self) -> Load {
        let first = self.planned.first().map(|cell| cell.rail);
        let several = self.planned.iter().any(|cell| Some(cell.rail) != first);
        Load::of(&self.start.plan, if several { 2 } else { 1 })
    }
}

impl Load {
    /// What runs beside the planned cells of a plan on `rails` rails.
    pub fn of(plan: &Plan, rails: usize) -> Self {
        let shared_pattern = match plan.pattern {
            Pattern::Shift | Pattern::AllToAll | Pattern::Incast | Pattern::Outcast => true,
            Pattern::Pairs | Pattern::Loopback => false,
        };
        let shared_rails = plan.rail_mode == RailMode::Parallel && rails > 1;
        let shared_node = shared_rails || plan.duplex == Duplex::Both;
        if shared_pattern || shared_node { Self::Concurrent } else { Self::Alone }
    }
}

/// What runs beside a planned cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing on its two nodes.
    Alone,
    /// Other cells on its nodes, so that its figure counts only inside the common window.
    Concurrent,
}
