//! How two devices of a node reach each other.

use std::fmt;

/// How far two devices are apart in the PCIe tree, nearest first.
///
/// The words are those of `nvidia-smi topo -m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// At most one PCIe bridge between them: they share a switch.
    Pix,
    /// Several PCIe bridges, but no host bridge.
    Pxb,
    /// Across a PCIe host bridge, which as a rule is the CPU.
    Phb,
    /// Across host bridges of one NUMA node.
    Node,
    /// Across the interconnect between NUMA nodes.
    Sys,
}

impl Distance {
    /// Every distance, nearest first.
    pub const ALL: [Self; 5] = [Self::Pix, Self::Pxb, Self::Phb, Self::Node, Self::Sys];

    /// The word of `nvidia-smi topo -m`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
        }
    }

    /// Reads the word; `SOC` is what drivers before 384 said for `SYS`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "SOC" => Some(Self::Sys),
            _ => Self::ALL.into_iter().find(|distance| distance.name() == word),
        }
    }

    /// Below one PCIe switch or chain of switches: what GPUDirect RDMA wants.
    pub fn is_below_switch(self) -> bool {
        self <= Self::Pxb
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A cell of a matrix of distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The device itself.
    Own,
    /// So many bonded NVLinks.
    NvLink(u16),
    /// A distance in the PCIe tree.
    Pcie(Distance),
    /// A word that this product does not know, as written: another vendor's link.
    Other(String),
}

impl Cell {
    /// Reads one cell; `None` for what cannot be one.
    pub fn parse(word: &str) -> Option<Self> {
        if word == "X" {
            return Some(Self::Own);
        }
        if let Some(distance) = Distance::parse(word) {
            return Some(Self::Pcie(distance));
        }
        if let Some(count) = word.strip_prefix("NV").and_then(|count| count.parse().ok()) {
            return Some(Self::NvLink(count));
        }
        let plain = !word.is_empty()
            && word.len() <= MAX_WORD
            && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'/')
            && word.bytes().any(|b| b.is_ascii_uppercase());
        plain.then(|| Self::Other(word.to_owned()))
    }
}

/// What is known of the way between two devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The PCIe distance, where it was shown: a matrix shows either this or NVLink.
    pub pcie: Option<Distance>,
    /// Bonded NVLinks, where they were shown.
    pub nvlinks: Option<u16>,
    /// A word that is not known, as written.
    pub other: Option<String>,
}

/// Longest word of a cell: the known ones have four letters.
const MAX_WORD: usize = 8;
