//! What an agent needs to start: the resolved configuration and its injected parts.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench_core::ids::{BootId, BuildHash, NodeIndex};
use bench_core::node::RailEndpoint;
use bench_core::roster::Roster;
use thiserror::Error;
use transport::control::identity::MeshKey;
use transport::control::mesh::ControlError;
use transport::control::resolve::ResolveError;

use super::emulate::Emulation;
use crate::electors::{Quorum, StoreError};
use crate::inventory::Host;
use crate::supervise::{Placer, WorkerFactory};

/// The resolved configuration of an agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The roster, the same on every node.
    pub roster: Roster,
    /// This node's place in it.
    pub me: NodeIndex,
    /// This process; random.
    pub boot: BootId,
    /// This process's build.
    pub build: BuildHash,
    /// The mesh key; without one only loopback is served.
    pub key: Option<MeshKey>,
    /// The UDP address to serve.
    pub listen: SocketAddr,
    /// A DNS server in place of the system's.
    pub dns: Option<SocketAddr>,
    /// This node's rails in order, unless a plan names others.
    pub rails: Vec<RailEndpoint>,
    /// Where sysfs and procfs are read (`/`).
    pub root: PathBuf,
    /// Where journals and the elector's state are kept.
    pub state: PathBuf,
    /// Who must be there before the mesh is founded.
    pub quorum: Quorum,
    /// How long a run waits for nodes that have not joined.
    pub join_timeout: Duration,
    /// Pretended faults.
    pub emulate: Emulation,
    /// What a user should know about this node.
    pub notes: Vec<String>,
}

/// The injected parts of an agent.
#[derive(Debug)]
pub struct Deps {
    /// Starts workers.
    pub factory: Arc<dyn WorkerFactory>,
    /// Says where workers run.
    pub placer: Placer,
    /// Facts of the host.
    pub host: Host,
}

/// Why an agent does not start.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The state folder cannot be used.
    #[error("the state folder {path} cannot be used: {source}; name another one with --state", path = .path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The elector's state cannot be kept.
    #[error(transparent)]
    Electors(#[from] StoreError),
    /// The mesh cannot be served.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Names cannot be resolved.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}
