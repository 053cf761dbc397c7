//! The cell: one directed measurement, the unit of scheduling, result and verdict.

use serde::{Deserialize, Serialize};

use crate::ids::{CaseIndex, CellId, NodeIndex, RailId};

/// One directed measurement: test case, rail, source, destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Its number in the run.
    pub id: CellId,
    /// Which test case of the plan.
    pub case: CaseIndex,
    /// The rail of both ends.
    pub rail: RailId,
    /// The sender of a bandwidth test, the initiator of a latency test.
    pub src: NodeIndex,
    /// The receiver or responder.
    pub dst: NodeIndex,
    /// Why it is measured.
    pub purpose: Purpose,
}

/// Why a cell is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// Part of the plan.
    Plan,
    /// Measures a suspect pair again, alone.
    Retest {
        /// The planned cell that raised the suspicion.
        of: CellId,
    },
    /// Measures a suspect part with a partner that has proven sound.
    Repair {
        /// The planned cell that raised the suspicion.
        of: CellId,
    },
}

/// One end of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum End {
    /// The sender or initiator: connects.
    Source,
    /// The receiver or responder: listens.
    Destination,
}

impl Cell {
    /// The node at one end.
    pub fn node(&self, end: End) -> NodeIndex {
        match end {
            End::Source => self.src,
            End::Destination => self.dst,
        }
    }

    /// Both ends with their nodes, the destination first because it must listen before the source connects.
    pub fn ends(&self) -> [(End, NodeIndex); 2] {
        [(End::Destination, self.dst), (End::Source, self.src)]
    }
}

impl End {
    /// The other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Source => Self::Destination,
            Self::Destination => Self::Source,
        }
    }
}
