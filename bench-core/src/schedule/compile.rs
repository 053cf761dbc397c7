//! From a plan to a schedule: which rails, which steps, and whether it all fits.

use std::time::Duration;

use thiserror::Error;

use super::coverage::BudgetFit;
use super::sample::Sample;
use super::steps::Steps;
use super::{Round, Schedule};
use crate::ids::RailId;
use crate::plan::{Pattern, Plan, RailMode, TestCase};
use crate::record::{NodePresence, RunStart};

impl Schedule {
    /// Whether a plan fits a mesh of so many nodes and rails at all: what can be told without making the schedule.
    ///
    /// # Errors
    /// [`ScheduleError`] if the roster is too small for the pattern, a rail does not exist, or there is nothing to measure.
    pub fn check(plan: &Plan, nodes: u16, rails: u16) -> Result<(), ScheduleError> {
        let needed = match plan.pattern {
            Pattern::Loopback => 1,
            Pattern::Pairs | Pattern::Shift | Pattern::AllToAll | Pattern::Incast | Pattern::Outcast => 2,
        };
        if nodes < needed {
            return Err(ScheduleError::TooFewNodes { pattern: plan.pattern, nodes, needed });
        }
        if plan.cases.is_empty() {
            return Err(ScheduleError::NoCases);
        }
        chosen_rails(plan, rails).map(drop)
    }

    /// The schedule of `plan` for a roster of `nodes` nodes with `rails` rails each.
    ///
    /// If the whole pattern takes longer than the budget, a sample of matchings (or distances of a shift) is kept, the
    /// same for every case and rail so that they can be compared. Every node still meets at least four partners on
    /// every rail, or all if there are fewer; where that takes longer than the budget, [`Schedule::budget_fit`] says so.
    ///
    /// # Errors
    /// [`ScheduleError`] if the roster is too small for the pattern, a rail does not exist, or there are more cells
    /// than can be numbered or set up at once.
    pub fn compile(plan: &Plan, nodes: u16, rails: u16) -> Result<Self, ScheduleError> {
        Self::check(plan, nodes, rails)?;
        let rails = chosen_rails(plan, rails)?;
        let steps = Steps::all(plan.pattern, plan.duplex, nodes);
        let (kept, fit) = fit(plan, &steps, nodes, rails.len());
        let schedule = Self {
            rails,
            rail_mode: plan.rail_mode,
            cases: u16::try_from(plan.cases.len())
                .map_err(|_| ScheduleError::TooManyCases { cases: plan.cases.len() })?,
            steps: steps.keeping(kept),
            fit,
        };
        schedule.check_numbers()?;
        Ok(schedule)
    }

    /// The schedule of a run: its plan over its roster, with the rails of the first present node.
    ///
    /// # Errors
    /// [`ScheduleError`], also if no node is present and so no rail is known.
    pub fn of_run(start: &RunStart) -> Result<Self, ScheduleError> {
        let rails = start.nodes.iter().find_map(|node| match node {
            NodePresence::Present(inventory) => Some(inventory.rails.len() as u16),
            NodePresence::Absent { .. } => None,
        });
        Self::compile(&start.plan, start.roster.len() as u16, rails.unwrap_or(0))
    }

    /// After this, no product of counts overflows.
    fn check_numbers(&self) -> Result<(), ScheduleError> {
        let rails = self.rails.len() as u64;
        let cells_of_a_round = u64::from(self.steps.cells())
            * match self.rail_mode {
                RailMode::Serial => 1,
                RailMode::Parallel => rails,
            };
        if cells_of_a_round > MAX_CELLS_OF_A_ROUND {
            return Err(ScheduleError::RoundTooLarge { cells: cells_of_a_round, max: MAX_CELLS_OF_A_ROUND });
        }
        let cells = u128::from(self.steps.count())
            * u128::from(self.steps.cells())
            * u128::from(rails)
            * u128::from(self.cases);
        if cells > u128::from(MAX_CELLS) {
            return Err(ScheduleError::TooManyCells {
                cells: u64::try_from(cells).unwrap_or(u64::MAX),
                max: MAX_CELLS,
            });
        }
        Ok(())
    }
}

/// Why a plan cannot be scheduled on a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The pattern needs more nodes than there are.
    #[error(
        "pattern {pattern} needs {needed} nodes, the roster has {nodes}: add peers, or use pattern loopback"
    )]
    TooFewNodes {
        /// The pattern.
        pattern: Pattern,
        /// Nodes of the roster.
        nodes: u16,
        /// Nodes that the pattern needs.
        needed: u16,
    },
    /// There is no rail to measure on.
    #[error("there is no rail to measure on: give each node at least one with --rails")]
    NoRails,
    /// The plan names a rail that no node has.
    #[error("the plan names rail {rail}, the nodes have {rails}, numbered from 0")]
    NoSuchRail {
        /// The named rail.
        rail: u16,
        /// How many there are.
        rails: u16,
    },
    /// There is nothing to measure.
    #[error("the plan has no test cases: name at least one test")]
    NoCases,
    /// More cases than can be numbered.
    #[error("the plan has {cases} cases, name fewer tests or sizes")]
    TooManyCases {
        /// How many there are.
        cases: usize,
    },
    /// More cells than can be numbered.
    #[error(
        "the plan has {cells} cells, at most {max} can be numbered: set a budget, or name fewer sizes or rails"
    )]
    TooManyCells {
        /// How many there are.
        cells: u64,
        /// The most there may be.
        max: u64,
    },
    /// More cells at once than can be set up.
    #[error(
        "a round has {cells} cells, at most {max} can be set up at once: use rail_mode serial, or pattern shift"
    )]
    RoundTooLarge {
        /// How many there are.
        cells: u64,
        /// The most there may be.
        max: u64,
    },
}

/// The time of one round of each case.
pub(super) fn time_of_a_round_of_each(cases: &[TestCase]) -> Duration {
    cases.iter().map(Round::expected_time).fold(Duration::ZERO, Duration::saturating_add)
}

fn chosen_rails(plan: &Plan, rails: u16) -> Result<Vec<RailId>, ScheduleError> {
    let chosen = match &plan.rails {
        None => (0..rails).map(RailId).collect(),
        Some(chosen) => chosen.clone(),
    };
    match chosen.iter().find(|rail| rail.0 >= rails) {
        Some(RailId(rail)) => Err(ScheduleError::NoSuchRail { rail: *rail, rails }),
        None if chosen.is_empty() => Err(ScheduleError::NoRails),
        None => Ok(chosen),
    }
}

/// Which turns the budget keeps.
fn fit(plan: &Plan, steps: &Steps, nodes: u16, rails: usize) -> (Sample, BudgetFit) {
    let Some(budget) = plan.budget.limit(nodes) else {
        return (Sample::All, BudgetFit::Unlimited);
    };
    let groups = match plan.rail_mode {
        RailMode::Serial => rails as u128,
        RailMode::Parallel => 1,
    };
    let turn = time_of_a_round_of_each(&plan.cases).as_nanos() * groups * u128::from(steps.steps_of_a_turn());
    let affordable = budget.as_nanos() / turn;
    let affordable = u32::try_from(affordable).unwrap_or(u32::MAX);
    let (all, least) = (steps.turns(), steps.least_turns());
    let kept = affordable.clamp(least, all);
    let sample = if kept < all { Sample::draw(plan.seed, kept, all) } else { Sample::All };
    let fit = if affordable >= all {
        BudgetFit::Whole { budget }
    } else if affordable >= least {
        BudgetFit::Sampled { budget }
    } else {
        BudgetFit::Exceeded { budget }
    };
    (sample, fit)
}

/// Most cells of all rounds: half of what 32 bits number, so that retests can always be numbered after them.
const MAX_CELLS: u64 = 1 << 31;

/// Most cells of a round: all-to-all of 1,024 nodes on one rail. A round is made whole in memory (20 bytes a cell), and
/// each of its nodes holds a thousand listeners at that point.
const MAX_CELLS_OF_A_ROUND: u64 = 1 << 20;
