//! The machine: hypervisor, access control of PCIe bridges, and sources that contradict each other.

use crate::topology::assess::{Confidence, Finding, Severity};
use crate::topology::model::FabricNode;

use super::{View, finding};

pub(super) fn find(view: &View<'_>, found: &mut Vec<Finding>) {
    let inventory = view.inventory;
    if let Some(hypervisor) = &inventory.platform.hypervisor {
        let what = format!("this is a virtual machine ({hypervisor})");
        let why = "the PCIe tree, NUMA nodes and rates are what the hypervisor shows";
        found.push(finding("virtual_machine", Severity::Info, Confidence::Proven, "this node", what, why));
    }
    if let Some(container) = &inventory.platform.container {
        let what = format!("this is a container's view ({container})");
        let why = "devices that the container was not given are missing here, and are not therefore absent";
        found.push(finding("container", Severity::Info, Confidence::Likely, "this node", what, why));
    }
    access_control(view, found);
    let seen = &inventory.contradictions;
    if !seen.is_empty() {
        let listed: Vec<&str> = seen.iter().take(MAX_LISTED).map(String::as_str).collect();
        let more = seen.len().saturating_sub(MAX_LISTED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let what = format!("the sources contradict each other: {}{more}", listed.join("; "));
        let why = "the first was taken; they may be of different nodes, or of different times";
        let found_one =
            finding("contradiction", Severity::Warn, Confidence::Proven, "the captures", what, why);
        found.push(found_one.with_remedy("give the captures of one node and one time"));
    }
    let nodes = inventory.fabric.iter().filter(|link| link.local_kind == FabricNode::Adapter).count();
    if inventory.gpus.is_empty() && inventory.hcas.is_empty() && nodes == 0 {
        let what = "no GPU and no HCA";
        let why = "there is nothing to pair";
        found.push(finding("nothing_here", Severity::Info, Confidence::Proven, "this node", what, why));
    }
}

fn access_control(view: &View<'_>, found: &mut Vec<Finding>) {
    let redirecting: Vec<String> = view
        .inventory
        .acs
        .iter()
        .filter(|acs| acs.redirects)
        .map(|acs| {
            acs.address
                .map_or_else(|| "a device that the capture does not name".to_owned(), |a| a.to_string())
        })
        .collect();
    if redirecting.is_empty() {
        return;
    }
    let some: Vec<&str> = redirecting.iter().take(MAX_LISTED).map(String::as_str).collect();
    let what = format!(
        "PCIe access control (ACS) sends peer-to-peer traffic up to the CPU at {} of {} devices",
        redirecting.len(),
        view.inventory.acs.len()
    );
    let (severity, why) = match view.inventory.platform.hypervisor {
        Some(_) => {
            (Severity::Info, "in a virtual machine the host's setting decides, and isolation may need it")
        }
        None => (
            Severity::Warn,
            "GPUDirect between a GPU and an HCA below one switch then loses most of its speed; a host of virtual machines needs it on",
        ),
    };
    found.push(
        finding("acs_redirect", severity, Confidence::Likely, some.join(", "), what, why).with_remedy(
            "on bare metal: switch it off in the firmware setup, or with setpci on each of these bridges after every boot",
        ),
    );
}

/// Places and contradictions that are listed one by one.
const MAX_LISTED: usize = 8;
