//! Lines of `lscpu` and of environment dumps that tell the hypervisor and the CPU.

use super::Lines;
use super::scan::key_value;
use crate::topology::model::Inventory;

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    fact(lines.get(at)).is_some()
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    if let Some((fact, value)) = fact(lines.get(at)) {
        *seen = true;
        let slot = match fact {
            Fact::Hypervisor => &mut inventory.platform.hypervisor,
            Fact::Cpu => &mut inventory.platform.cpu,
        };
        slot.get_or_insert_with(|| value.to_owned());
    }
    at + 1
}

enum Fact {
    Hypervisor,
    Cpu,
}

/// Some dumps write two colons.
fn fact(line: &str) -> Option<(Fact, &str)> {
    let (key, value) = key_value(line)?;
    let value = value.trim_start_matches([':', ' ']);
    let fact = match key {
        "Hypervisor vendor" => Fact::Hypervisor,
        "Model name" | "BIOS Model name" => Fact::Cpu,
        _ => return None,
    };
    (!value.is_empty() && value.len() <= MAX_VALUE).then_some((fact, value))
}

/// Longest value that is read.
const MAX_VALUE: usize = 96;
