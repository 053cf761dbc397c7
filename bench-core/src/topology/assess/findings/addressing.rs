//! GIDs, and which HCAs a collective should be told to use.

use std::collections::BTreeMap;

use crate::topology::assess::groups::guess_layer;
use crate::topology::assess::{Confidence, Finding, Role, Severity};
use crate::topology::model::{Gid, LinkLayer, Port};

use super::{View, finding, listed, place};

pub(super) fn find(view: &View<'_>, found: &mut Vec<Finding>) {
    link_local(view, found);
    gid_index(view, found);
    small_mtu(view, found);
    mixed(view, found);
}

fn layer(port: &Port) -> Option<LinkLayer> {
    port.link_layer.or_else(|| guess_layer(port))
}

/// A RoCE port whose GIDs are all link-local. One GID alone may be all that a tool shows.
fn link_local(view: &View<'_>, found: &mut Vec<Finding>) {
    for (hca, port, _) in view.known_ports() {
        let told = port.gids.iter().any(|gid| gid.version.is_some()) || port.gids.len() > 1;
        let local = !port.gids.is_empty() && port.gids.iter().all(Gid::is_link_local);
        if told && local && layer(port) == Some(LinkLayer::Ethernet) {
            let netdev = port.netdev.as_deref().unwrap_or("its network device");
            let what = format!("every GID is link-local (fe80::): {netdev} has no IP address");
            let why = "such a GID reaches its own link only and is not routed; connections fail or time out";
            let found_one =
                finding("gid_link_local", Severity::Warn, Confidence::Proven, place(hca, port), what, why);
            found.push(
                found_one.with_remedy(format!("give {netdev} an address, if this port is to carry RoCE")),
            );
        }
    }
    let ib: Vec<String> = view
        .known_ports()
        .filter(|(_, port, _)| port.gids.iter().any(|gid| gid.version.is_some()))
        .filter(|(_, port, _)| layer(port) == Some(LinkLayer::InfiniBand))
        .map(|(hca, port, _)| place(hca, port))
        .collect();
    let roce = view
        .known_ports()
        .any(|(_, port, _)| !port.gids.is_empty() && layer(port) == Some(LinkLayer::Ethernet));
    if roce && !ib.is_empty() {
        let what = "an InfiniBand port among RoCE ports: the GID index plays no part there";
        let why = "InfiniBand addresses by LID";
        found.push(finding(
            "gid_index_irrelevant",
            Severity::Info,
            Confidence::Likely,
            listed(ib),
            what,
            why,
        ));
    }
}

/// The index of the GID that RoCE should use: version 2 with an IPv4 address.
fn gid_index(view: &View<'_>, found: &mut Vec<Finding>) {
    let mut by_index: BTreeMap<(u16, Confidence), Vec<String>> = BTreeMap::new();
    for (hca, port, _) in view.known_ports().filter(|(_, port, _)| layer(port) == Some(LinkLayer::Ethernet)) {
        let with_ip = || port.gids.iter().filter(|gid| gid.ipv4.is_some());
        let v2 = with_ip().find(|gid| gid.version.as_deref() == Some("v2"));
        let best = match v2 {
            Some(gid) => Some((gid.index, Confidence::Likely)),
            None => with_ip().find(|gid| gid.version.is_none()).map(|gid| (gid.index, Confidence::Assumed)),
        };
        if let Some(best) = best {
            by_index.entry(best).or_default().push(place(hca, port));
        }
    }
    for ((index, sure), places) in by_index {
        let version = match sure {
            Confidence::Assumed => "its RoCE version is not shown",
            Confidence::Likely | Confidence::Proven | Confidence::Unknown => "RoCE v2",
        };
        let other = if index == 0 { String::new() } else { ", not index 0".to_owned() };
        let what = format!("GID index {index} has an IPv4 address ({version}): use it{other}");
        let why = "a link-local GID is not routed, and some programs take index 0 by default";
        let found_one = finding("gid_index", Severity::Info, sure, listed(places), what, why);
        found.push(found_one.with_remedy(format!("NCCL_IB_GID_INDEX={index}; -x {index} with perftest")));
    }
}

fn small_mtu(view: &View<'_>, found: &mut Vec<Finding>) {
    for (hca, port, assessed) in view.known_ports() {
        let Some(mtu) = port.active_mtu.filter(|mtu| *mtu < USUAL_ROCE_MTU) else { continue };
        if port.link_layer != Some(LinkLayer::Ethernet) || port.is_up() == Some(false) {
            continue;
        }
        let (severity, why) = match assessed.role {
            Role::Compute => (Severity::Warn, "small packets cost bandwidth and message rate"),
            Role::Storage | Role::FrontEnd | Role::StorageOrFrontEnd | Role::Unknown => {
                (Severity::Info, "it matters only if RoCE is used on this port")
            }
        };
        let what = format!("the active RDMA MTU is {mtu} bytes");
        let found_one = finding("small_mtu", severity, Confidence::Likely, place(hca, port), what, why);
        found.push(
            found_one.with_remedy("jumbo frames (netdev MTU 4200 or more, on the switch too) give 4096"),
        );
    }
}

/// Compute HCAs beside others that are up as well: programs that take any may take the wrong ones.
fn mixed(view: &View<'_>, found: &mut Vec<Finding>) {
    let compute = view.hcas_of(Role::Compute);
    let beside = beside(view);
    if compute.is_empty() || beside.is_empty() {
        return;
    }
    let sure = view.ports.iter().filter(|port| port.role == Role::Compute).map(|port| port.confidence).min();
    let what = format!("HCAs that are no rails are up beside the compute fabric: {}", listed(beside));
    let why = "a library that takes every HCA may send over one of them";
    let place = listed(compute.iter().map(|name| (*name).to_owned()).collect());
    let found_one =
        finding("restrict_hcas", Severity::Info, sure.unwrap_or(Confidence::Unknown), place, what, why);
    found.push(found_one.with_remedy(format!(
        "NCCL_IB_HCA=={} (the second = makes the names exact, else they are prefixes)",
        compute.join(",")
    )));
}

/// The HCAs that are no rails and have a port that is not down.
fn beside(view: &View<'_>) -> Vec<String> {
    let is_beside = |role: Role| match role {
        Role::Compute | Role::Unknown => false,
        Role::Storage | Role::FrontEnd | Role::StorageOrFrontEnd => true,
    };
    let ports = view
        .known_ports()
        .filter(|(_, port, assessed)| is_beside(assessed.role) && port.is_up() != Some(false));
    let mut names: Vec<String> = ports.map(|(hca, _, _)| hca.title().to_owned()).collect();
    names.dedup();
    names
}

/// The RDMA MTU that an Ethernet MTU of 1,500 bytes gives is 1,024; jumbo frames give 4,096.
const USUAL_ROCE_MTU: u32 = 2048;
