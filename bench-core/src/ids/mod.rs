//! Identities: nodes, rails, runs, cells, attempts and the fencing token.

mod epoch;
mod job;
mod node;
mod numbers;
mod run;

pub use epoch::Epoch;
pub use node::{NodeId, NodeIdError};
pub use numbers::{Attempt, CaseIndex, CellId, NodeIndex, RailId, RoundId};
pub use run::{BootId, BuildHash, Generation, HexError, MeshId, PlanHash, RosterHash, RunId};
