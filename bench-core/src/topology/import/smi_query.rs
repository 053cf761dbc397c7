//! `nvidia-smi -q`: product names, addresses and the state of the NVLink fabric.

use super::Lines;
use super::scan::{self, key_value};
use crate::topology::model::{Inventory, PciAddress};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    gpu(lines.get(at)).is_some() || is_lone_fabric(lines, at)
}

/// The blocks alone, as `nvidia-smi -q | grep -A 2 Fabric` leaves them.
fn is_lone_fabric(lines: Lines<'_>, at: usize) -> bool {
    let next = || key_value(lines.get(at + 1)).is_some_and(|(key, _)| key == "State");
    lines.get(at).trim() == "Fabric" && next()
}

/// The tool prints the blocks in the order of the GPUs' numbers.
fn lone_fabric(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let mut facts = Facts::default();
    let mut end = at;
    while end < lines.len() && end < at + LONE_LINES {
        let line = lines.get(end);
        if end > at && (line.trim() == "Fabric" || key_value(line).is_none()) {
            break;
        }
        facts.take(line);
        end += 1;
    }
    let known = inventory.gpus.iter().filter(|gpu| gpu.fabric.is_some()).count();
    let gpu = u16::try_from(known).ok().and_then(|index| inventory.gpu_mut(index));
    if let (Some(gpu), Some(state)) = (gpu, facts.fabric()) {
        *seen = true;
        gpu.fabric = Some(state);
    }
    end
}

/// `GPU 00000000:18:00.0` at the margin.
fn gpu(line: &str) -> Option<PciAddress> {
    scan::bus(line.trim_end().strip_prefix("GPU ")?)
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let Some(bus) = gpu(lines.get(at)) else { return lone_fabric(lines, at, inventory, seen) };
    let mut facts = Facts::default();
    let mut end = lines.len();
    for here in at + 1..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            end = here;
            break;
        }
        facts.take(line);
    }
    // The tool lists GPUs in the order of their numbers, which is that of their addresses.
    let known = inventory.gpu_at_bus(bus).map(|gpu| gpu.index);
    let index = known.or_else(|| {
        let counted = inventory.gpus.iter().filter(|gpu| gpu.bus.is_some()).count();
        u16::try_from(counted).ok()
    });
    if let Some((gpu, mut learn)) = index.and_then(|index| inventory.learn_gpu(index)) {
        *seen = true;
        gpu.learn_bus(bus, &mut learn);
        if let Some(name) = &facts.name {
            gpu.learn_name(name, &mut learn);
        }
        let what = format!("{}: state of the NVLink fabric", gpu.label);
        if let Some(state) = facts.fabric() {
            learn.fact(&mut gpu.fabric, state, &what);
        }
    }
    end
}

#[derive(Default)]
struct Facts {
    name: Option<String>,
    in_fabric: bool,
    state: Option<String>,
    status: Option<String>,
}

impl Facts {
    fn take(&mut self, line: &str) {
        let Some((key, value)) = key_value(line) else {
            self.in_fabric = line.trim() == "Fabric";
            return;
        };
        let value = || value.chars().take(MAX_VALUE).collect::<String>();
        match key {
            "Product Name" => self.name = Some(value()),
            "State" if self.in_fabric => self.state = Some(value()),
            "Status" if self.in_fabric => self.status = Some(value()),
            _ => {}
        }
    }

    fn fabric(&self) -> Option<String> {
        let state = self.state.as_ref().filter(|state| *state != "N/A")?;
        Some(match &self.status {
            Some(status) if status != "N/A" => format!("{state}, {status}"),
            Some(_) | None => state.clone(),
        })
    }
}

/// Lines of a block.
const LONE_LINES: usize = 8;
/// Characters of a value that are kept.
const MAX_VALUE: usize = 96;
