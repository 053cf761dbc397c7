//! `rdma link` of iproute2, in its older and newer form.

use super::Lines;
use super::port_facts::{self, PortFact};
use super::scan;
use crate::topology::model::{Inventory, LinkLayer};

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

/// `link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2`, or `0/1: mlx5_0/1: state ...`.
struct Entry<'a> {
    name: &'a str,
    port: u16,
    words: Vec<&'a str>,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        if !line.contains(" state ") {
            return None;
        }
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        let named = |word: &&'a str| {
            let (name, port) = word.trim_end_matches(':').split_once('/')?;
            Some((name, port.parse().ok()?)).filter(|(name, _)| scan::is_name(name))
        };
        let at = words.iter().take(3).position(|word| named(word).is_some())?;
        let (name, port) = named(&words[at])?;
        let introduced = at > 0 && (words[at - 1] == "link" || words[at - 1].ends_with(':'));
        introduced.then(|| Self { name, port, words: words[at + 1..].to_vec() })
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        let at = self.words.iter().position(|word| *word == key)?;
        self.words.get(at + 1).copied()
    }

    fn learn(&self, inventory: &mut Inventory) {
        let Some(id) = inventory.hca_named(self.name) else { return };
        let port = self.port;
        for (fact, key) in FACTS {
            if let Some(value) = self.value(key) {
                port_facts::learn(inventory, id, port, fact, value);
            }
        }
        if let Some(netdev) = self.value("netdev").filter(|name| scan::is_name(name)) {
            port_facts::learn(inventory, id, port, PortFact::Netdev, netdev);
        }
        let has_lid = self.value("lid").and_then(scan::number).is_some();
        // Only an InfiniBand port has a LID and a subnet here; a port of RoCE has its network device.
        let layer = match (has_lid || self.value("subnet_prefix").is_some(), self.value("netdev")) {
            (true, _) => Some(LinkLayer::InfiniBand),
            (false, Some(_)) => Some(LinkLayer::Ethernet),
            (false, None) => None,
        };
        if let Some(layer) = layer {
            inventory.learn_port(id, port, "link layer", layer, |port| &mut port.link_layer);
        }
    }
}

/// The facts that stand behind a word.
const FACTS: [(PortFact, &str); 4] = [
    (PortFact::State, "state"),
    (PortFact::PhysicalState, "physical_state"),
    (PortFact::Lid, "lid"),
    (PortFact::SmLid, "sm_lid"),
];
/// Words of a line that are read.
const MAX_WORDS: usize = 64;
