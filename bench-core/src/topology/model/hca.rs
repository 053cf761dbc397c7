//! An HCA (an RDMA device, or a NIC that a matrix only numbers) and its ports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::gpu::{PciPath, Row};
use super::{Learn, PciAddress};
use crate::units::BitsPerSecond;

/// An HCA. Every fact may be absent: absent is not false.
#[derive(Clone, Debug, PartialEq)]
pub struct Hca {
    /// The RDMA device's name, where it is known.
    pub name: Option<String>,
    /// What a matrix calls it, such as `NIC0`.
    pub label: Option<String>,
    /// Its PCI address.
    pub bus: Option<PciAddress>,
    /// The bridges above it.
    pub path: Option<PciPath>,
    /// Its NUMA node.
    pub numa: Option<u32>,
    /// The kernel driver.
    pub driver: Option<String>,
    /// The model as the driver names it, such as `MT4129`.
    pub model: Option<String>,
    /// The board, such as `MT_0000000838`.
    pub board: Option<String>,
    /// The firmware's version.
    pub firmware: Option<String>,
    /// The node GUID.
    pub node_guid: Option<String>,
    /// The GUID that all functions of one card share.
    pub system_guid: Option<String>,
    /// Whether it is a physical or a virtual function.
    pub function: Option<Function>,
    /// How many ports it says it has.
    pub port_count: Option<u16>,
    /// Its ports, by number.
    pub ports: Vec<Port>,
    /// How much of its row in the matrix there is.
    pub row: Row,
}

impl Hca {
    /// An HCA of which only the name or the label is known, or neither.
    pub(crate) fn new(name: Option<String>, label: Option<String>) -> Self {
        Self {
            name,
            label,
            bus: None,
            path: None,
            numa: None,
            driver: None,
            model: None,
            board: None,
            firmware: None,
            node_guid: None,
            system_guid: None,
            function: None,
            port_count: None,
            ports: Vec::new(),
            row: Row::NoMatrix,
        }
    }

    /// What to call it before people: its name, else the label of the matrix.
    pub fn title(&self) -> &str {
        self.name.as_deref().or(self.label.as_deref()).unwrap_or("(unnamed)")
    }

    /// Its name, as far as it hints at anything: a bond's device says so.
    pub fn is_bond(&self) -> bool {
        self.title().contains("bond") || self.ports.iter().any(|port| port.bond.is_some())
    }

    /// The port of that number, made if it was not known; `None` above `MAX_PORTS`.
    pub fn port_mut(&mut self, number: u16) -> Option<&mut Port> {
        let at = match self.ports.binary_search_by_key(&number, |port| port.number) {
            Ok(at) => at,
            Err(_) if self.ports.len() >= MAX_PORTS => return None,
            Err(at) => {
                self.ports.insert(at, Port::new(number));
                at
            }
        };
        self.ports.get_mut(at)
    }

    /// Learns a text fact.
    pub(crate) fn learn(&mut self, fact: HcaFact, value: &str, learn: &mut Learn<'_>) {
        let what = format!("{}: {}", self.title(), fact.name());
        let slot = match fact {
            HcaFact::Model => &mut self.model,
            HcaFact::Board => &mut self.board,
            HcaFact::Firmware => &mut self.firmware,
            HcaFact::NodeGuid => &mut self.node_guid,
            HcaFact::SystemGuid => &mut self.system_guid,
        };
        let value = match fact {
            HcaFact::NodeGuid | HcaFact::SystemGuid => plain_guid(value),
            HcaFact::Model | HcaFact::Board | HcaFact::Firmware => value.to_owned(),
        };
        learn.fact(slot, value, &what);
    }
}

/// Tools write `0x00aa...`, `00aa:00aa:...`: the digits are what counts.
fn plain_guid(text: &str) -> String {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    digits.chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).collect()
}

/// A text fact of an HCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HcaFact {
    /// The model.
    Model,
    /// The board.
    Board,
    /// The firmware.
    Firmware,
    /// The node GUID.
    NodeGuid,
    /// The card's GUID.
    SystemGuid,
}

impl HcaFact {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Board => "board",
            Self::Firmware => "firmware",
            Self::NodeGuid => "node GUID",
            Self::SystemGuid => "system image GUID",
        }
    }
}

/// Whether a device is a physical or a virtual function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The card itself.
    Physical,
    /// A virtual function of a card.
    Virtual,
}

/// A port of an HCA.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its number, from 1.
    pub number: u16,
    /// What runs on the wire.
    pub link_layer: Option<LinkLayer>,
    /// The rate that the tool wrote. On a port that is down it is a placeholder.
    pub rate: Option<BitsPerSecond>,
    /// Lanes and speed as written, such as `4X NDR`.
    pub lanes: Option<String>,
    /// The logical state.
    pub state: Option<PortState>,
    /// The physical state.
    pub physical: Option<PhysicalState>,
    /// The LID; 0 and 65535 are none.
    pub lid: Option<u32>,
    /// The subnet manager's LID; 0 is none.
    pub sm_lid: Option<u32>,
    /// The active MTU in bytes.
    pub active_mtu: Option<u32>,
    /// Its GIDs.
    pub gids: Vec<Gid>,
    /// The network device on it.
    pub netdev: Option<String>,
    /// Whether the network device is up.
    pub netdev_state: Option<NetdevState>,
    /// The bond that the network device belongs to.
    pub bond: Option<String>,
    /// The default route leaves by this port's network device.
    pub default_route: bool,
    /// Counters since they were last cleared, by the kernel's names.
    pub counters: BTreeMap<String, u64>,
}

impl Port {
    fn new(number: u16) -> Self {
        Self {
            number,
            link_layer: None,
            rate: None,
            lanes: None,
            state: None,
            physical: None,
            lid: None,
            sm_lid: None,
            active_mtu: None,
            gids: Vec::new(),
            netdev: None,
            netdev_state: None,
            bond: None,
            default_route: false,
            counters: BTreeMap::new(),
        }
    }

    /// Keeps a GID unless it is known; at most `MAX_GIDS`.
    pub fn add_gid(&mut self, gid: Gid) {
        if self.gids.len() < MAX_GIDS && !self.gids.iter().any(|known| known.index == gid.index) {
            self.gids.push(gid);
        }
    }

    /// Keeps a counter; at most `MAX_COUNTERS`.
    pub fn add_counter(&mut self, name: &str, value: u64) {
        if self.counters.len() < MAX_COUNTERS && name.len() <= MAX_COUNTER_NAME {
            self.counters.entry(name.to_owned()).or_insert(value);
        }
    }

    /// Whether the port carries traffic, where that is known.
    pub fn is_up(&self) -> Option<bool> {
        let state = self.state.as_ref()?;
        Some(match state {
            PortState::Active => true,
            PortState::Down | PortState::Init | PortState::Armed | PortState::Other(_) => false,
        })
    }

    /// The rate, unless the port is down and the rate therefore a placeholder.
    pub fn real_rate(&self) -> Option<BitsPerSecond> {
        match self.is_up() {
            Some(true) | None => self.rate,
            Some(false) => None,
        }
    }
}

/// What runs on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RDMA is RoCE.
    Ethernet,
}

impl LinkLayer {
    /// The word of the tools.
    pub fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::InfiniBand, Self::Ethernet].into_iter().find(|layer| layer.name().eq_ignore_ascii_case(word))
    }
}

impl std::fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The logical state of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Down.
    Down,
    /// The link is up, but no subnet manager has configured it.
    Init,
    /// Configured, not yet active.
    Armed,
    /// Carries traffic.
    Active,
    /// As written.
    Other(String),
}

impl PortState {
    /// Reads `Active`, `4: ACTIVE`, `PORT_ACTIVE (4)`.
    pub fn parse(text: &str) -> Self {
        let word = state_word(text);
        match word.strip_prefix("port_").unwrap_or(&word) {
            "down" => Self::Down,
            "init" | "initializing" | "initialize" => Self::Init,
            "armed" => Self::Armed,
            "active" => Self::Active,
            _ => Self::Other(text.trim().to_owned()),
        }
    }

    /// The word for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Down => "down",
            Self::Init => "init",
            Self::Armed => "armed",
            Self::Active => "active",
            Self::Other(text) => text,
        }
    }
}

/// The physical state of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhysicalState {
    /// Switched off by the administrator or the firmware.
    Disabled,
    /// Looks for a peer: no cable, or nothing at its other end.
    Polling,
    /// The link is up.
    LinkUp,
    /// As written: training, sleep, error recovery.
    Other(String),
}

impl PhysicalState {
    /// Reads `LinkUp`, `5: LinkUp`, `LINK_UP (5)`.
    pub fn parse(text: &str) -> Self {
        match state_word(text).replace('_', "").as_str() {
            "disabled" => Self::Disabled,
            "polling" => Self::Polling,
            "linkup" => Self::LinkUp,
            _ => Self::Other(text.trim().to_owned()),
        }
    }

    /// The word for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Disabled => "disabled",
            Self::Polling => "polling",
            Self::LinkUp => "link up",
            Self::Other(text) => text,
        }
    }
}

/// The word of a state without the numbers that tools put before or after it.
fn state_word(text: &str) -> String {
    let text = text.split_once(':').map_or(text, |(_, word)| word);
    let text = text.split_once('(').map_or(text, |(word, _)| word);
    text.trim().to_ascii_lowercase()
}

/// A GID of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gid {
    /// Its index.
    pub index: u16,
    /// As written.
    pub gid: String,
    /// The version of RoCE, as written: `v1`, `v2`; absent where the tool printed none.
    pub version: Option<String>,
    /// The IPv4 address in it, where the tool printed one.
    pub ipv4: Option<String>,
}

impl Gid {
    /// Whether it has an address that is valid on its own link only.
    pub fn is_link_local(&self) -> bool {
        self.gid.to_ascii_lowercase().starts_with("fe80")
    }
}

/// Whether a network device is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetdevState {
    /// Up.
    Up,
    /// Down.
    Down,
}

/// Most ports of an HCA that are kept.
const MAX_PORTS: usize = 32;
/// Most GIDs of a port that are kept: the table of a card has 256.
const MAX_GIDS: usize = 512;
/// Most counters of a port that are kept: drivers have about 100.
const MAX_COUNTERS: usize = 256;
/// Longest name of a counter that is kept.
const MAX_COUNTER_NAME: usize = 64;
