//! The schedule: which cells run together, in which order.
//!
//! A schedule stores nothing for each cell: a round is a pure function of its number, so every node of the mesh and a
//! new coordinator compute the same rounds from the plan alone, and 4,096 nodes cost no more memory than two.
//!
//! ```text
//!  for each case (test, size)
//!    for each rail, or for all rails at once
//!      for each step of the pattern          ◀── a budget keeps a sample of them
//!        one round: every cell of the step
//! ```
//!
//! All rounds have the same number of cells, so cell and round are found from each other by division.
//! Left to others: which nodes are present (their absence loses cells, it does not change the schedule) and retests,
//! whose cells and rounds are numbered after the last scheduled one.

mod compile;
mod coverage;
mod describe;
mod sample;
mod steps;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use compile::ScheduleError;
pub use coverage::{BudgetFit, Coverage};

use crate::cell::{Cell, Purpose};
use crate::ids::{CaseIndex, CellId, RailId, RoundId};
use crate::plan::{Plan, RailMode, TestCase};
use steps::Steps;

/// The rounds of a plan for a number of nodes and rails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The rails that are measured, in order.
    rails: Vec<RailId>,
    rail_mode: RailMode,
    cases: u16,
    steps: Steps,
    fit: BudgetFit,
}

/// The cells that run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its number.
    pub id: RoundId,
    /// The test of all its cells.
    pub case: CaseIndex,
    /// Its cells in the order of their numbers.
    pub cells: Vec<Cell>,
}

impl Schedule {
    /// How many rounds there are.
    pub fn rounds(&self) -> u32 {
        u32::from(self.cases) * self.rounds_of_a_case()
    }

    /// How many cells there are in all rounds.
    pub fn cells(&self) -> u32 {
        self.rounds() * self.cells_of_a_round()
    }

    /// The round with this number.
    ///
    /// # Panics
    /// If there is no such round: `id` must be below [`Schedule::rounds`].
    pub fn round(&self, id: RoundId) -> Round {
        assert!(id.0 < self.rounds(), "{id} of {} rounds", self.rounds());
        Round {
            id,
            case: self.case_of(id),
            cells: (0..self.cells_of_a_round()).map(|position| self.cell_at(id, position)).collect(),
        }
    }

    /// The cell with this number; `None` if it is not a scheduled one.
    pub fn cell(&self, id: CellId) -> Option<Cell> {
        self.round_of(id).map(|round| self.cell_at(round, id.0 % self.cells_of_a_round()))
    }

    /// The round in which a cell runs; `None` if it is not a scheduled one.
    pub fn round_of(&self, id: CellId) -> Option<RoundId> {
        (id.0 < self.cells()).then(|| RoundId(id.0 / self.cells_of_a_round()))
    }

    /// How long the rounds of `plan`, the plan of this schedule, should take: window, warm-up and overhead of each.
    pub fn expected_time(&self, plan: &Plan) -> Duration {
        compile::time_of_a_round_of_each(&plan.cases).saturating_mul(self.rounds_of_a_case())
    }

    /// How much of what is possible is planned. The same for every case and rail.
    pub fn coverage(&self) -> Coverage {
        Coverage::of(&self.steps)
    }

    /// How the plan relates to its budget.
    pub fn budget_fit(&self) -> BudgetFit {
        self.fit
    }

    /// Rails that are measured, in order.
    pub fn rails(&self) -> &[RailId] {
        &self.rails
    }

    /// Most cells that run at the same time.
    pub fn cells_of_a_round(&self) -> u32 {
        self.steps.cells() * self.rails_of_a_round()
    }

    fn rounds_of_a_case(&self) -> u32 {
        self.steps.count() * self.rail_groups()
    }

    fn rails_of_a_round(&self) -> u32 {
        match self.rail_mode {
            RailMode::Serial => 1,
            RailMode::Parallel => self.rail_count(),
        }
    }

    /// How many times a step is played so that every rail has had it.
    fn rail_groups(&self) -> u32 {
        match self.rail_mode {
            RailMode::Serial => self.rail_count(),
            RailMode::Parallel => 1,
        }
    }

    fn rail_count(&self) -> u32 {
        u32::try_from(self.rails.len()).expect("rails are numbered by 16 bits and named once each")
    }

    fn case_of(&self, round: RoundId) -> CaseIndex {
        let case = round.0 / self.rounds_of_a_case();
        CaseIndex(
            u16::try_from(case)
                .expect("a round that was checked belongs to a case, of which there are 16 bits"),
        )
    }

    fn cell_at(&self, round: RoundId, position: u32) -> Cell {
        let within_case = round.0 % self.rounds_of_a_case();
        let group = within_case / self.steps.count();
        let step = within_case % self.steps.count();
        let rail = group * self.rails_of_a_round() + position / self.steps.cells();
        let (src, dst) = self.steps.ends(step, position % self.steps.cells());
        Cell {
            id: CellId(round.0 * self.cells_of_a_round() + position),
            case: self.case_of(round),
            rail: self.rails[rail as usize],
            src,
            dst,
            purpose: Purpose::Plan,
        }
    }
}

impl Round {
    /// How long a round of this test takes: window, warm-up and the overhead of a round.
    pub fn expected_time(case: &TestCase) -> Duration {
        case.warmup.saturating_add(case.window).saturating_add(OVERHEAD)
    }
}

/// What a round costs besides traffic: arming both ends, committing the mark, agreeing on the instant, collecting.
/// An estimate for the expected time only, nothing waits for it. The aim is 10 ms from window to window among 8 agents;
/// 50 ms leaves room for thousands, because a run that ends early annoys nobody.
pub const OVERHEAD: Duration = Duration::from_millis(50);
