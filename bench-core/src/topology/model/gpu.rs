//! A GPU as a capture or the kernel shows it.

use super::{Learn, PciAddress};

/// A GPU. Every fact may be absent: absent is not false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number among the GPUs of the node, as `nvidia-smi` counts.
    pub index: u16,
    /// What a matrix calls it, such as `GPU0`.
    pub label: String,
    /// The product's name.
    pub name: Option<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its PCI address.
    pub bus: Option<PciAddress>,
    /// The bridges above it, outermost first, without the device itself; begins with the host bridge.
    pub path: Option<PciPath>,
    /// NUMA nodes that are near to it: one as a rule, a list on Grace.
    pub numa: Option<IdList>,
    /// CPUs that are near to it.
    pub cpus: Option<IdList>,
    /// The NUMA node that its memory forms, where it forms one (Grace).
    pub memory_numa: Option<u32>,
    /// Its NVLinks, where their state was shown.
    pub nvlinks: Vec<NvLink>,
    /// What the tool said of all its NVLinks in one sentence, without naming them.
    pub nvlink_summary: Option<NvLinkSummary>,
    /// State and status of its registration with the NVLink fabric, as written.
    pub fabric: Option<String>,
    /// How much of its row in the matrix there is.
    pub row: Row,
}

impl Gpu {
    /// A GPU of which only the number is known.
    pub fn new(index: u16) -> Self {
        Self {
            index,
            label: format!("GPU{index}"),
            name: None,
            uuid: None,
            bus: None,
            path: None,
            numa: None,
            cpus: None,
            memory_numa: None,
            nvlinks: Vec::new(),
            nvlink_summary: None,
            fabric: None,
            row: Row::NoMatrix,
        }
    }

    /// Learns its name.
    pub fn learn_name(&mut self, name: &str, learn: &mut Learn<'_>) {
        let what = format!("{}: name", self.label);
        learn.fact(&mut self.name, name.to_owned(), &what);
    }

    /// Learns its PCI address.
    pub fn learn_bus(&mut self, bus: PciAddress, learn: &mut Learn<'_>) {
        let what = format!("{}: PCI address", self.label);
        learn.fact(&mut self.bus, bus, &what);
    }

    /// Learns the state of one NVLink; a second word for the same link is a contradiction.
    pub fn learn_nvlink(&mut self, link: NvLink, learn: &mut Learn<'_>) {
        match self.nvlinks.iter().find(|known| known.number == link.number) {
            Some(known) if known.active == link.active => {}
            Some(_) => learn.contradiction(&format!("{}: state of NVLink {}", self.label, link.number)),
            None if self.nvlinks.len() < MAX_NVLINKS => self.nvlinks.push(link),
            None => {}
        }
    }
}

/// What a tool says of all NVLinks of a GPU at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvLinkSummary {
    /// Every one is inactive.
    AllInactive,
    /// The model has none.
    Unsupported,
}

/// One NVLink of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvLink {
    /// Its number.
    pub number: u16,
    /// Whether it is up.
    pub active: LinkActivity,
}

/// Whether an NVLink is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkActivity {
    /// Up.
    Active,
    /// Down, or nothing at its other end.
    Inactive,
}

/// How much of a device's row a matrix has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// No matrix was read, or the device is not in it.
    NoMatrix,
    /// The matrix names the device in its header but has no row for it.
    Missing,
    /// The row ends early.
    Cut,
    /// The whole row.
    Whole,
}

/// The way from the host bridge to a device in the PCIe tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciPath {
    /// The host bridge, such as `pci0000:15`.
    pub host_bridge: String,
    /// The bridges below it, outermost first.
    pub bridges: Vec<PciAddress>,
}

/// A list of numbers and ranges as the kernel writes it, such as `0-55,112-167`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdList(String);

impl IdList {
    /// Reads a list; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let part = |part: &str| match part.split_once('-') {
            Some((first, last)) => number(first) && number(last),
            None => number(part),
        };
        let fits = text.len() <= MAX_LIST && text.split(',').all(part);
        fits.then(|| Self(text.to_owned()))
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first number.
    pub fn first(&self) -> Option<u32> {
        self.0.split(['-', ',']).next()?.parse().ok()
    }

    /// The number, if the list has just one.
    pub fn only(&self) -> Option<u32> {
        self.0.parse().ok()
    }
}

impl std::fmt::Display for IdList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Most NVLinks of a GPU that are kept; the largest has 18.
const MAX_NVLINKS: usize = 64;
/// Longest list that is read: 1,024 CPUs one by one.
const MAX_LIST: usize = 8192;
