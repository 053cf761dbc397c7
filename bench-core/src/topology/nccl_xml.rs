//! A NCCL topology file (`NCCL_TOPO_FILE`) from an inventory.
//!
//! Written only if every fact that NCCL takes from it is known: the address and NUMA node of each GPU, and of each
//! compute HCA its name, address and place. A file that is wrong is worse than none, so there is no guessing.

use std::collections::BTreeMap;

use quick_xml::Writer;
use quick_xml::events::{BytesEnd, BytesStart, Event};
use thiserror::Error;

use super::assess::{Assessment, Role};
use super::model::{Distance, Gap, Gpu, Hca, HcaId, Inventory, LinkLayer, PciAddress};
use super::words::shortened;

/// Why no topology file can be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no NCCL topology file: {}", list(missing))]
pub struct MissingFacts {
    /// What is missing, and which command tells it.
    pub missing: Vec<Gap>,
}

fn list(missing: &[Gap]) -> String {
    let parts: Vec<String> = missing.iter().map(|gap| format!("{} ({})", gap.what, gap.command)).collect();
    format!("not known: {}", parts.join("; "))
}

/// The topology file.
///
/// Each compute HCA stands with its GPUs under one switch where it shares one with them (PIX or PXB), else under the
/// CPU of its NUMA node alone.
///
/// # Errors
/// [`MissingFacts`] with everything that is missing.
pub fn write(inventory: &Inventory, assessment: &Assessment) -> Result<String, MissingFacts> {
    let plan = Plan::new(inventory, assessment)?;
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to memory cannot fail.
    let written = plan.write(&mut writer);
    debug_assert!(written.is_ok());
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    text.push('\n');
    Ok(text)
}

/// What the file will hold.
struct Plan<'a> {
    /// By NUMA node: the groups below one switch each.
    cpus: BTreeMap<u32, Vec<Branch<'a>>>,
}

/// Devices below one switch, or a single device without one.
#[derive(Default)]
struct Branch<'a> {
    gpus: Vec<(&'a Gpu, PciAddress)>,
    hcas: Vec<(&'a Hca, PciAddress)>,
}

impl<'a> Plan<'a> {
    fn new(inventory: &'a Inventory, assessment: &Assessment) -> Result<Self, MissingFacts> {
        let compute: Vec<HcaId> = inventory
            .hca_ids()
            .filter(|id| assessment.ports.iter().any(|port| port.hca == *id && port.role == Role::Compute))
            .collect();
        check(inventory, assessment, &compute)?;
        let mut cpus: BTreeMap<u32, Vec<Branch<'a>>> = BTreeMap::new();
        let mut placed: Vec<u16> = Vec::new();
        for id in &compute {
            let hca = inventory.hca(*id);
            let mut branch =
                Branch { gpus: Vec::new(), hcas: hca.bus.map(|bus| (hca, bus)).into_iter().collect() };
            for pair in assessment.pairs.iter().filter(|pair| pair.hca == Some(*id)) {
                if pair.distance.is_some_and(Distance::is_below_switch) {
                    branch.gpus.extend(gpu(inventory, pair.gpu));
                    placed.push(pair.gpu);
                }
            }
            cpus.entry(hca.numa.unwrap_or(0)).or_default().push(branch);
        }
        for (gpu, bus) in inventory.gpus.iter().filter_map(|gpu| Some((gpu, gpu.bus?))) {
            if !placed.contains(&gpu.index) {
                let numa = gpu.numa.as_ref().and_then(|list| list.first()).unwrap_or(0);
                cpus.entry(numa).or_default().push(Branch { gpus: vec![(gpu, bus)], hcas: Vec::new() });
            }
        }
        Ok(Self { cpus })
    }

    fn write(&self, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
        open(writer, "system", &[("version", "1")])?;
        let mut switch = 0;
        for (numa, branches) in &self.cpus {
            open(writer, "cpu", &[("numaid", &numa.to_string())])?;
            for branch in branches {
                let shares = branch.gpus.len() + branch.hcas.len() > 1;
                if shares {
                    // NCCL wants an address for the switch; only that it is no other device's matters.
                    let address = format!("ffff:ff:{switch:02x}.0");
                    open(writer, "pci", &[("busid", &address), ("class", "0x060400")])?;
                    switch += 1;
                }
                branch.write(writer)?;
                if shares {
                    close(writer, "pci")?;
                }
            }
            close(writer, "cpu")?;
        }
        close(writer, "system")
    }
}

impl Branch<'_> {
    fn write(&self, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
        for (_, bus) in &self.gpus {
            empty(writer, "pci", &[("busid", &bus.to_string()), ("class", "0x030200")])?;
        }
        for (hca, bus) in &self.hcas {
            let ethernet = hca.ports.iter().any(|port| port.link_layer == Some(LinkLayer::Ethernet));
            let class = if ethernet { "0x020000" } else { "0x020700" };
            empty(writer, "pci", &[("busid", &bus.to_string()), ("class", class)])?;
        }
        Ok(())
    }
}

fn gpu(inventory: &Inventory, index: u16) -> Option<(&Gpu, PciAddress)> {
    let gpu = inventory.gpus.iter().find(|gpu| gpu.index == index)?;
    Some((gpu, gpu.bus?))
}

/// Whether every fact is known that the file needs.
fn check(inventory: &Inventory, assessment: &Assessment, compute: &[HcaId]) -> Result<(), MissingFacts> {
    let mut missing = Vec::new();
    let mut need = |names: Vec<&str>, what: &str, command: &str| {
        if !names.is_empty() {
            missing
                .push(Gap { what: format!("{what} of {}", shortened(&names)), command: command.to_owned() });
        }
    };
    let gpus = &inventory.gpus;
    let live = "run railmesh topo on the node";
    let labels = |lacks: &dyn Fn(&Gpu) -> bool| {
        gpus.iter().filter(|gpu| lacks(gpu)).map(|gpu| gpu.label.as_str()).collect()
    };
    need(
        labels(&|gpu| gpu.bus.is_none()),
        "the PCI address",
        "nvidia-smi --query-gpu=index,pci.bus_id --format=csv",
    );
    need(labels(&|gpu| gpu.numa.is_none()), "the NUMA node", "nvidia-smi topo -m");
    let unpaired = assessment.pairs.iter().filter(|pair| pair.hca.is_none());
    let unpaired: Vec<String> = unpaired.map(|pair| format!("GPU{}", pair.gpu)).collect();
    need(unpaired.iter().map(String::as_str).collect(), "the HCA", live);
    let titles = |lacks: &dyn Fn(&Hca) -> bool| {
        compute.iter().map(|id| inventory.hca(*id)).filter(|hca| lacks(hca)).map(Hca::title).collect()
    };
    need(titles(&|hca| hca.name.is_none()), "the name", "nvidia-smi topo -m, with its NIC legend");
    need(titles(&|hca| hca.bus.is_none()), "the PCI address", "ibdev2netdev -v");
    need(titles(&|hca| hca.numa.is_none()), "the NUMA node", live);
    if gpus.is_empty() {
        missing.push(Gap { what: "the GPUs".to_owned(), command: "nvidia-smi topo -m".to_owned() });
    }
    if compute.is_empty() {
        missing.push(Gap { what: "any HCA of the compute fabric".to_owned(), command: "ibstat".to_owned() });
    }
    if missing.is_empty() { Ok(()) } else { Err(MissingFacts { missing }) }
}

fn element<'a>(name: &'a str, attributes: &[(&str, &str)]) -> BytesStart<'a> {
    BytesStart::new(name).with_attributes(attributes.iter().copied())
}

fn open(writer: &mut Writer<Vec<u8>>, name: &str, attributes: &[(&str, &str)]) -> std::io::Result<()> {
    writer.write_event(Event::Start(element(name, attributes)))
}

fn empty(writer: &mut Writer<Vec<u8>>, name: &str, attributes: &[(&str, &str)]) -> std::io::Result<()> {
    writer.write_event(Event::Empty(element(name, attributes)))
}

fn close(writer: &mut Writer<Vec<u8>>, name: &str) -> std::io::Result<()> {
    writer.write_event(Event::End(BytesEnd::new(name)))
}
