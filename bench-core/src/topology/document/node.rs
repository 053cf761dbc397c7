//! The part of the contract that holds what sources said.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlatformEntry {
    /// The hypervisor, if this is a virtual machine.
    pub hypervisor: Option<String>,
    /// The CPU's model.
    pub cpu: Option<String>,
    /// Why this is taken for a container's view.
    pub container: Option<String>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuEntry {
    /// Its number.
    pub index: u16,
    /// What a matrix calls it.
    pub label: String,
    /// The product.
    pub name: Option<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its PCI address.
    pub pci_address: Option<String>,
    /// NUMA nodes that are near to it, as a list.
    pub numa: Option<String>,
    /// CPUs that are near to it, as a list.
    pub cpus: Option<String>,
    /// The NUMA node that its memory forms.
    pub memory_numa: Option<u32>,
    /// Its NVLinks, where their state was shown.
    pub nvlinks: Vec<NvLinkEntry>,
    /// State of its registration with the NVLink fabric, as written.
    pub nvlink_fabric: Option<String>,
}

/// One NVLink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NvLinkEntry {
    /// Its number.
    pub link: u16,
    /// Whether it is up.
    pub active: bool,
}

/// An HCA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HcaEntry {
    /// The RDMA device's name.
    pub name: Option<String>,
    /// What a matrix calls it.
    pub label: Option<String>,
    /// Its PCI address.
    pub pci_address: Option<String>,
    /// Its NUMA node.
    pub numa: Option<u32>,
    /// The kernel driver.
    pub driver: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The board.
    pub board: Option<String>,
    /// The firmware's version.
    pub firmware: Option<String>,
    /// The node GUID, hexadecimal.
    pub node_guid: Option<String>,
    /// The card's GUID, hexadecimal.
    pub system_guid: Option<String>,
    /// `physical` or `virtual`.
    pub function: Option<String>,
    /// Its ports.
    pub ports: Vec<PortEntry>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortEntry {
    /// Its number.
    pub port: u16,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// The rate; a placeholder while the port is down.
    pub rate_gbps: Option<f64>,
    /// Lanes and speed, as written.
    pub lanes: Option<String>,
    /// `down`, `init`, `armed`, `active`, or as written.
    pub state: Option<String>,
    /// `disabled`, `polling`, `link up`, or as written.
    pub physical_state: Option<String>,
    /// The LID.
    pub lid: Option<u32>,
    /// The subnet manager's LID.
    pub sm_lid: Option<u32>,
    /// The active MTU of RDMA.
    pub active_mtu_bytes: Option<u32>,
    /// Its GIDs.
    pub gids: Vec<GidEntry>,
    /// The network device.
    pub netdev: Option<String>,
    /// Whether the network device is up.
    pub netdev_up: Option<bool>,
    /// The bond that the network device belongs to.
    pub bond: Option<String>,
    /// Counters since they were last cleared.
    pub counters: BTreeMap<String, u64>,
}

/// A GID.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GidEntry {
    /// Its index.
    pub index: u16,
    /// As written.
    pub gid: String,
    /// The version of RoCE.
    pub version: Option<String>,
    /// The IPv4 address in it.
    pub ipv4: Option<String>,
}

/// The way between two devices: `gpu:0` is the GPU with index 0, `hca:0` the first of `hcas`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistanceEntry {
    /// One end.
    pub a: String,
    /// The other.
    pub b: String,
    /// `PIX`, `PXB`, `PHB`, `NODE` or `SYS`.
    pub pcie: Option<String>,
    /// Bonded NVLinks.
    pub nvlinks: Option<u16>,
    /// A word that is not known, as written.
    pub other: Option<String>,
}

/// A link of the fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FabricLinkEntry {
    /// The device at this end.
    pub local: String,
    /// `adapter`, `aggregation` or `switch`.
    pub kind: String,
    /// Its port.
    pub port: u16,
    /// Lanes, such as `4X`.
    pub lanes: String,
    /// Signalling rate of all lanes.
    pub rate_gbps: f64,
    /// The state, as written.
    pub state: String,
    /// The device at the other end.
    pub remote: Option<String>,
}
