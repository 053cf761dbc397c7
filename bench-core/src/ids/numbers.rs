//! Small numbers that must not be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!(concat!($prefix, "{}"), self.0))
            }
        }
    };
}

number!(
    /// Position of a node in the roster, from 0.
    NodeIndex(u16), "#"
);
number!(
    /// A rail: the set of same-position HCAs (or interfaces) over all nodes, from 0 in the order of the node's rails.
    RailId(u16), "r"
);
number!(
    /// A cell of a run. Scheduled cells are numbered by the schedule from 0, retests follow after the last of them.
    CellId(u32), "c"
);
number!(
    /// A round of a run, from 0. Retries and retests are rounds of their own after the scheduled ones.
    RoundId(u32), "round "
);
number!(
    /// The number of a try at one cell, from 1. Only lost infrastructure causes another try, never a poor figure.
    Attempt(u16), "attempt "
);
number!(
    /// Position of a test case (kind, size, parameters) in the plan, from 0.
    CaseIndex(u16), "case "
);

impl Attempt {
    /// The first try.
    pub const FIRST: Self = Self(1);
}

impl NodeIndex {
    /// The position as an index of a slice.
    pub fn usize(self) -> usize {
        usize::from(self.0)
    }
}

impl RailId {
    /// The position as an index of a slice.
    pub fn usize(self) -> usize {
        usize::from(self.0)
    }
}

impl CaseIndex {
    /// The position as an index of a slice.
    pub fn usize(self) -> usize {
        usize::from(self.0)
    }
}
