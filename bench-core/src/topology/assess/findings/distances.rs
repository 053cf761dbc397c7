//! Distances between GPUs and HCAs that cost speed, and distances that tell nothing.

use crate::topology::assess::cards::{CardSign, cards};
use crate::topology::assess::tree::{Locality, PciTree, distance, is_grace, locality};
use crate::topology::assess::{Confidence, Finding, Role, Severity};
use crate::topology::model::{Device, Distance, HcaId, Row};
use crate::topology::words::count;

use super::{View, finding, listed};

pub(super) fn find(view: &View<'_>, found: &mut Vec<Finding>) {
    as_a_whole(view, found);
    if view.tree == PciTree::Shown {
        far_gpus(view, found);
    }
    shared(view, found);
    two_port_cards(view, found);
    one_numa_but_sys(view, found);
    grace_memory(view, found);
    unknown_links(view, found);
}

fn names(view: &View<'_>, ids: impl Iterator<Item = HcaId>) -> String {
    listed(ids.map(|id| view.inventory.hca(id).title().to_owned()).collect())
}

fn as_a_whole(view: &View<'_>, found: &mut Vec<Finding>) {
    let (gpus, hcas) = (view.inventory.gpus.len(), view.inventory.hcas.len());
    let sizes = format!("{} and {}", count(gpus, "GPU"), count(hcas, "HCA"));
    match view.tree {
        PciTree::Hidden(distance) => {
            let what = format!(
                "every distance between {sizes} is {distance}: the PCIe tree is hidden, as a hypervisor does"
            );
            let why = "which HCA is near to which GPU cannot be derived from it, and order would be a guess: NCCL guesses as well";
            found.push(
                finding("tree_hidden", Severity::Warn, Confidence::Likely, "this node", what, why).with_remedy(
                    "set NCCL_TOPO_FILE to the topology file that the provider of the machine publishes, or measure each pair of GPU and HCA",
                ),
            );
        }
        PciTree::Separate => {
            let what = format!("every distance between {sizes} is SYS");
            let why = "normal on Grace: each device has a root complex of its own; no fault, but the matrix gives no rails";
            found.push(
                finding("grace_all_sys", Severity::Info, Confidence::Likely, "this node", what, why)
                    .with_remedy("the NUMA nodes in sysfs tell which HCA belongs to which GPU: run railmesh topo on the node"),
            );
        }
        PciTree::NotShown | PciTree::Shown => {}
    }
}

/// GPUs whose HCA is not below a common switch.
fn far_gpus(view: &View<'_>, found: &mut Vec<Finding>) {
    let at = |wanted: &[Distance]| -> Vec<u16> {
        view.pairs
            .iter()
            .filter(|pair| pair.distance.is_some_and(|d| wanted.contains(&d)))
            .map(|pair| pair.gpu)
            .collect()
    };
    let across = at(&[Distance::Sys]);
    let bridge = at(&[Distance::Phb, Distance::Node]);
    let virtual_node = view.inventory.platform.hypervisor.is_some();
    if let Some(hca) = nowhere_near(view) {
        let what = format!("{hca} is SYS to every GPU, on whichever NUMA node");
        let why = "it is near to no GPU, so there is no locality to use; GPUDirect RDMA is not used by default at this distance";
        found.push(
            finding("no_locality", Severity::Warn, Confidence::Proven, hca, what, why)
                .with_remedy("expect less than line rate; another slot for the HCA is the cure"),
        );
    } else if !across.is_empty() {
        let what = format!("the nearest HCA of {} is across sockets (SYS)", view.gpus(&across));
        let why = "its traffic crosses the interconnect between the CPUs; NCCL does not use GPUDirect RDMA at this distance by default";
        found.push(
            finding("hca_across_sockets", Severity::Warn, Confidence::Proven, view.gpus(&across), what, why)
                .with_remedy(
                    "expect less than line rate from these GPUs; another slot for an HCA is the cure",
                ),
        );
    }
    if !bridge.is_empty() && !virtual_node {
        let what = format!("{} and the nearest HCA share no PCIe switch", view.gpus(&bridge));
        let why = "GPUDirect RDMA crosses a host bridge; NCCL by default may do without it at this distance";
        found.push(
            finding("no_common_switch", Severity::Warn, Confidence::Likely, view.gpus(&bridge), what, why)
                .with_remedy("compare with NCCL_NET_GDR_LEVEL=SYS; expect less than line rate"),
        );
    }
    unserved(view, found);
}

/// The only HCA, if GPUs of different NUMA nodes are all SYS from it.
fn nowhere_near(view: &View<'_>) -> Option<String> {
    let [hca] = view.inventory.hcas.as_slice() else { return None };
    let mut nodes: Vec<&str> =
        view.inventory.gpus.iter().filter_map(|gpu| Some(gpu.numa.as_ref()?.as_str())).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let all_far = view.pairs.iter().all(|pair| pair.distance == Some(Distance::Sys));
    (nodes.len() > 1 && all_far).then(|| hca.title().to_owned())
}

/// Some GPUs share a switch with an HCA and others do not.
fn unserved(view: &View<'_>, found: &mut Vec<Finding>) {
    let near = |gpu: u16| {
        let best = view.inventory.hca_ids().filter_map(|id| distance(view.inventory, gpu, id)).min();
        best.map(Distance::is_below_switch)
    };
    let without: Vec<u16> =
        view.pairs.iter().map(|pair| pair.gpu).filter(|gpu| near(*gpu) == Some(false)).collect();
    let with = view.pairs.iter().filter(|pair| near(pair.gpu) == Some(true)).count();
    if with > 0 && !without.is_empty() {
        let known = with + without.len();
        let what = format!(
            "{} of {known} GPUs share no switch with any HCA: {}",
            without.len(),
            view.gpus(&without)
        );
        let why = "there are fewer HCAs than GPUs; these GPUs reach the fabric through another's HCA";
        found.push(finding(
            "gpus_without_hca",
            Severity::Warn,
            Confidence::Likely,
            view.gpus(&without),
            what,
            why,
        ));
    }
}

/// One HCA for several GPUs, or more HCAs than GPUs.
fn shared(view: &View<'_>, found: &mut Vec<Finding>) {
    let mut used: Vec<HcaId> = view.pairs.iter().filter_map(|pair| pair.hca).collect();
    used.sort_unstable();
    used.dedup();
    let served = view.pairs.iter().filter(|pair| pair.hca.is_some()).count();
    if used.len() < served {
        let what = format!("{} share {}", count(served, "GPU"), count(used.len(), "HCA"));
        let why = "each GPU gets a part of the line rate only";
        found.push(finding(
            "shared_hcas",
            Severity::Info,
            Confidence::Likely,
            names(view, used.into_iter()),
            what,
            why,
        ));
    }
    let (gpus, hcas) = (view.inventory.gpus.len(), view.inventory.hcas.len());
    if matches!(view.tree, PciTree::Hidden(_)) && hcas > gpus {
        let what = format!("{} are visible for {}", count(hcas, "HCA"), count(gpus, "GPU"));
        let why = "this node may be a part of a larger host, and some of the HCAs those of other GPUs";
        found.push(finding(
            "more_hcas_than_gpus",
            Severity::Info,
            Confidence::Proven,
            "this node",
            what,
            why,
        ));
    }
}

fn two_port_cards(view: &View<'_>, found: &mut Vec<Finding>) {
    for card in cards(view.inventory) {
        let (sure, sign) = match card.why {
            CardSign::Guid => (Confidence::Proven, "one system image GUID"),
            CardSign::Address => (Confidence::Proven, "functions of one PCI address"),
            CardSign::Name => (Confidence::Likely, "names that stand for functions of one PCI address"),
            CardSign::Distance => {
                (Confidence::Assumed, "PIX to each other and to no GPU: one card, or a switch of their own")
            }
        };
        let place = names(view, card.hcas.iter().copied());
        let what = format!("likely ports of one card ({sign})");
        let why = "ports of one card share its PCIe slot; on nodes with rails such cards are the front-end or storage as a rule";
        found.push(finding("two_port_card", Severity::Info, sure, place, what, why));
    }
    let bonds: Vec<HcaId> = view.inventory.hca_ids().filter(|id| view.inventory.hca(*id).is_bond()).collect();
    if !bonds.is_empty() {
        let place = names(view, bonds.iter().copied());
        let what = "bonded devices";
        let why = "one RDMA device stands for the ports of a bond: its rate is that of all, one connection uses one of them";
        found.push(finding("bonded", Severity::Info, Confidence::Likely, place, what, why));
    }
    let undecided: Vec<HcaId> = view
        .inventory
        .hca_ids()
        .filter(|id| matches!(locality(view.inventory, view.tree, *id), Locality::Open { .. }))
        .filter(|id| view.ports.iter().any(|port| port.hca == *id && port.role == Role::Unknown))
        .collect();
    if !undecided.is_empty() {
        let place = names(view, undecided.into_iter());
        let what = format!("whether {place} are rails cannot be told: rows of GPUs are missing");
        let why = "a rail is an HCA that is near to a GPU";
        found.push(
            finding("not_proven_a_rail", Severity::Info, Confidence::Unknown, place, what, why)
                .with_remedy("capture nvidia-smi topo -m again, whole"),
        );
    }
}

/// SYS between GPUs of one NUMA node: no machine is built so.
fn one_numa_but_sys(view: &View<'_>, found: &mut Vec<Finding>) {
    let numa = |index: u16| {
        let gpu = view.inventory.gpus.iter().find(|gpu| gpu.index == index && gpu.row == Row::Whole)?;
        gpu.numa.as_ref()?.only()
    };
    let odd = view.inventory.links.iter().find_map(|(a, b, link)| match (a, b) {
        (Device::Gpu(a), Device::Gpu(b)) => {
            let same = numa(a).is_some() && numa(a) == numa(b);
            (same && link.pcie == Some(Distance::Sys)).then_some((a, b))
        }
        (Device::Gpu(_) | Device::Hca(_), Device::Gpu(_) | Device::Hca(_)) => None,
    });
    if let Some((a, b)) = odd {
        let what = format!("{} are of one NUMA node, and yet SYS apart", view.gpus(&[a, b]));
        let why = "a matrix shows this in virtual machines and under passthrough; NVLink between the GPUs is then not seen in it either";
        found.push(
            finding("sys_within_numa", Severity::Info, Confidence::Assumed, view.gpus(&[a, b]), what, why)
                .with_remedy("nvidia-smi nvlink -s tells whether NVLink is up"),
        );
    }
}

/// GPU NUMA ID and CPUs that fit Grace.
fn grace_memory(view: &View<'_>, found: &mut Vec<Finding>) {
    let gpus = &view.inventory.gpus;
    let column = view.inventory.matrix.as_ref().is_some_and(|matrix| matrix.has_memory_numa);
    let fits = !gpus.is_empty()
        && gpus.iter().all(|gpu| {
            let cpus = gpu.cpus.as_ref().and_then(|list| list.as_str().split_once('-'));
            let ends =
                cpus.and_then(|(first, last)| Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?)));
            ends.is_some_and(|(first, last)| {
                last.checked_sub(first) == Some(GRACE_CPUS - 1) && first % GRACE_CPUS == 0
            })
        });
    let exposed = gpus.iter().any(|gpu| gpu.memory_numa.is_some());
    if column && !exposed && (is_grace(view.inventory) || fits) {
        let what = "the CPUs come in ranges of 72, as those of Grace do, and GPU NUMA ID is N/A";
        let why = "valid: the driver does not expose the GPUs' memory as NUMA nodes here";
        found.push(finding(
            "grace_memory_not_numa",
            Severity::Info,
            Confidence::Assumed,
            "this node",
            what,
            why,
        ));
    }
    let mut nodes: Vec<u32> = gpus.iter().filter_map(|gpu| gpu.numa.as_ref()?.only()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.len() > 2 || nodes.iter().any(|node| *node > 1) {
        let list: Vec<String> = nodes.iter().map(u32::to_string).collect();
        let what = format!("the GPUs are near to NUMA nodes {}", list.join(", "));
        let why = "normal where a socket is divided into several NUMA nodes (NPS, SNC) or the platform numbers them with gaps (POWER)";
        found.push(finding("divided_sockets", Severity::Info, Confidence::Likely, "this node", what, why));
    }
}

/// Words of a matrix that are not NVIDIA's.
fn unknown_links(view: &View<'_>, found: &mut Vec<Finding>) {
    let Some(matrix) = &view.inventory.matrix else { return };
    for (word, meaning) in &matrix.unknown_words {
        let meaning = meaning.as_deref().map_or_else(String::new, |meaning| format!(" ({meaning})"));
        let what = format!("link type {word}{meaning} is not supported");
        let why = "likely another vendor's accelerators: nothing is concluded from it, in particular nothing on NVLink";
        found.push(finding("unknown_link", Severity::Warn, Confidence::Proven, "the matrix", what, why));
    }
}

/// CPUs of a Grace socket.
const GRACE_CPUS: u32 = 72;
