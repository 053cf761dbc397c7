//! What a node says of itself before a run: its rails and what it can do.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::ids::{NodeId, RailId};
use crate::topology::{Confidence, LinkLayer};

/// One rail of one node: the endpoint that cells on this rail use here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RailEndpoint {
    /// The rail.
    pub rail: RailId,
    /// The network device; the RDMA device where it has none.
    pub device: String,
    /// The RDMA device behind it, where there is one.
    pub hca: Option<RailHca>,
    /// The GPU whose rank uses this rail, where one is paired with it.
    pub gpu: Option<RailGpu>,
    /// The address that data sockets of this rail bind to; `None` where the device has none, as InfiniBand without IPoIB.
    pub addr: Option<IpAddr>,
    /// The network of that address, where its prefix is known.
    pub network: Option<Network>,
    /// The NUMA node of the device, where the kernel knows one.
    pub numa: Option<u32>,
    /// Line rate in bits a second, where the device says one.
    pub line_rate_bps: Option<u64>,
    /// The device's MTU in bytes.
    pub mtu: Option<u32>,
    /// Why this endpoint was taken as this rail.
    pub reason: String,
}

impl RailEndpoint {
    /// An endpoint of which nothing is known but the device, its address and why it was taken.
    pub fn plain(rail: RailId, device: String, addr: IpAddr, reason: String) -> Self {
        Self {
            rail,
            device,
            hca: None,
            gpu: None,
            addr: Some(addr),
            network: None,
            numa: None,
            line_rate_bps: None,
            mtu: None,
            reason,
        }
    }

    /// The device with its address, as people look for it: `ens1 10.0.0.1`, `mlx5_4 (ens1) 10.0.0.1`, `mlx5_4`.
    pub fn place(&self) -> String {
        let mut text = match &self.hca {
            Some(hca) if hca.device != self.device => format!("{} ({})", hca.name(), self.device),
            Some(hca) => hca.name(),
            None => self.device.clone(),
        };
        if let Some(addr) = self.addr {
            text.push_str(&format!(" {addr}"));
        }
        text
    }
}

/// A port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RailHca {
    /// The RDMA device, such as `mlx5_4`.
    pub device: String,
    /// The port, from 1.
    pub port: u8,
    /// What runs on its wire, where that is known.
    pub link_layer: Option<LinkLayer>,
}

impl RailHca {
    /// `mlx5_4`, or `mlx5_4:2` for another port than the first.
    pub fn name(&self) -> String {
        match self.port {
            1 => self.device.clone(),
            port => format!("{}:{port}", self.device),
        }
    }
}

/// The GPU of a rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RailGpu {
    /// Its index as the driver's tools number it.
    pub index: u16,
    /// Its PCI address, where it is known.
    pub bus: Option<String>,
    /// How sure the pairing is.
    pub confidence: Confidence,
}

/// A network that an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Network {
    /// The address with every host bit 0.
    base: IpAddr,
    /// Bits of the prefix.
    bits: u8,
}

impl Network {
    /// The network of an address. A prefix longer than the address is taken as the whole address.
    pub fn of(addr: IpAddr, bits: u8) -> Self {
        match addr {
            IpAddr::V4(v4) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Self { base: Ipv4Addr::from_bits(v4.to_bits() & mask).into(), bits }
            }
            IpAddr::V6(v6) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Self { base: Ipv6Addr::from_bits(v6.to_bits() & mask).into(), bits }
            }
        }
    }
}

impl Network {
    /// Whether its addresses are valid on their own link only.
    pub fn is_link_local(&self) -> bool {
        match self.base {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
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
