//! What the distances between GPUs and HCAs show: as a whole, and of one HCA.

use crate::topology::model::{Device, Distance, Gpu, HcaId, Inventory};

/// What the distances between GPUs and HCAs show as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PciTree {
    /// No distance between a GPU and an HCA is known.
    NotShown,
    /// Every one is the same, so they tell nothing: a hypervisor hides the tree.
    Hidden(Distance),
    /// Each device has a root complex of its own: every distance is SYS, as on Grace.
    Separate,
    /// They differ, or there is but one.
    Shown,
}

impl PciTree {
    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotShown => "not_shown",
            Self::Hidden(_) => "hidden",
            Self::Separate => "separate",
            Self::Shown => "shown",
        }
    }
}

/// Looks at all distances between GPUs and HCAs.
pub(super) fn tree(inventory: &Inventory) -> PciTree {
    let mut distances = Vec::new();
    for gpu in &inventory.gpus {
        for id in inventory.hca_ids() {
            distances.extend(distance(inventory, gpu.index, id));
        }
    }
    let Some(first) = distances.first().copied() else { return PciTree::NotShown };
    let ways = distances.len();
    let same = distances.iter().all(|distance| *distance == first);
    let (gpus, hcas) = (inventory.gpus.len(), in_tree(inventory));
    match first {
        Distance::Phb if same && ways > 1 => PciTree::Hidden(first),
        Distance::Sys if same && gpus > 1 && hcas > 1 && is_grace(inventory) => PciTree::Separate,
        Distance::Sys if same && gpus > 1 && hcas > 1 => PciTree::Hidden(first),
        Distance::Pix | Distance::Pxb | Distance::Phb | Distance::Node | Distance::Sys => PciTree::Shown,
    }
}

/// HCAs that have a distance to some GPU.
fn in_tree(inventory: &Inventory) -> usize {
    let known = |id: &HcaId| inventory.gpus.iter().any(|gpu| distance(inventory, gpu.index, *id).is_some());
    inventory.hca_ids().filter(known).count()
}

/// The distance of a GPU and an HCA.
pub(super) fn distance(inventory: &Inventory, gpu: u16, hca: HcaId) -> Option<Distance> {
    inventory.links.pcie(Device::Gpu(gpu), Device::Hca(hca))
}

/// Whether the machine is a Grace one: the memory of a GPU forms a NUMA node, or a name says so.
pub(super) fn is_grace(inventory: &Inventory) -> bool {
    let named = |gpu: &Gpu| {
        let name = gpu.name.as_deref().unwrap_or("");
        ["GB200", "GB300", "GH200", "GB10"].iter().any(|product| name.contains(product))
    };
    let cpu = inventory.platform.cpu.as_deref().unwrap_or("");
    inventory.gpus.iter().any(|gpu| gpu.memory_numa.is_some() || named(gpu))
        || cpu.contains("Neoverse-V2")
        || cpu.contains("Grace")
}

/// Where an HCA stands among the GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Locality {
    /// It shares switches with these GPUs.
    Near {
        /// The smallest distance.
        distance: Distance,
        /// The GPUs at that distance.
        gpus: Vec<u16>,
    },
    /// It shares a switch with no GPU.
    Far {
        /// The smallest distance.
        best: Distance,
    },
    /// It may share one with a GPU whose row is cut off.
    Open {
        /// The smallest distance that is known.
        best: Option<Distance>,
    },
    /// The distances tell nothing.
    NotShown,
}

/// Where this HCA stands.
pub(super) fn locality(inventory: &Inventory, tree: PciTree, hca: HcaId) -> Locality {
    let known: Vec<(u16, Option<Distance>)> =
        inventory.gpus.iter().map(|gpu| (gpu.index, distance(inventory, gpu.index, hca))).collect();
    let best = known.iter().filter_map(|(_, distance)| *distance).min();
    match (tree, best) {
        (_, Some(distance)) if distance.is_below_switch() => {
            let gpus = known.iter().filter(|(_, d)| *d == Some(distance)).map(|(gpu, _)| *gpu).collect();
            Locality::Near { distance, gpus }
        }
        (PciTree::Shown, Some(best)) if is_settled(&known, best) => Locality::Far { best },
        (PciTree::Shown, best) => match best {
            None if inventory.matrix.is_none() => Locality::NotShown,
            None | Some(_) => Locality::Open { best },
        },
        (PciTree::NotShown | PciTree::Hidden(_) | PciTree::Separate, _) => Locality::NotShown,
    }
}

/// Whether no GPU without a known distance can be nearer than `best`.
///
/// GPUs are numbered by address, so those of one NUMA node follow each other: once the last GPU that is known is on
/// another node than the HCA, the missing ones after it are on another node too.
fn is_settled(known: &[(u16, Option<Distance>)], best: Distance) -> bool {
    let missing_from = known.iter().position(|(_, distance)| distance.is_none());
    let Some(from) = missing_from else { return true };
    let all_after = known[from..].iter().all(|(_, distance)| distance.is_none());
    let last = from.checked_sub(1).and_then(|last| known[last].1);
    let same_node = matches!(best, Distance::Phb | Distance::Node);
    all_after && same_node && last == Some(Distance::Sys)
}
