//! Which nodes measure with which, and what runs at the same time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which nodes measure with which in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Isolated pairs: each matching of the circle method runs i to j, then j to i. 2(n-1) rounds, odd n 2n.
    Pairs,
    /// Round d: every i sends to i+d and receives from i-d. n-1 rounds.
    Shift,
    /// Everybody to everybody in one round.
    AllToAll,
    /// Round i: all others send to i.
    Incast,
    /// Round i: i sends to all others.
    Outcast,
    /// Every node with itself. Never proof of a fabric.
    Loopback,
}

/// One direction of a pair at a time, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplex {
    /// i to j, then j to i in a round of its own.
    OneWay,
    /// i to j and j to i in the same round (perftest's `-b`): two directed cells.
    Both,
}

/// Rails one after the other or all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RailMode {
    /// Each rail alone.
    Serial,
    /// All rails at once.
    Parallel,
}

impl Pattern {
    /// Every pattern, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Pairs, Self::Shift, Self::AllToAll, Self::Incast, Self::Outcast, Self::Loopback];

    /// The name in plans, flags and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Shift => "shift",
            Self::AllToAll => "all_to_all",
            Self::Incast => "incast",
            Self::Outcast => "outcast",
            Self::Loopback => "loopback",
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
