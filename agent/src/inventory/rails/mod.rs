//! Which devices of this node are its rails, in which order, and why.
//!
//! ```text
//!  --rails, rails_of ──▶ named ──────────┐
//!  RDMA devices ──assess──▶ hcas ─order──┼──▶ RailEndpoint: rail, device, HCA, GPU, address, reason
//!  interfaces only ───────▶ netdevs ─────┘
//! ```
//! Named, each is taken as written. Otherwise the compute ports of the RDMA devices are the rails, in the order of the
//! GPUs that they serve; a node without RDMA devices takes its interfaces. The rules are in docs/topology.md.

mod facts;
mod hcas;
mod named;
mod netdevs;
mod order;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bench_core::ids::RailId;
use bench_core::node::{Network, RailEndpoint, RailGpu, RailHca};
use bench_core::topology::Inventory;
use thiserror::Error;

use super::topology::read_topology;
use facts::DeviceFacts;

/// One address of one network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The device's name.
    pub device: String,
    /// One of its addresses.
    pub addr: IpAddr,
    /// Bits of the address that name its network.
    pub prefix_bits: u8,
}

impl Interface {
    fn network(&self) -> Network {
        Network::of(self.addr, self.prefix_bits)
    }
}

/// How the rails of a node are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RailChoice {
    /// From what is there, by rule.
    Automatic,
    /// As named: RDMA devices (`mlx5_4`, `mlx5_4:2`), network devices or addresses, rail 0 first.
    Named(Vec<String>),
}

/// Why a node has no rails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RailError {
    /// A named rail is nothing that this node has.
    #[error(
        "rail {rail}: {name:?} is no RDMA device, no network device with an address and no address of this node; it has {known}"
    )]
    Unknown {
        /// Which rail.
        rail: RailId,
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// One device was named for two rails.
    #[error("rails {first} and {second} are both {name}: name each device once")]
    Twice {
        /// The earlier rail.
        first: RailId,
        /// The later rail.
        second: RailId,
        /// The device.
        name: String,
    },
    /// Nothing on this node can be a rail.
    #[error(
        "no RDMA port of the compute fabric and no interface that is up with a global address: name the rails with --rails DEVICE,DEVICE or --rails ADDRESS,ADDRESS"
    )]
    Nothing,
}

/// What a node has that can be a rail.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its addresses.
    pub interfaces: Vec<Interface>,
    /// Its GPUs and RDMA devices.
    pub topology: Inventory,
    /// Where device facts are read (`/`).
    pub root: PathBuf,
}

impl Site {
    /// What is there now: addresses from the kernel, everything else below `root`.
    ///
    /// # Errors
    /// The kernel's refusal to list the addresses.
    pub fn read(root: &Path) -> std::io::Result<Self> {
        let interfaces = live_interfaces()?;
        Ok(Self { interfaces, topology: read_topology(root), root: root.to_owned() })
    }

    /// Chooses the rails.
    ///
    /// # Errors
    /// [`RailError`] if a named rail does not exist here or nothing can be one.
    pub fn choose(&self, choice: &RailChoice) -> Result<Vec<RailEndpoint>, RailError> {
        let chosen = match choice {
            RailChoice::Named(names) => named::choose(self, names)?,
            RailChoice::Automatic => self.automatic()?,
        };
        Ok((0..).map(RailId).zip(chosen).map(|(rail, taken)| self.endpoint(rail, taken)).collect())
    }

    fn automatic(&self) -> Result<Vec<Taken>, RailError> {
        let rails = hcas::choose(self);
        let rails = if rails.is_empty() { netdevs::choose(self) } else { rails };
        if rails.is_empty() { Err(RailError::Nothing) } else { Ok(rails) }
    }

    fn endpoint(&self, rail: RailId, taken: Taken) -> RailEndpoint {
        let facts = DeviceFacts::read(&self.root, &taken.device);
        let port = taken.hca.as_ref().and_then(|hca| self.port(hca));
        let of_hca = |read: fn(&bench_core::topology::Hca) -> Option<u32>| read(port?.0);
        RailEndpoint {
            rail,
            numa: facts.numa.or_else(|| of_hca(|hca| hca.numa)),
            line_rate_bps: facts
                .line_rate_bps
                .or_else(|| port.and_then(|(_, port)| port.real_rate()).map(|rate| rate.0 as u64)),
            mtu: facts.mtu,
            network: taken.interface.as_ref().map(Interface::network),
            addr: taken.interface.map(|interface| interface.addr),
            device: taken.device,
            hca: taken.hca,
            gpu: taken.gpu,
            reason: taken.reason,
        }
    }

    fn port(&self, rail: &RailHca) -> Option<(&bench_core::topology::Hca, &bench_core::topology::Port)> {
        let hca = self.topology.hcas.iter().find(|hca| hca.name.as_deref() == Some(&rail.device))?;
        Some((hca, hca.ports.iter().find(|port| port.number == u16::from(rail.port))?))
    }

    /// The address of a device that a rail would use: a global one before a link-local one, IPv4 before IPv6.
    fn address_of(&self, device: &str) -> Option<&Interface> {
        let of_device = self.interfaces.iter().filter(|i| i.device == device);
        of_device.min_by_key(|i| (is_link_local(i.addr), i.addr.is_ipv6()))
    }
}

/// What was taken as a rail.
struct Taken {
    device: String,
    hca: Option<RailHca>,
    gpu: Option<RailGpu>,
    interface: Option<Interface>,
    reason: String,
}

/// The addresses of this machine's interfaces, as the kernel lists them.
///
/// # Errors
/// The kernel's refusal to list them.
pub fn live_interfaces() -> std::io::Result<Vec<Interface>> {
    let listed = if_addrs::get_if_addrs()?;
    let interface = |i: if_addrs::Interface| Interface {
        addr: i.ip(),
        prefix_bits: match &i.addr {
            if_addrs::IfAddr::V4(v4) => v4.prefixlen,
            if_addrs::IfAddr::V6(v6) => v6.prefixlen,
        },
        device: i.name,
    };
    Ok(listed.into_iter().map(interface).collect())
}

fn is_link_local(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

pub(super) use facts::default_route_device;
