//! The topology as JSON: a versioned contract, described field by field in docs/topology.md.
//!
//! Its structs are its own, so that an internal type can change without changing the contract. A fact that is not
//! known is `null`; units are in the names.

mod build;
mod node;

use serde::{Deserialize, Serialize};

use super::assess::Assessment;
use super::model::Inventory;

pub use node::{
    DistanceEntry, FabricLinkEntry, GidEntry, GpuEntry, HcaEntry, NvLinkEntry, PlatformEntry, PortEntry,
};

/// Name and version of the contract.
pub const SCHEMA: &str = "railmesh/topology/1";

/// The top level of the JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopologyDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the distances show as a whole: `shown`, `hidden`, `separate` or `not_shown`.
    pub tree: String,
    /// The machine.
    pub platform: PlatformEntry,
    /// The GPUs by index.
    pub gpus: Vec<GpuEntry>,
    /// The HCAs; other fields name them by their place in this list.
    pub hcas: Vec<HcaEntry>,
    /// Every way between two devices of which something is known.
    pub distances: Vec<DistanceEntry>,
    /// What each port is for.
    pub roles: Vec<RoleEntry>,
    /// The HCA of each GPU, in GPU order.
    pub pairs: Vec<PairEntry>,
    /// What a person should know, most serious first.
    pub findings: Vec<FindingEntry>,
    /// What is not known, and which command tells it.
    pub missing: Vec<MissingEntry>,
    /// Links of the fabric beyond the node.
    pub fabric_links: Vec<FabricLinkEntry>,
    /// What was read.
    pub sources: Vec<SourceEntry>,
}

impl TopologyDocument {
    /// The document of an inventory and its conclusions.
    pub fn new(inventory: &Inventory, assessment: &Assessment) -> Self {
        build::document(inventory, assessment)
    }

    /// The document as JSON, indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a document has text keys and finite numbers, so it is JSON");
        text.push('\n');
        text
    }
}

/// What a port is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleEntry {
    /// The HCA's place in `hcas`.
    pub hca: usize,
    /// The HCA's name or label.
    pub name: String,
    /// The port; `null` where no source shows the ports.
    pub port: Option<u16>,
    /// `compute`, `storage`, `front_end`, `storage_or_front_end` or `unknown`.
    pub role: String,
    /// `proven`, `likely`, `assumed` or `unknown`.
    pub confidence: String,
    /// Why.
    pub reason: String,
}

/// The HCA of one GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairEntry {
    /// The GPU's index.
    pub gpu: u16,
    /// The HCA's place in `hcas`; `null` if none can be named.
    pub hca: Option<usize>,
    /// The HCA's name or label.
    pub name: Option<String>,
    /// The rail.
    pub rail: Option<u16>,
    /// `PIX`, `PXB`, `PHB`, `NODE` or `SYS`.
    pub distance: Option<String>,
    /// Other compute HCAs that are as near, by their places in `hcas`.
    pub alike: Vec<usize>,
    /// `proven`, `likely`, `assumed` or `unknown`.
    pub confidence: String,
    /// Why.
    pub reason: String,
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingEntry {
    /// Which kind: a word that stays the same.
    pub kind: String,
    /// `info`, `warn` or `fail`.
    pub severity: String,
    /// `proven`, `likely`, `assumed` or `unknown`.
    pub confidence: String,
    /// Where.
    pub place: String,
    /// What.
    pub what: String,
    /// Why it matters, or why it doesn't.
    pub why: String,
    /// What to do.
    pub remedy: Option<String>,
}

/// Something that is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingEntry {
    /// What.
    pub what: String,
    /// The command that tells it.
    pub command: String,
}

/// Something that was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceEntry {
    /// The command that writes such a capture.
    pub command: String,
    /// The file, or the root that was read.
    pub source: String,
}
