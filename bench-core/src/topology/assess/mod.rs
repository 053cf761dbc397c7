//! What follows from an inventory: what each port is for, which HCA serves which GPU, and what a person should know.
//!
//! Every conclusion has its reason and a [`Confidence`]. No rule looks at a file's name, and none decides by the name
//! or the number of a device alone.

mod cards;
mod findings;
mod groups;
mod matching;
mod missing;
mod pairing;
mod roles;
mod tree;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::model::{Distance, Gap, HcaId, Inventory};

pub use tree::PciTree;

/// Draws every conclusion that an inventory allows.
pub fn assess(inventory: &Inventory) -> Assessment {
    let tree = tree::tree(inventory);
    let ports = roles::roles(inventory, tree);
    let pairs = pairing::pair(inventory, tree, &ports);
    let view = findings::View { inventory, tree, ports: &ports, pairs: &pairs };
    let findings = findings::findings(&view);
    let missing = missing::missing(&view);
    Assessment { tree, ports, pairs, findings, missing }
}

/// The conclusions.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// What the distances between GPUs and HCAs show as a whole.
    pub tree: PciTree,
    /// What each port is for.
    pub ports: Vec<PortAssessment>,
    /// The HCA of each GPU, in GPU order.
    pub pairs: Vec<Pairing>,
    /// What a person should know, most serious first.
    pub findings: Vec<Finding>,
    /// What is not known, and which command tells it.
    pub missing: Vec<Gap>,
}

/// How sure a conclusion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Nothing supports a conclusion.
    Unknown,
    /// Chosen by order or custom, since nothing decides.
    Assumed,
    /// One signal supports it, none speaks against it.
    Likely,
    /// It follows from what was read.
    Proven,
}

impl Confidence {
    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Assumed => "assumed",
            Self::Likely => "likely",
            Self::Proven => "proven",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A rail of the compute fabric.
    Compute,
    /// Storage.
    Storage,
    /// The way to users, services and the internet.
    FrontEnd,
    /// No rail; which of the two is not told.
    StorageOrFrontEnd,
    /// Not known.
    Unknown,
}

impl Role {
    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Storage => "storage",
            Self::FrontEnd => "front_end",
            Self::StorageOrFrontEnd => "storage_or_front_end",
            Self::Unknown => "unknown",
        }
    }

    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Storage => "storage",
            Self::FrontEnd => "front-end",
            Self::StorageOrFrontEnd => "storage or front-end",
            Self::Unknown => "unknown",
        }
    }
}

/// What a port is for, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAssessment {
    /// The HCA.
    pub hca: HcaId,
    /// The port; `None` where no source shows the ports of this HCA.
    pub port: Option<u16>,
    /// What for.
    pub role: Role,
    /// How sure.
    pub confidence: Confidence,
    /// Why.
    pub reason: String,
}

/// The HCA of one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The GPU's index.
    pub gpu: u16,
    /// Its HCA; `None` if none can be named.
    pub hca: Option<HcaId>,
    /// The rail: the HCAs' order by their GPUs. `None` where an earlier GPU has no HCA that can be named.
    pub rail: Option<u16>,
    /// The distance between them.
    pub distance: Option<Distance>,
    /// Other compute HCAs that are as near.
    pub alike: Vec<HcaId>,
    /// How sure.
    pub confidence: Confidence,
    /// Why.
    pub reason: String,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Costs speed, or may be a fault.
    Warn,
    /// Broken.
    Fail,
}

impl Severity {
    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which kind: a word that stays the same.
    pub kind: &'static str,
    /// How serious.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Where.
    pub place: String,
    /// What.
    pub what: String,
    /// Why it matters, or why it doesn't.
    pub why: String,
    /// What to do, where there is something to do.
    pub remedy: Option<String>,
}
