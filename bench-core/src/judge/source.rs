//! What judging needs to know of the schedule.

use crate::cell::Cell;
use crate::ids::CellId;
use crate::schedule::Schedule;

/// The planned cells of a run: the schedule, or a list in a test.
pub trait CellSource {
    /// The planned cell of this number; `None` from [`CellSource::cells`] on.
    fn cell(&self, id: CellId) -> Option<Cell>;

    /// How many cells are planned. Numbers run from 0.
    fn cells(&self) -> u32;

    /// How many rounds are planned.
    fn rounds(&self) -> u32;

    /// How much of what could be measured is planned.
    fn coverage(&self) -> Coverage;
}

/// No cells: a run that ended before it could be scheduled.
#[derive(Clone, Copy, Debug)]
pub struct NoCells;

impl CellSource for NoCells {
    fn cell(&self, _id: CellId) -> Option<Cell> {
        None
    }

    fn cells(&self) -> u32 {
        0
    }

    fn rounds(&self) -> u32 {
        0
    }

    fn coverage(&self) -> Coverage {
        Coverage { planned_pairs: 0, possible_pairs: 0 }
    }
}

/// How much of what could be measured is planned: less than all where a budget samples matchings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Directed pairs of nodes, each rail of its own, that the plan measures.
    pub planned_pairs: u64,
    /// All directed pairs of nodes, each rail of its own.
    pub possible_pairs: u64,
}

impl CellSource for Schedule {
    fn cell(&self, id: CellId) -> Option<Cell> {
        Self::cell(self, id)
    }

    fn cells(&self) -> u32 {
        Self::cells(self)
    }

    fn rounds(&self) -> u32 {
        Self::rounds(self)
    }

    fn coverage(&self) -> Coverage {
        let (coverage, rails) = (Self::coverage(self), self.rails().len() as u64);
        Coverage {
            planned_pairs: coverage.pairs_planned * rails,
            possible_pairs: coverage.pairs_possible * rails,
        }
    }
}
