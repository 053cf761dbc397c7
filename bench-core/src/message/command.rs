//! What a node knows of who commands the mesh.

use serde::{Deserialize, Serialize};

use crate::ids::{BootId, Epoch};

/// What a node knows of who commands the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandView {
    /// The highest epoch it has seen; of an elector also one that it has only voted for.
    pub seen: Option<Epoch>,
    /// The epoch whose elector it takes to command now.
    pub commander: Option<Epoch>,
    /// Its part in elections.
    pub standing: Standing,
}

/// A node's part in elections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It is no elector.
    NoElector,
    /// An elector without state, which has not decided yet what it is.
    Empty {
        /// Its process.
        boot: BootId,
    },
    /// An elector that may have lost its state: it does not vote until a leader has taken it in anew.
    Mute,
    /// It votes.
    Voter {
        /// The processes that founded the mesh together, as far as it is one of them.
        founders: Vec<BootId>,
    },
}
