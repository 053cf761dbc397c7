//! `ibdev2netdev`, with and without `-v`.

use super::Lines;
use super::port_facts::{self, PortFact};
use super::scan;
use crate::topology::model::{HcaFact, Inventory, NetdevState};

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    Entry::parse(lines.get(at)).is_some()
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    if let Some(entry) = Entry::parse(lines.get(at)) {
        *seen = true;
        entry.learn(inventory);
    }
    at + 1
}

/// `mlx5_0 port 1 ==> ib0 (Up)`; with `-v` the address stands before, the model and more between.
struct Entry<'a> {
    name: &'a str,
    port: u16,
    netdev: &'a str,
    up: Option<NetdevState>,
    bus: Option<&'a str>,
    model: Option<&'a str>,
    state: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once("==>")?;
        let words: Vec<&str> = left.split_whitespace().collect();
        let port_at = words.iter().rposition(|word| *word == "port")?;
        let port = words.get(port_at + 1)?.parse().ok()?;
        let has_bus = words.first().is_some_and(|word| scan::bus(word).is_some());
        let name = words.get(usize::from(has_bus)).copied().filter(|name| scan::is_name(name))?;
        let mut right = right.split_whitespace();
        let netdev = right.next().filter(|name| scan::is_name(name))?;
        let up = match right.next()?.trim_matches(['(', ')']) {
            "Up" => Some(NetdevState::Up),
            "Down" => Some(NetdevState::Down),
            _ => None,
        };
        let model = words.iter().find_map(|word| word.strip_prefix("(MT"));
        let model = model.filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        let state = words.get(port_at + 2).map(|word| word.trim_matches(['(', ')']));
        Some(Self { name, port, netdev, up, bus: words.first().copied().filter(|_| has_bus), model, state })
    }

    fn learn(&self, inventory: &mut Inventory) {
        let Some(id) = inventory.hca_named(self.name) else { return };
        port_facts::learn(inventory, id, self.port, PortFact::Netdev, self.netdev);
        if let Some(up) = self.up {
            inventory.learn_port(id, self.port, "network device's state", up, |port| &mut port.netdev_state);
        }
        if let Some(state) = self.state.filter(|state| ["ACTIVE", "DOWN", "INIT", "ARMED"].contains(state)) {
            port_facts::learn(inventory, id, self.port, PortFact::State, state);
        }
        let (hca, mut learn) = inventory.learn_hca(id);
        if let Some(bus) = self.bus.and_then(scan::bus) {
            learn.fact(&mut hca.bus, bus, &format!("{}: PCI address", self.name));
        }
        if let Some(digits) = self.model {
            hca.learn(HcaFact::Model, &format!("MT{digits}"), &mut learn);
        }
    }
}
