//! NCCL topology files (`NCCL_TOPO_FILE`, `NCCL_TOPO_DUMP_FILE`).

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

use super::Lines;
use super::scan;
use crate::topology::model::{Device, HcaFact, IdList, Inventory, PciAddress, PciPath};
use crate::units::BitsPerSecond;

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    let line = lines.get(at).trim_start();
    line.starts_with("<system ") || line.starts_with("<system>")
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let end = end_of_file(lines, at);
    let mut text = String::new();
    for here in at..end {
        text.push_str(lines.get(here));
        text.push('\n');
    }
    let mut tree = Tree::default();
    let mut reader = Reader::from_str(&text);
    let whole = loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                if tree.open.len() >= MAX_DEPTH {
                    break false;
                }
                *seen = true;
                tree.element(inventory, &element);
                tree.open.push(Element::of(&element));
            }
            Ok(Event::Empty(element)) => {
                *seen = true;
                tree.element(inventory, &element);
            }
            Ok(Event::End(_)) => {
                tree.open.pop();
                if tree.open.is_empty() {
                    break true;
                }
            }
            Ok(Event::Eof) => break tree.open.is_empty(),
            Ok(_) => {}
            Err(_) => break false,
        }
    };
    if !whole {
        inventory.note_gap("the NCCL topology file is cut or damaged".to_owned(), COMMAND);
    }
    tree.switches(inventory);
    end
}

/// The line after the last of the file. Where that is cut, something without tags follows at some time.
fn end_of_file(lines: Lines<'_>, at: usize) -> usize {
    for here in at..lines.len() {
        let line = lines.get(here);
        if line.contains("</system>") {
            return here + 1;
        }
        if !line.contains('<') && !line.trim().is_empty() {
            return here;
        }
    }
    lines.len()
}

/// What is open at a place of the file.
enum Element {
    Cpu { numa: Option<u32> },
    Pci { bus: Option<PciAddress> },
    Gpu { index: Option<u16> },
    Other,
}

impl Element {
    fn of(element: &BytesStart<'_>) -> Self {
        match element.name().as_ref() {
            "cpu" => Self::Cpu { numa: attribute(element, "numaid").and_then(|value| value.parse().ok()) },
            "pci" => Self::Pci { bus: attribute(element, "busid").and_then(|value| scan::bus(&value)) },
            "gpu" => Self::Gpu { index: attribute(element, "dev").and_then(|value| value.parse().ok()) },
            _ => Self::Other,
        }
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    (value.len() <= MAX_VALUE).then(|| value.into_owned())
}

/// The way from the root to the current place.
#[derive(Default)]
struct Tree {
    open: Vec<Element>,
    /// NVLinks of each GPU to NVSwitches.
    switch_links: BTreeMap<u16, u16>,
    /// NVLinks from a GPU to another's address.
    peer_links: Vec<(u16, PciAddress, u16)>,
}

impl Tree {
    fn element(&mut self, inventory: &mut Inventory, element: &BytesStart<'_>) {
        match element.name().as_ref() {
            "gpu" => self.gpu(inventory, element),
            "net" => self.net(inventory, element),
            "nvlink" => self.nvlink(element),
            _ => {}
        }
    }

    fn numa(&self) -> Option<u32> {
        self.open.iter().rev().find_map(|element| match element {
            Element::Cpu { numa } => *numa,
            Element::Pci { .. } | Element::Gpu { .. } | Element::Other => None,
        })
    }

    /// The device's own address and the bridges above it. NCCL has no host bridges: a CPU stands for all of its own.
    fn place(&self) -> Option<(PciAddress, PciPath)> {
        let mut bridges: Vec<PciAddress> = Vec::new();
        for element in &self.open {
            match element {
                Element::Pci { bus } => bridges.push((*bus)?),
                Element::Cpu { .. } | Element::Gpu { .. } | Element::Other => {}
            }
        }
        let bus = bridges.pop()?;
        let cpu = self.numa().map_or_else(|| "cpu".to_owned(), |numa| format!("cpu{numa}"));
        Some((bus, PciPath { host_bridge: cpu, bridges }))
    }

    fn gpu(&self, inventory: &mut Inventory, element: &BytesStart<'_>) {
        let Some(index) = attribute(element, "dev").and_then(|value| value.parse().ok()) else { return };
        let place = self.place();
        let numa = self.numa().and_then(|numa| IdList::parse(&numa.to_string()));
        let Some((gpu, mut learn)) = inventory.learn_gpu(index) else { return };
        if let Some((bus, path)) = place {
            gpu.learn_bus(bus, &mut learn);
            gpu.path.get_or_insert(path);
        }
        if let Some(numa) = numa {
            gpu.numa.get_or_insert(numa);
        }
    }

    fn net(&self, inventory: &mut Inventory, element: &BytesStart<'_>) {
        let Some(name) = attribute(element, "name").filter(|name| scan::is_name(name)) else { return };
        let Some(id) = inventory.hca_named(&name) else { return };
        let port = attribute(element, "port").and_then(|value| value.parse().ok()).unwrap_or(1);
        // The unit is Mb/s.
        let rate =
            attribute(element, "speed").and_then(|value| value.parse::<u32>().ok()).filter(|rate| *rate > 0);
        if let Some(rate) = rate {
            let rate = BitsPerSecond(f64::from(rate) * 1e6);
            inventory.learn_port(id, port, "rate", rate, |port| &mut port.rate);
        }
        let numa = self.numa();
        let place = self.place();
        let (hca, mut learn) = inventory.learn_hca(id);
        if let Some((bus, path)) = place {
            learn.fact(&mut hca.bus, bus, &format!("{name}: PCI address"));
            hca.path.get_or_insert(path);
        }
        hca.numa = hca.numa.or(numa);
        if let Some(guid) = attribute(element, "guid").filter(|guid| guid.trim_start_matches("0x") != "0") {
            hca.learn(HcaFact::SystemGuid, &guid, &mut learn);
        }
    }

    fn nvlink(&mut self, element: &BytesStart<'_>) {
        let Some(Element::Gpu { index: Some(index) }) = self.open.last() else { return };
        let count: u16 = attribute(element, "count").and_then(|value| value.parse().ok()).unwrap_or(0);
        let class = attribute(element, "tclass").unwrap_or_default();
        // 0x0680 is a bridge of another kind: an NVSwitch.
        if class.starts_with("0x0680") {
            let links = self.switch_links.entry(*index).or_default();
            *links = links.saturating_add(count);
        } else if let Some(target) = attribute(element, "target").and_then(|value| scan::bus(&value))
            && self.peer_links.len() < MAX_LINKS
        {
            self.peer_links.push((*index, target, count));
        }
    }

    /// NVLinks between GPUs, once all GPUs are known.
    fn switches(&self, inventory: &mut Inventory) {
        for (index, target, count) in &self.peer_links {
            let other = inventory.gpu_at_bus(*target).map(|gpu| gpu.index);
            if let Some(other) = other.filter(|other| other != index) {
                inventory.links.entry(Device::Gpu(*index), Device::Gpu(other)).nvlinks.get_or_insert(*count);
            }
        }
        let all: Vec<(u16, u16)> = self.switch_links.iter().map(|(gpu, links)| (*gpu, *links)).collect();
        for (at, (a, links)) in all.iter().enumerate() {
            for (b, others) in &all[at + 1..] {
                let link = inventory.links.entry(Device::Gpu(*a), Device::Gpu(*b));
                let fewer = (*links).min(*others);
                link.nvlinks.get_or_insert(fewer);
            }
        }
    }
}

/// What writes such a file.
const COMMAND: &str = "NCCL_TOPO_DUMP_FILE=FILE with any NCCL program";
/// Elements within each other; a tree of switches has about 10.
const MAX_DEPTH: usize = 64;
/// Bytes of an attribute that are read.
const MAX_VALUE: usize = 256;
/// NVLinks of a file that are read.
const MAX_LINKS: usize = 4096;
