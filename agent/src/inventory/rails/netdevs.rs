//! The interfaces of a node without RDMA devices.
//!
//! Those that are up, carry a global address and are no software bridges; the one that carries the default route is the
//! front-end and is left out where others remain.

use std::collections::BTreeMap;

use super::facts::{default_route_device, is_software, is_up, pci_address};
use super::hcas::owner_of;
use super::order::{self, Candidate};
use super::{Interface, Site, Taken, is_link_local};

pub(super) fn choose(site: &Site) -> Vec<Taken> {
    let mut by_device: BTreeMap<&str, &Interface> = BTreeMap::new();
    let usable = site.interfaces.iter().filter(|i| !i.addr.is_loopback() && !is_link_local(i.addr));
    for interface in usable.filter(|i| is_up(&site.root, &i.device) && !is_software(&site.root, &i.device)) {
        let known = by_device.entry(&interface.device).or_insert(interface);
        if known.addr.is_ipv6() && interface.addr.is_ipv4() {
            *known = interface;
        }
    }
    let front_end = default_route_device(&site.root);
    let others: Vec<&Interface> =
        by_device.values().filter(|i| Some(&i.device) != front_end.as_ref()).copied().collect();
    match (others.is_empty(), by_device.values().next()) {
        (false, _) => {
            let reason = "up, has an address, does not carry the default route";
            order::sorted(others.into_iter().map(|interface| candidate(site, interface, reason)).collect())
        }
        (true, Some(only)) => {
            vec![candidate(site, only, "the only interface that is up and has an address").taken]
        }
        (true, None) => Vec::new(),
    }
}

fn candidate(site: &Site, interface: &Interface, reason: &str) -> Candidate {
    Candidate {
        network: Some(interface.network()),
        bus: pci_address(&site.root, &interface.device),
        taken: Taken {
            device: interface.device.clone(),
            hca: owner_of(site, &interface.device),
            gpu: None,
            reason: format!("{}: {reason}", interface.device),
            interface: Some(interface.clone()),
        },
    }
}
