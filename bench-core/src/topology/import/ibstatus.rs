//! `ibstatus`.

use super::Lines;
use super::scan::{self, key_value};
use crate::topology::model::{Gid, HcaId, Inventory, LinkLayer, PhysicalState, PortState};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    device(lines.get(at)).is_some()
}

/// Name and port in `Infiniband device 'mlx5_0' port 1 status:`.
fn device(line: &str) -> Option<(&str, u16)> {
    let rest = line.trim().strip_prefix("Infiniband device '")?;
    let (name, rest) = rest.split_once('\'')?;
    let port = rest.split_whitespace().nth(1)?.parse().ok()?;
    scan::is_name(name).then_some((name, port))
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let mut current: Option<(HcaId, u16)> = None;
    let mut complete = true;
    let mut end = lines.len();
    for here in at..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() {
            continue;
        }
        if let Some((name, port)) = device(line) {
            gap(inventory, current, complete);
            current = inventory.hca_named(name).map(|id| (id, port));
            if let Some((id, port)) = current {
                inventory.hca_mut(id).port_mut(port);
            }
            complete = false;
            *seen = true;
            continue;
        }
        let Some((key, value)) = key_value(line).filter(|(key, _)| KEYS.contains(key)) else {
            end = here;
            break;
        };
        complete |= key == "link_layer";
        if let Some((id, port)) = current {
            take(inventory, id, port, key, value);
        }
    }
    gap(inventory, current, complete);
    end
}

fn take(inventory: &mut Inventory, id: HcaId, port: u16, key: &str, value: &str) {
    match key {
        "base lid" => {
            if let Some(lid) = scan::number(value) {
                inventory.learn_port(id, port, "LID", lid, |port| &mut port.lid);
            }
        }
        "sm lid" => {
            if let Some(lid) = scan::number(value) {
                inventory.learn_port(id, port, "subnet manager's LID", lid, |port| &mut port.sm_lid);
            }
        }
        "state" => inventory.learn_port(id, port, "state", PortState::parse(value), |port| &mut port.state),
        "phys state" => {
            let state = PhysicalState::parse(value);
            inventory.learn_port(id, port, "physical state", state, |port| &mut port.physical);
        }
        "rate" => {
            if let Some(rate) = scan::gigabits(value) {
                inventory.learn_port(id, port, "rate", rate, |port| &mut port.rate);
            }
            if let Some(lanes) = scan::in_brackets(value) {
                inventory.learn_port(id, port, "lanes", lanes.to_owned(), |port| &mut port.lanes);
            }
        }
        "link_layer" => {
            if let Some(layer) = LinkLayer::parse(value) {
                inventory.learn_port(id, port, "link layer", layer, |port| &mut port.link_layer);
            }
        }
        "default gid" => {
            let gid = Gid { index: 0, gid: value.to_owned(), version: None, ipv4: None };
            if let Some(port) = inventory.hca_mut(id).port_mut(port).filter(|_| value.len() <= MAX_GID) {
                port.add_gid(gid);
            }
        }
        _ => {}
    }
}

fn gap(inventory: &mut Inventory, current: Option<(HcaId, u16)>, complete: bool) {
    if let Some((id, port)) = current.filter(|_| !complete) {
        let title = inventory.hca(id).title().to_owned();
        inventory.note_gap(format!("{title} port {port}: the capture is cut within it"), "ibstatus");
    }
}

/// The lines of a port.
const KEYS: [&str; 7] = ["default gid", "base lid", "sm lid", "state", "phys state", "rate", "link_layer"];
/// Characters of a GID.
const MAX_GID: usize = 64;
