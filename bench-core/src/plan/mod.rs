//! The plan: what the user wants measured, after validation.
//!
//! A [`Plan`] only exists valid; the text forms (TOML, flags) are parsed at the edge into it.

mod case;
mod gates;
mod pattern;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use case::{Spread, TestCase, TestKind, Verify, WaitMode};
pub use gates::{Gates, PopulationGate};
pub use pattern::{Duplex, Pattern, RailMode};

use crate::ids::RailId;

/// What the user wants measured, validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The test cases in order: one per (kind, size).
    pub cases: Vec<TestCase>,
    /// Which nodes measure with which.
    pub pattern: Pattern,
    /// One direction of a pair at a time, or both.
    pub duplex: Duplex,
    /// Rails one after the other or all at once.
    pub rail_mode: RailMode,
    /// Only these rails; `None` means all.
    pub rails: Option<Vec<RailId>>,
    /// Upper bound on the expected measuring time; `None` measures every pair.
    pub budget: Option<Duration>,
    /// Decides which matchings a budget keeps: the same seed keeps the same ones.
    pub seed: u64,
    /// Limits that cells are judged against.
    pub gates: Gates,
    /// Whether suspects are measured again before they are named.
    pub retest: Retest,
    /// How long a node may take to arm a round.
    pub prepare_timeout: Duration,
}

/// Whether suspects are measured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retest {
    /// Suspect cells are measured again, and suspect parts with two different proven partners.
    Suspects,
    /// The first figure stands.
    Never,
}
