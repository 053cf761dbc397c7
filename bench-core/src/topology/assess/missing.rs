//! What is not known, and which command tells it.

use crate::topology::model::{Gap, LinkLayer, NvLinkShown};
use crate::topology::words::count;

use super::Role;
use super::findings::View;
use super::tree::PciTree;

/// Everything that is missing: first what captures lack that were cut, then what was never captured.
pub(super) fn missing(view: &View<'_>) -> Vec<Gap> {
    let inventory = view.inventory;
    let mut gaps = inventory.gaps.clone();
    let mut need = |is_missing: bool, what: &str, command: &str| {
        if is_missing {
            gaps.push(Gap { what: what.to_owned(), command: command.to_owned() });
        }
    };
    let (gpus, hcas) = (&inventory.gpus, &inventory.hcas);
    let any = !gpus.is_empty() || !hcas.is_empty();
    need(any && gpus.is_empty(), "the GPUs, and with them rails in GPU order", "nvidia-smi topo -m");
    need(!gpus.is_empty() && hcas.is_empty(), "the HCAs", "ibstat; nvidia-smi topo -m");
    let distances = !gpus.is_empty() && !hcas.is_empty() && view.tree == PciTree::NotShown;
    need(distances, "the distances between GPUs and HCAs", "nvidia-smi topo -m");
    let ports = hcas.iter().flat_map(|hca| &hca.ports);
    // Addresses of RoCE matter where it may be used.
    let used = |role: Role| match role {
        Role::Compute | Role::Unknown => true,
        Role::Storage | Role::FrontEnd | Role::StorageOrFrontEnd => false,
    };
    let roce_ports = || {
        let ports =
            view.known_ports().filter(|(_, _, assessed)| used(assessed.role)).map(|(_, port, _)| port);
        ports.filter(|port| port.link_layer == Some(LinkLayer::Ethernet))
    };
    let unknown_state = hcas.iter().filter(|hca| hca.ports.is_empty()).count()
        + ports.clone().filter(|port| port.state.is_none()).count();
    let what = format!("state, rate and link layer of {}", count(unknown_state, "port"));
    need(unknown_state > 0, &what, "ibstat");
    let unknown_rate = ports.clone().filter(|port| port.is_up() == Some(true) && port.rate.is_none()).count();
    need(unknown_rate > 0, &format!("the rate of {}", count(unknown_rate, "active port")), "ibstat");
    let roce = roce_ports().any(|port| port.gids.len() <= 1);
    need(roce, "the GIDs of the RoCE ports", "show_gids");
    let netdevs =
        ports.clone().any(|port| port.netdev.is_none() && port.link_layer == Some(LinkLayer::Ethernet));
    need(netdevs, "the network devices of the RoCE ports", "ibdev2netdev");
    let nvlink_shown = inventory.matrix.as_ref().is_some_and(|matrix| matrix.nvlink == NvLinkShown::Shown);
    // Another vendor's accelerators are not asked for by NVIDIA's tools.
    let foreign = inventory.matrix.as_ref().is_some_and(|matrix| !matrix.unknown_words.is_empty());
    let nvlink_told = gpus.iter().any(|gpu| !gpu.nvlinks.is_empty() || gpu.nvlink_summary.is_some());
    need(
        !foreign && gpus.len() > 1 && !nvlink_shown && !nvlink_told,
        "NVLink between the GPUs",
        "nvidia-smi nvlink -s",
    );
    let unnamed = gpus.iter().filter(|gpu| gpu.name.is_none()).count();
    need(!foreign && unnamed > 0, &format!("the model of {}", count(unnamed, "GPU")), "nvidia-smi -L");
    gaps
}
