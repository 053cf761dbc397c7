//! The plan: what the user wants measured, after validation.
//!
//! A [`Plan`] only exists valid. The text forms (TOML, flags) are parsed at the edge into a [`PlanSpec`], in which
//! everything may be left out; [`PlanSpec::validate`] fills in the defaults and checks the bounds.
//!
//! ```text
//!  TOML ──from_toml──▶ PlanSpec ──overridden_by(flags)──▶ PlanSpec ──validate──▶ Plan ──to_toml──▶ TOML
//! ```

mod bounds;
mod budget;
mod case;
mod error;
mod forms;
mod gates;
mod gates_spec;
mod hash;
mod pattern;
mod print;
mod rails_of;
mod rdma_spec;
mod sizes;
mod spec;
#[cfg(test)]
mod tests;
mod validate;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use budget::{Budget, BudgetError};
pub use case::{Means, Spread, TestCase, TestKind, Verify, WaitMode};
pub use error::PlanError;
pub use gates::{Gates, PopulationGate};
pub use gates_spec::{GatesSpec, PopulationLimits, PopulationSpec};
pub use pattern::{Duplex, Pattern, RailMode};
pub use rails_of::RailsOf;
pub use rdma_spec::RdmaSpec;
pub use sizes::{SizesError, parse_sizes};
pub use spec::{PlanSpec, TestSpec};

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
    /// Which devices are the rails of which nodes, where the plan does not leave that to them.
    pub rails_of: RailsOf,
    /// Upper bound on the expected measuring time.
    pub budget: Budget,
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
#[serde(rename_all = "snake_case")]
pub enum Retest {
    /// Suspect cells are measured again, and suspect parts with two different proven partners.
    Suspects,
    /// The first figure stands.
    Never,
}
