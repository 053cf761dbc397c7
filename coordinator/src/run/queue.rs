//! The rounds still to be played: the schedule's by index, then those that were added.

use std::collections::{BTreeSet, VecDeque};

use bench_core::cell::Cell;
use bench_core::ids::{Attempt, CellId, RoundId};
use bench_core::judge::Load;
use bench_core::schedule::Schedule;

/// A round that is to be played.
#[derive(Debug)]
pub(crate) struct PlannedRound {
    pub(crate) id: RoundId,
    pub(crate) attempt: Attempt,
    pub(crate) cells: Vec<Cell>,
}

/// The rounds still to be played.
#[derive(Debug, Default)]
pub(crate) struct RoundQueue {
    pulled: u32,
    over: u32,
    added: u32,
    added_cells: u32,
    done: BTreeSet<CellId>,
    extra: VecDeque<(Attempt, Vec<Cell>)>,
}

impl RoundQueue {
    /// These cells were measured before this coordinator took over: they are not played once more.
    pub(crate) fn pass_over(&mut self, done: BTreeSet<CellId>) {
        self.done = done;
    }

    /// The next round, in order; `None` when there is none for now.
    pub(crate) fn pull(&mut self, schedule: Option<&Schedule>, load: Load) -> Option<PlannedRound> {
        let schedule = schedule?;
        while self.pulled < schedule.rounds() {
            let id = RoundId(self.pulled);
            self.pulled += 1;
            let cells = self.missing(schedule.round(id).cells, load);
            if !cells.is_empty() {
                return Some(PlannedRound { id, attempt: Attempt::FIRST, cells });
            }
            self.over += 1;
        }
        let (attempt, cells) = self.extra.pop_front()?;
        let id = RoundId(self.pulled);
        self.pulled += 1;
        Some(PlannedRound { id, attempt, cells })
    }

    /// What is missing of a round. Where cells load each other, a part of the round would be measured under less load
    /// than the plan says, so it is played whole.
    fn missing(&self, mut cells: Vec<Cell>, load: Load) -> Vec<Cell> {
        let is_done = |cell: &Cell| self.done.contains(&cell.id);
        match load {
            Load::Alone => cells.retain(|cell| !is_done(cell)),
            Load::Concurrent if cells.iter().all(is_done) => cells.clear(),
            Load::Concurrent => {}
        }
        cells
    }

    /// Adds a round of cells that are tried a second time.
    pub(crate) fn add_retry(&mut self, cells: Vec<Cell>) {
        self.added += 1;
        self.extra.push_back((Attempt(Attempt::FIRST.0 + 1), cells));
    }

    /// Adds a round of cells that are tried for the first time.
    pub(crate) fn add_first(&mut self, cells: Vec<Cell>) {
        self.added += 1;
        self.extra.push_back((Attempt::FIRST, cells));
    }

    /// Remembers that cells were added, so that numbers go on after them.
    pub(crate) fn note_added(&mut self, cells: usize) {
        self.added_cells += cells as u32;
    }

    /// The number of the next cell that is added.
    pub(crate) fn next_cell_id(&self, schedule: Option<&Schedule>) -> CellId {
        CellId(schedule.map_or(0, Schedule::cells) + self.added_cells)
    }

    /// A round that was pulled is over.
    pub(crate) fn round_over(&mut self) {
        self.over += 1;
    }

    /// Rounds over, and rounds known so far.
    pub(crate) fn progress(&self, schedule: Option<&Schedule>) -> (u32, u32) {
        (self.over, schedule.map_or(0, Schedule::rounds) + self.added)
    }
}
