//! Lines of `nvidia-smi --query-gpu=index,...,pci.bus_id --format=csv`.

use super::Lines;
use super::scan;
use crate::topology::model::{Inventory, PciAddress};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    entry(lines.get(at)).is_some()
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    if let Some((index, name, bus)) = entry(lines.get(at))
        && let Some((gpu, mut learn)) = inventory.learn_gpu(index)
    {
        *seen = true;
        if let Some(bus) = bus {
            gpu.learn_bus(bus, &mut learn);
        }
        if let Some(name) = name {
            gpu.learn_name(name, &mut learn);
        }
    }
    at + 1
}

/// A number first, and the long form of an address or the name of a product in one of the fields.
fn entry(line: &str) -> Option<(u16, Option<&str>, Option<PciAddress>)> {
    let mut fields = line.split(',').take(16).map(str::trim);
    let index = fields.next()?.parse().ok()?;
    let mut name = None;
    let mut bus = None;
    for field in fields {
        // Eight digits of domain are the mark of this tool.
        let is_long = field.len() == LONG_ADDRESS && field.as_bytes()[8] == b':';
        if is_long {
            bus = bus.or_else(|| scan::bus(field));
        } else if ["NVIDIA", "Tesla", "GeForce", "Quadro"].iter().any(|maker| field.starts_with(maker)) {
            name = Some(field);
        }
    }
    (name.is_some() || bus.is_some()).then_some((index, name, bus))
}

/// Length of `00000000:18:00.0`.
const LONG_ADDRESS: usize = 16;
