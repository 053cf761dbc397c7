//! `ibstatus`.

use super::Lines;
use super::port_facts::{self, PortFact};
use super::scan::{self, key_value};
use crate::topology::model::{Gid, HcaId, Inventory};

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
    let mut learn = |fact| port_facts::learn(inventory, id, port, fact, value);
    match key {
        "base lid" => learn(PortFact::Lid),
        "sm lid" => learn(PortFact::SmLid),
        "state" => learn(PortFact::State),
        "phys state" => learn(PortFact::PhysicalState),
        "rate" => {
            learn(PortFact::Rate);
            learn(PortFact::Lanes);
        }
        "link_layer" => learn(PortFact::LinkLayer),
        "default gid" => {
            let gid = Gid { index: 0, gid: value.to_owned(), version: None, ipv4: None };
            if let Some(port) = inventory.hca_mut(id).port_mut(port).filter(|_| value.len() <= scan::MAX_GID)
            {
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
