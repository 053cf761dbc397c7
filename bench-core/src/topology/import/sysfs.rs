//! Files of `/sys/class/infiniband` with their paths before them, as `grep -r .` and scripts print them.

use super::Lines;
use super::port_facts::{self, PortFact};
use super::scan;
use crate::topology::model::{HcaFact, HcaId, Inventory};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    entry(lines.get(at)).is_some()
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let Some((name, file, value)) = entry(lines.get(at)) else { return at };
    // head and tail print `==> PATH <==` and the text below it.
    let headed = value == "<==";
    let value = if headed { lines.get(at + 1).trim() } else { value };
    if let Some(id) = inventory.hca_named(name) {
        *seen = true;
        learn(inventory, id, file, value);
    }
    if headed { at + 2 } else { at + 1 }
}

/// Device, file below it and its text.
fn entry(line: &str) -> Option<(&str, &str, &str)> {
    let start = line.find("class/infiniband/")?;
    let rest = &line[start + "class/infiniband/".len()..];
    let end = rest.find([':', '=', ' '])?;
    let (name, file) = rest[..end].split_once('/')?;
    let value = rest[end..].trim_start_matches([':', '=', ' ']).trim();
    (scan::is_name(name) && !value.is_empty()).then_some((name, file, value))
}

fn learn(inventory: &mut Inventory, id: HcaId, file: &str, value: &str) {
    let parts: Vec<&str> = file.split('/').take(6).collect();
    match parts.as_slice() {
        [file] => of_device(inventory, id, file, value),
        ["device", "numa_node"] => {
            let numa = value.parse().ok();
            inventory.hca_mut(id).numa = inventory.hca(id).numa.or(numa);
        }
        ["ports", port, rest @ ..] => {
            if let Ok(port) = port.parse() {
                of_port(inventory, id, port, rest, value);
            }
        }
        _ => {}
    }
}

fn of_device(inventory: &mut Inventory, id: HcaId, file: &str, value: &str) {
    let fact = match file {
        "hca_type" => HcaFact::Model,
        "fw_ver" => HcaFact::Firmware,
        "board_id" => HcaFact::Board,
        "node_guid" => HcaFact::NodeGuid,
        "sys_image_guid" => HcaFact::SystemGuid,
        _ => return,
    };
    let (hca, mut learn) = inventory.learn_hca(id);
    hca.learn(fact, value, &mut learn);
}

fn of_port(inventory: &mut Inventory, id: HcaId, port: u16, file: &[&str], value: &str) {
    let mut learn = |fact| port_facts::learn(inventory, id, port, fact, value);
    match file {
        ["counters" | "hw_counters", counter] => {
            if let (Some(port), Ok(value)) = (inventory.hca_mut(id).port_mut(port), value.parse()) {
                port.add_counter(counter, value);
            }
        }
        ["link_layer"] => learn(PortFact::LinkLayer),
        ["state"] => learn(PortFact::State),
        ["phys_state"] => learn(PortFact::PhysicalState),
        ["rate"] => {
            learn(PortFact::Rate);
            learn(PortFact::Lanes);
        }
        ["lid"] => learn(PortFact::Lid),
        ["sm_lid"] => learn(PortFact::SmLid),
        _ => {}
    }
}
