//! What a node says of itself before a run: its rails and what it can do.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ids::{NodeId, RailId};

/// One rail of one node: the endpoint that cells on this rail use here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RailEndpoint {
    /// The rail.
    pub rail: RailId,
    /// The network device, or the address again where no device is known.
    pub device: String,
    /// The address that data sockets of this rail bind to.
    pub addr: IpAddr,
    /// The NUMA node of the device, where the kernel knows one.
    pub numa: Option<u32>,
    /// Line rate in bits a second, where the device says one.
    pub line_rate_bps: Option<u64>,
    /// The device's MTU in bytes.
    pub mtu: Option<u32>,
    /// Why this endpoint was taken as this rail.
    pub reason: String,
}

/// A thing that a node can or cannot measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// The backend or library, such as `tcp`, `verbs` or `cuda`.
    pub name: String,
    /// `None` if present; else why it is absent.
    pub absent: Option<String>,
}

/// The inventory of a node at the start of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeInventory {
    /// The node.
    pub node: NodeId,
    /// The kernel's host name: a label.
    pub hostname: String,
    /// The kernel's release: a label.
    pub kernel: String,
    /// Processors that this node's agent may use.
    pub cpus: u32,
    /// The kernel's current clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// Wall clock at the time of the report, seconds since 1970: a label, never compared.
    pub wall_seconds: u64,
    /// The rails in order; rail `r` is at position `r`.
    pub rails: Vec<RailEndpoint>,
    /// What the node can measure.
    pub capabilities: Vec<Capability>,
    /// What a user should know about this node, such as a core that the agent shares with the workers.
    pub notes: Vec<String>,
}
