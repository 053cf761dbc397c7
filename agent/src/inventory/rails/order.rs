//! The order of rails where no GPU gives one.
//!
//! It must come out the same on every node, whatever their devices are called. Where each rail has a network of its
//! own, the networks' order does that. Else the PCI addresses do on nodes that are built alike; the names are last.

use std::collections::BTreeSet;

use bench_core::node::Network;
use bench_core::topology::PciAddress;

use super::Taken;

/// Something that will be a rail.
pub(super) struct Candidate {
    pub(super) taken: Taken,
    pub(super) network: Option<Network>,
    pub(super) bus: Option<PciAddress>,
}

/// In rail order; with several, each reason says what the order goes by.
pub(super) fn sorted(mut candidates: Vec<Candidate>) -> Vec<Taken> {
    let networks: BTreeSet<Network> = candidates.iter().filter_map(|c| c.network).collect();
    let buses: BTreeSet<PciAddress> = candidates.iter().filter_map(|c| c.bus).collect();
    let by = if networks.len() == candidates.len() {
        candidates.sort_by_key(|c| c.network);
        "numbered by network"
    } else if buses.len() == candidates.len() {
        candidates.sort_by_key(|c| c.bus);
        "numbered by PCI address, which is assumed to agree between nodes"
    } else {
        candidates.sort_by(|a, b| a.taken.device.cmp(&b.taken.device));
        "numbered by name, which is assumed to agree between nodes"
    };
    let several = candidates.len() > 1;
    let reasoned = |mut taken: Taken| {
        if several {
            taken.reason.push_str(&format!("; {by}"));
        }
        taken
    };
    candidates.into_iter().map(|c| reasoned(c.taken)).collect()
}
