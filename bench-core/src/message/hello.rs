//! The first message of every connection, and its answer. Membership begins only with the answer.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ids::{BootId, BuildHash, Epoch, Generation, MeshId, NodeId, RosterHash};

/// The first message of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Who connects.
    pub role: Role,
    /// Its build.
    pub build: BuildHash,
    /// Which mesh key it holds.
    pub mesh: MeshId,
}

/// Who connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// An agent of the roster.
    Agent {
        /// Its name.
        node: NodeId,
        /// Its process.
        boot: BootId,
        /// What it takes the mesh to be.
        roster: RosterHash,
        /// Its mesh generation, also part of `roster`; apart so that a difference can be named.
        generation: Generation,
    },
    /// A command such as `sweep` or `status`.
    Client,
}

/// The answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelloReply {
    /// The connection may be used.
    Welcome {
        /// Who answers.
        node: NodeId,
        /// Its process.
        boot: BootId,
        /// The highest epoch it has seen.
        epoch: Option<Epoch>,
    },
    /// It may not; the connection is closed after this.
    Refused(Refusal),
}

/// Why a hello is refused. Each says who is at odds and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum Refusal {
    /// Another build.
    #[error("{node} runs build {theirs}, this is build {ours}: copy the same file to every node")]
    Build {
        /// Who refuses.
        node: NodeId,
        /// The refuser's build.
        theirs: BuildHash,
        /// The build that was offered.
        ours: BuildHash,
    },
    /// Another mesh key.
    #[error("{node} belongs to mesh {theirs}, this node to mesh {ours}: give every node the same key file")]
    Mesh {
        /// Who refuses.
        node: NodeId,
        /// The refuser's mesh.
        theirs: MeshId,
        /// The mesh that was offered.
        ours: MeshId,
    },
    /// Another roster, other electors or another generation.
    #[error(
        "{node} has another roster (hash {theirs}, generation {their_generation}; here {ours}, generation {our_generation}): \
         start every agent with the same --peers and --new-generation"
    )]
    Roster {
        /// Who refuses.
        node: NodeId,
        /// The refuser's roster.
        theirs: RosterHash,
        /// The roster that was offered.
        ours: RosterHash,
        /// The refuser's generation.
        their_generation: Generation,
        /// The generation that was offered.
        our_generation: Generation,
    },
    /// The name is not in the roster.
    #[error(
        "{name} is not in the roster of {node}: add it to --peers everywhere, or set --name to the roster's word for this node"
    )]
    Unknown {
        /// Who refuses.
        node: NodeId,
        /// The name that was offered.
        name: NodeId,
    },
    /// A living agent has that name already.
    #[error(
        "{name} is taken by a living agent at {address} (boot {boot}): stop it, or give this one a name of its own with --name"
    )]
    Duplicate {
        /// The name.
        name: NodeId,
        /// Where the living agent is.
        address: String,
        /// The living agent's process.
        boot: BootId,
    },
    /// The name in the certificate is not the name in the hello.
    #[error("the certificate says {certificate}, the hello says {name}")]
    Certificate {
        /// The name of the certificate.
        certificate: String,
        /// The name of the hello.
        name: NodeId,
    },
}
