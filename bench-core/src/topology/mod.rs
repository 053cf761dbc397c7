//! The node's topology: what is known of its GPUs and HCAs, what each port is for, and which HCA serves which GPU.
//!
//! ```text
//!  text captures ──import──▶ ┌───────────┐
//!                            │ Inventory │ ──assess──▶ Assessment ──▶ document (JSON), text (table), nccl_xml
//!  sysfs (the agent) ──────▶ └───────────┘             roles, pairs, findings, what is missing
//! ```
//! An inventory holds only what a source said. The assessment draws conclusions, each with its reason and how sure it
//! is. The rules are described in docs/topology.md.

mod assess;
mod document;
mod import;
mod model;
pub mod nccl_xml;
pub mod text;
mod words;

#[cfg(test)]
mod tests;

pub use assess::{Assessment, Confidence, Finding, Pairing, PciTree, PortAssessment, Role, Severity, assess};
pub use document::{
    DistanceEntry, FabricLinkEntry, FindingEntry, GidEntry, GpuEntry, HcaEntry, MissingEntry, NvLinkEntry,
    PairEntry, PlatformEntry, PortEntry, RoleEntry, SCHEMA, SourceEntry, TopologyDocument,
};
pub use import::import;
pub use model::{
    Acs, CaptureNote, Cell, Device, Distance, FabricLink, FabricNode, Function, Gap, Gid, Gpu, Hca, HcaId,
    IdList, Inventory, Learn, Link, LinkActivity, LinkLayer, Links, Matrix, NetdevState, NvLink, NvLinkShown,
    NvLinkSummary, PciAddress, PciPath, PhysicalState, Platform, Port, PortState, Row,
};
