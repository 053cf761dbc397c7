//! `ibv_devinfo`, with and without `-v`.

use super::Lines;
use super::port_facts::{self, PortFact};
use super::scan::{self, key_value};
use crate::topology::model::{Gid, HcaFact, HcaId, Inventory};
use crate::units::BitsPerSecond;

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    key_value(lines.get(at)).is_some_and(|(key, _)| STARTS.contains(&key))
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let mut block = Block::default();
    let mut end = lines.len();
    for here in at..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() {
            continue;
        }
        let taken = match key_value(line) {
            Some(("hca_id", name)) => {
                block.finish(inventory);
                let name = name.split_whitespace().next().unwrap_or("");
                let hca = scan::is_name(name).then(|| inventory.hca_named(name)).flatten();
                block = Block { hca, named: true, ..Block::default() };
                true
            }
            Some((key, value)) if is_key(key) => {
                block.take(inventory, key, value);
                true
            }
            Some(_) | None => is_flag(line),
        };
        if !taken {
            end = here;
            break;
        }
        *seen = true;
    }
    block.finish(inventory);
    end
}

/// Keys are small letters and signs; `GID[  0]` stands among them with `-v`.
fn is_key(key: &str) -> bool {
    let small = key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_ ".contains(&b));
    (small && !key.contains("  ")) || key.starts_with("GID[")
}

/// Capability flags and `device extended` lines of `-v` stand alone on their line, far indented.
fn is_flag(line: &str) -> bool {
    let word = line.trim();
    line.starts_with([' ', '\t'])
        && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_ ()x".contains(&b))
}

/// One device while it is read.
#[derive(Default)]
struct Block {
    hca: Option<HcaId>,
    named: bool,
    port: Option<u16>,
    complete: bool,
    lanes: Option<f64>,
    lane_rate: Option<f64>,
}

impl Block {
    fn take(&mut self, inventory: &mut Inventory, key: &str, value: &str) {
        let fact = match key {
            "fw_ver" => Some(HcaFact::Firmware),
            "node_guid" => Some(HcaFact::NodeGuid),
            "sys_image_guid" => Some(HcaFact::SystemGuid),
            "board_id" => Some(HcaFact::Board),
            // The driver's name for a model is MT and this number.
            "vendor_part_id" => Some(HcaFact::Model),
            _ => None,
        };
        if let Some(fact) = fact.filter(|_| !value.is_empty()) {
            let Some(id) = self.hca(inventory) else { return };
            let is_part = fact == HcaFact::Model && value.bytes().all(|b| b.is_ascii_digit());
            let value = if is_part { format!("MT{value}") } else { value.to_owned() };
            let (hca, mut learn) = inventory.learn_hca(id);
            hca.learn(fact, &value, &mut learn);
            return;
        }
        match key {
            "phys_port_cnt" => {
                if let Some(id) = self.hca(inventory) {
                    inventory.hca_mut(id).port_count =
                        scan::number(value).and_then(|n| u16::try_from(n).ok());
                }
            }
            "port" => {
                self.gap(inventory);
                self.port = value.parse().ok();
                (self.complete, self.lanes, self.lane_rate) = (false, None, None);
                if let (Some(id), Some(port)) = (self.hca(inventory), self.port) {
                    inventory.hca_mut(id).port_mut(port);
                }
            }
            _ => self.port_line(inventory, key, value),
        }
    }

    fn port_line(&mut self, inventory: &mut Inventory, key: &str, value: &str) {
        let (Some(id), Some(number)) = (self.hca, self.port) else { return };
        let mut learn = |fact| port_facts::learn(inventory, id, number, fact, value);
        match key {
            "state" => learn(PortFact::State),
            "phys_state" => learn(PortFact::PhysicalState),
            "sm_lid" => learn(PortFact::SmLid),
            "port_lid" => learn(PortFact::Lid),
            "link_layer" => {
                self.complete = true;
                learn(PortFact::LinkLayer);
            }
            "active_mtu" => {
                if let Some(mtu) = scan::number(value) {
                    inventory.learn_port(id, number, "active MTU", mtu, |port| &mut port.active_mtu);
                }
            }
            "active_width" => self.lanes = value.split(['X', 'x']).next().and_then(|n| n.parse().ok()),
            "active_speed" => self.lane_rate = value.split_whitespace().next().and_then(|n| n.parse().ok()),
            _ => gid(inventory, id, number, key, value),
        }
        if let (Some(lanes), Some(rate)) = (self.lanes, self.lane_rate)
            && matches!(key, "active_width" | "active_speed")
            && (lanes * rate).is_finite()
            && lanes * rate > 0.0
        {
            // A lane of EDR is written 25.0; the others likewise without their coding.
            let rate = BitsPerSecond((lanes * rate).round() * 1e9);
            inventory.learn_port(id, number, "rate", rate, |port| &mut port.rate);
        }
    }

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
            inventory.note_gap(format!("{title} port {port}: no link layer in the capture"), COMMAND);
        }
    }

    fn finish(&self, inventory: &mut Inventory) {
        self.gap(inventory);
    }
}

/// `GID[  3]:  ::ffff:10.0.0.1, RoCE v2`; a GID itself has colons, so the key ends at the bracket.
fn gid(inventory: &mut Inventory, id: HcaId, port: u16, key: &str, value: &str) {
    let Some(index) =
        key.strip_prefix("GID[").and_then(|rest| rest.trim_end_matches(']').trim().parse().ok())
    else {
        return;
    };
    let (gid, version) = value.split_once(',').unwrap_or((value, ""));
    let version = if version.contains("v2") {
        Some("v2")
    } else if version.contains("v1") {
        Some("v1")
    } else {
        None
    };
    if gid.len() > scan::MAX_GID {
        return;
    }
    let ipv4 = gid.trim().strip_prefix("::ffff:").filter(|rest| rest.contains('.')).map(str::to_owned);
    let gid = Gid { index, gid: gid.trim().to_owned(), version: version.map(str::to_owned), ipv4 };
    if let Some(port) = inventory.hca_mut(id).port_mut(port) {
        port.add_gid(gid);
    }
}

/// The lines that begin a device, the second where a capture is cut above the first.
const STARTS: [&str; 4] = ["hca_id", "fw_ver", "vendor_part_id", "phys_port_cnt"];
/// The command that prints this.
const COMMAND: &str = "ibv_devinfo";
