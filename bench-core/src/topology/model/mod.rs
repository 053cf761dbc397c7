//! The inventory of one node: what captures or the kernel say of its GPUs, HCAs and the ways between them.
//!
//! Facts are learned one after another from any number of sources. The first source of a fact stays; a later one that
//! says something else is a contradiction, which is kept and told: it may be a capture of another node.

mod gpu;
mod hca;
mod link;
mod path;
mod pci;

use std::collections::BTreeMap;

use crate::units::BitsPerSecond;

pub use gpu::{Gpu, IdList, LinkActivity, NvLink, NvLinkSummary, PciPath, Row};
pub(crate) use hca::HcaFact;
pub use hca::{Function, Gid, Hca, LinkLayer, NetdevState, PhysicalState, Port, PortState};
pub use link::{Cell, Distance, Link};
pub use pci::PciAddress;

/// Everything that is known of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The GPUs by index.
    pub gpus: Vec<Gpu>,
    /// The HCAs in the order in which they were met.
    pub hcas: Vec<Hca>,
    /// The ways between devices.
    pub links: Links,
    /// What the matrix of distances shows, where one was read.
    pub matrix: Option<Matrix>,
    /// What is known of the machine.
    pub platform: Platform,
    /// Access control of PCIe bridges.
    pub acs: Vec<Acs>,
    /// Links of the fabric beyond this node.
    pub fabric: Vec<FabricLink>,
    /// What was read, in order.
    pub captures: Vec<CaptureNote>,
    /// What a capture should hold and does not, since it is cut.
    pub gaps: Vec<Gap>,
    /// Facts on which captures do not agree.
    pub contradictions: Vec<String>,
}

impl Inventory {
    /// The GPU of that number, made if it was not known; `None` above `MAX_GPUS`.
    pub fn gpu_mut(&mut self, index: u16) -> Option<&mut Gpu> {
        if index >= MAX_GPUS {
            return None;
        }
        let at = match self.gpus.binary_search_by_key(&index, |gpu| gpu.index) {
            Ok(at) => at,
            Err(at) => {
                self.gpus.insert(at, Gpu::new(index));
                at
            }
        };
        self.gpus.get_mut(at)
    }

    /// The GPU with that address, if one is known.
    pub fn gpu_at_bus(&self, bus: PciAddress) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| gpu.bus == Some(bus))
    }

    /// The HCA of that name, made if it was not known; `None` above `MAX_HCAS` and for what is no name.
    pub fn hca_named(&mut self, name: &str) -> Option<HcaId> {
        if name.is_empty() || name.len() > MAX_NAME {
            return None;
        }
        let known = self.hcas.iter().position(|hca| hca.name.as_deref() == Some(name));
        match known {
            Some(at) => Some(HcaId(at)),
            None => self.new_hca(Hca::new(Some(name.to_owned()), None)),
        }
    }

    /// An HCA that a matrix only numbers.
    pub fn hca_labelled(&mut self, label: &str) -> Option<HcaId> {
        let known = self.hcas.iter().position(|hca| hca.label.as_deref() == Some(label));
        match known {
            Some(at) => Some(HcaId(at)),
            None => self.new_hca(Hca::new(None, Some(label.to_owned()))),
        }
    }

    /// An HCA whose name a cut capture does not show.
    pub fn hca_unnamed(&mut self) -> Option<HcaId> {
        self.new_hca(Hca::new(None, None))
    }

    fn new_hca(&mut self, hca: Hca) -> Option<HcaId> {
        if self.hcas.len() >= MAX_HCAS {
            return None;
        }
        self.hcas.push(hca);
        Some(HcaId(self.hcas.len() - 1))
    }

    /// The HCA.
    pub fn hca(&self, id: HcaId) -> &Hca {
        &self.hcas[id.0]
    }

    /// The HCA, to learn of it.
    pub fn hca_mut(&mut self, id: HcaId) -> &mut Hca {
        &mut self.hcas[id.0]
    }

    /// Every HCA with its id.
    pub fn hca_ids(&self) -> impl Iterator<Item = HcaId> + use<> {
        (0..self.hcas.len()).map(HcaId)
    }

    /// The HCA and the list of contradictions, for learning.
    pub(crate) fn learn_hca(&mut self, id: HcaId) -> (&mut Hca, Learn<'_>) {
        (&mut self.hcas[id.0], Learn { contradictions: &mut self.contradictions })
    }

    /// The GPU and the list of contradictions, for learning.
    pub(crate) fn learn_gpu(&mut self, index: u16) -> Option<(&mut Gpu, Learn<'_>)> {
        self.gpu_mut(index)?;
        let at = self.gpus.binary_search_by_key(&index, |gpu| gpu.index).ok()?;
        Some((&mut self.gpus[at], Learn { contradictions: &mut self.contradictions }))
    }

    /// Learns a fact of a port: `pick` finds its place.
    pub(crate) fn learn_port<T: PartialEq>(
        &mut self,
        id: HcaId,
        number: u16,
        what: &str,
        value: T,
        pick: fn(&mut Port) -> &mut Option<T>,
    ) {
        let title = self.hcas[id.0].title().to_owned();
        let Some(port) = self.hcas[id.0].port_mut(number) else { return };
        let mut learn = Learn { contradictions: &mut self.contradictions };
        learn.fact(pick(port), value, &format!("{title} port {number}: {what}"));
    }

    /// Notes that a capture of this kind was read.
    pub(crate) fn note_capture(&mut self, command: &str, source: &str) {
        let note = CaptureNote { command: command.to_owned(), source: source.to_owned() };
        if self.captures.len() < MAX_NOTES && !self.captures.contains(&note) {
            self.captures.push(note);
        }
    }

    /// Notes what a cut capture lacks.
    pub(crate) fn note_gap(&mut self, what: String, command: &str) {
        let gap = Gap { what, command: command.to_owned() };
        if self.gaps.len() < MAX_NOTES && !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}

/// Which HCA of an [`Inventory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HcaId(pub usize);

/// A device at one end of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// A GPU by index.
    Gpu(u16),
    /// An HCA.
    Hca(HcaId),
}

/// The ways between devices, without direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(BTreeMap<(Device, Device), Link>);

impl Links {
    /// What is known of the way between two devices.
    pub fn get(&self, a: Device, b: Device) -> Option<&Link> {
        self.0.get(&(a.min(b), a.max(b)))
    }

    /// The PCIe distance between two devices.
    pub fn pcie(&self, a: Device, b: Device) -> Option<Distance> {
        self.get(a, b)?.pcie
    }

    /// The same, to learn of it.
    pub fn entry(&mut self, a: Device, b: Device) -> &mut Link {
        self.0.entry((a.min(b), a.max(b))).or_default()
    }

    /// Every way that is known.
    pub fn iter(&self) -> impl Iterator<Item = (Device, Device, &Link)> {
        self.0.iter().map(|((a, b), link)| (*a, *b, link))
    }
}

/// What the matrix of distances shows as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Whether this form of the matrix shows NVLink at all.
    pub nvlink: NvLinkShown,
    /// Words of cells that are not known, with what its legend says of them.
    pub unknown_words: BTreeMap<String, Option<String>>,
    /// GPU NUMA ID was a column.
    pub has_memory_numa: bool,
}

/// Whether a matrix shows NVLink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvLinkShown {
    /// Cells or the legend name NVLink: a pair without it has none that the driver uses.
    Shown,
    /// The form without NVLink (`-mp`), or its legend is missing: nothing is known.
    Unknown,
}

/// What is known of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// The hypervisor, if this is a virtual machine.
    pub hypervisor: Option<String>,
    /// The CPU's model.
    pub cpu: Option<String>,
    /// This process sees a container's view.
    pub container: Option<String>,
}

/// Access control services of a PCIe bridge or device, from `ACSCtl` of `lspci -vvv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acs {
    /// Where; `None` where a capture holds the line alone.
    pub address: Option<PciAddress>,
    /// What the tool calls it.
    pub title: String,
    /// Peer-to-peer requests or completions are sent up to the root complex.
    pub redirects: bool,
}

/// One link of the fabric, from `iblinkinfo`.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricLink {
    /// The device at this end.
    pub local: String,
    /// What it is.
    pub local_kind: FabricNode,
    /// Its port.
    pub port: u16,
    /// Lanes, such as `4X`.
    pub lanes: String,
    /// Rate of all lanes.
    pub rate: BitsPerSecond,
    /// The logical state, as written.
    pub state: String,
    /// The device at the other end, where one is known.
    pub remote: Option<String>,
    /// What the tool says the link could be, as written.
    pub could_be: Option<String>,
}

/// What a device of the fabric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricNode {
    /// A channel adapter of a node.
    Adapter,
    /// A switch's own adapter for reductions in the network.
    Aggregation,
    /// A switch.
    Switch,
}

/// A capture that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureNote {
    /// The command that writes such a capture.
    pub command: String,
    /// Where it was read from.
    pub source: String,
}

/// Something that is not known, and what would tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What is missing.
    pub what: String,
    /// The command that tells it.
    pub command: String,
}

/// The pen that learns facts and notes contradictions.
#[derive(Debug)]
pub struct Learn<'a> {
    contradictions: &'a mut Vec<String>,
}

impl Learn<'_> {
    /// Fills an empty place; notes a contradiction if it holds something else.
    pub fn fact<T: PartialEq>(&mut self, slot: &mut Option<T>, value: T, what: &str) {
        match slot {
            Some(known) if *known == value => {}
            Some(_) => self.contradiction(what),
            None => *slot = Some(value),
        }
    }

    /// Notes a contradiction.
    pub fn contradiction(&mut self, what: &str) {
        if self.contradictions.len() < MAX_NOTES && !self.contradictions.iter().any(|known| known == what) {
            self.contradictions.push(what.to_owned());
        }
    }
}

/// GPUs from this number on are not read: no node has so many.
const MAX_GPUS: u16 = 256;
/// Most HCAs of a node that are kept: virtual functions included, no node has so many.
const MAX_HCAS: usize = 512;
/// Longest name of a device; the kernel's own limit for RDMA devices.
const MAX_NAME: usize = 64;
/// Most notes of a kind that are kept.
const MAX_NOTES: usize = 256;
