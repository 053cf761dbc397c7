//! `ibstat`.

use super::Lines;
use super::port_facts::{self, PortFact};
use super::scan::{self, key_value};
use crate::topology::model::{HcaFact, HcaId, Inventory};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    let line = lines.get(at);
    let cut_above = || key_value(line).is_some_and(|(key, _)| key == "CA type" || key == "Physical state");
    adapter(line).is_some() || cut_above()
}

/// The name in `CA 'mlx5_0'`.
fn adapter(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix("CA '")?.split('\'').next()?;
    scan::is_name(name).then_some(name)
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let mut block = Block::default();
    let mut end = lines.len();
    for here in at..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() {
            continue;
        }
        if let Some(name) = adapter(line) {
            block.finish(inventory);
            block = Block { hca: inventory.hca_named(name), named: true, ..Block::default() };
            *seen = true;
            continue;
        }
        let taken = key_value(line).is_some_and(|(key, value)| block.take(inventory, key, value));
        if !taken {
            end = here;
            break;
        }
        *seen = true;
    }
    block.finish(inventory);
    end
}

/// One adapter while it is read.
#[derive(Default)]
struct Block {
    hca: Option<HcaId>,
    /// Its name was read.
    named: bool,
    port: Option<u16>,
    /// The port's link layer, which stands last, was read.
    complete: bool,
    ports: usize,
}

impl Block {
    /// Takes a line; says whether it belongs to an adapter.
    fn take(&mut self, inventory: &mut Inventory, key: &str, value: &str) -> bool {
        if let Some(number) = key.strip_prefix("Port ").and_then(|number| number.parse().ok()) {
            self.gap(inventory);
            self.port = Some(number);
            self.complete = false;
            self.ports += 1;
            if let Some(id) = self.hca(inventory) {
                inventory.hca_mut(id).port_mut(number);
            }
            return true;
        }
        let fact = match key {
            "CA type" => Some(HcaFact::Model),
            "Firmware version" => Some(HcaFact::Firmware),
            "Node GUID" => Some(HcaFact::NodeGuid),
            "System image GUID" => Some(HcaFact::SystemGuid),
            _ => None,
        };
        if let Some(fact) = fact {
            if let Some(id) = self.hca(inventory).filter(|_| !value.is_empty()) {
                let (hca, mut learn) = inventory.learn_hca(id);
                hca.learn(fact, value, &mut learn);
            }
            return true;
        }
        if key == "Number of ports" {
            if let Some(id) = self.hca(inventory) {
                inventory.hca_mut(id).port_count = scan::number(value).and_then(|n| u16::try_from(n).ok());
            }
            return true;
        }
        self.port_line(inventory, key, value)
    }

    fn port_line(&mut self, inventory: &mut Inventory, key: &str, value: &str) -> bool {
        let fact = match key {
            "State" => Some(PortFact::State),
            "Physical state" => Some(PortFact::PhysicalState),
            "Rate" => Some(PortFact::Rate),
            "Base lid" => Some(PortFact::Lid),
            "SM lid" => Some(PortFact::SmLid),
            "Link layer" => Some(PortFact::LinkLayer),
            "LMC" | "Capability mask" | "Port GUID" | "Hardware version" => None,
            _ => return false,
        };
        let (Some(id), number) = (self.hca(inventory), self.port.unwrap_or(1)) else { return true };
        self.complete |= fact == Some(PortFact::LinkLayer);
        if let Some(fact) = fact {
            port_facts::learn(inventory, id, number, fact, value);
        }
        true
    }

    /// The adapter; without a name where the capture is cut above it.
    fn hca(&mut self, inventory: &mut Inventory) -> Option<HcaId> {
        if self.hca.is_none() && !self.named {
            self.hca = port_facts::hca_cut_above(inventory, COMMAND);
            self.named = true;
        }
        self.hca
    }

    fn gap(&self, inventory: &mut Inventory) {
        if let (Some(id), Some(port)) = (self.hca, self.port)
            && !self.complete
        {
            let title = inventory.hca(id).title().to_owned();
            inventory.note_gap(format!("{title} port {port}: the capture is cut within it"), COMMAND);
        }
    }

    fn finish(&self, inventory: &mut Inventory) {
        self.gap(inventory);
        let Some(id) = self.hca else { return };
        let hca = inventory.hca(id);
        let promised = hca.port_count.map_or(0, usize::from);
        if self.ports < promised {
            let what = format!("{}: {} of {promised} ports are in the capture", hca.title(), self.ports);
            inventory.note_gap(what, COMMAND);
        }
    }
}

/// The command that prints this.
const COMMAND: &str = "ibstat";
