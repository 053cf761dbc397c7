//! `iblinkinfo`: links of the fabric as the subnet shows them.

use super::Lines;
use super::scan;
use crate::topology::model::{FabricLink, FabricNode, Inventory};
use crate::units::BitsPerSecond;

pub(super) fn begins(lines: Lines<'_>, at: usize) -> bool {
    let next = || lines.next_filled(at + 1).map_or("", |next| lines.get(next));
    node(lines.get(at)).is_some() && is_link(next()) || is_link(lines.get(at))
}

/// `CA: node-3 HCA-1:` or `Switch: 0x... name:`.
fn node(line: &str) -> Option<(FabricNode, String)> {
    let line = line.trim();
    let (kind, rest) = if let Some(rest) = line.strip_prefix("CA: ") {
        (FabricNode::Adapter, rest)
    } else {
        (FabricNode::Switch, line.strip_prefix("Switch: ")?)
    };
    let rest = rest.trim_end_matches(':').trim();
    let name = match rest.split_once(' ') {
        Some((guid, name)) if guid.starts_with("0x") => name,
        Some(_) | None => rest,
    };
    let name: String = name.chars().take(MAX_NAME).collect();
    let kind = if kind == FabricNode::Adapter && name.contains("Aggregation Node") {
        FabricNode::Aggregation
    } else {
        kind
    };
    Some((kind, name))
}

fn is_link(line: &str) -> bool {
    line.contains("==(") && line.contains(")==>")
}

pub(super) fn read(lines: Lines<'_>, at: usize, inventory: &mut Inventory, seen: &mut bool) -> usize {
    let mut current: Option<(FabricNode, String)> = None;
    for here in at..lines.len() {
        let line = lines.get(here);
        if line.trim().is_empty() {
            continue;
        }
        if let Some(node) = node(line) {
            current = Some(node);
        } else if is_link(line) {
            *seen = true;
            if let (Some(link), true) = (link(line, current.as_ref()), inventory.fabric.len() < MAX_LINKS) {
                inventory.fabric.push(link);
            }
        } else {
            return here;
        }
    }
    lines.len()
}

/// `0xGUID 6 1[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==> 3 3[  ] "name" ( Could be 53.125 Gbps)`
fn link(line: &str, node: Option<&(FabricNode, String)>) -> Option<FabricLink> {
    let (left, rest) = line.split_once("==(")?;
    let (middle, right) = rest.split_once(")==>")?;
    let words: Vec<&str> = middle.split_whitespace().take(8).collect();
    let lanes = words.first().filter(|word| word.ends_with('X'))?;
    let count: f64 = lanes.trim_end_matches('X').parse().ok()?;
    let lane_rate: f64 = words.get(1)?.parse().ok()?;
    let state = words.get(3).map_or("", |word| word.trim_end_matches('/'));
    let port = left.split_whitespace().rev().find_map(|word| word.split('[').next()?.parse().ok())?;
    let remote = right.split('"').nth(1).map(|name| name.trim().chars().take(MAX_NAME).collect::<String>());
    let could_be = scan::in_brackets(right.rsplit('"').next()?).filter(|text| text.contains("Could be"));
    let (local_kind, local) = match (left.split('"').nth(1), node) {
        // With --line the name stands before each link.
        (Some(name), _) => of_line(name),
        (None, Some(node)) => node.clone(),
        (None, None) => (FabricNode::Adapter, String::new()),
    };
    let rate = count * lane_rate;
    (rate.is_finite() && rate > 0.0).then(|| FabricLink {
        local,
        local_kind,
        port,
        lanes: (*lanes).to_owned(),
        rate: BitsPerSecond(rate * 1e9),
        state: state.to_owned(),
        remote: remote.filter(|name| !name.is_empty()),
        could_be: could_be.map(str::to_owned),
    })
}

/// Adapters are named after their node and `HCA-1` or the device.
fn of_line(name: &str) -> (FabricNode, String) {
    let name: String = name.trim().chars().take(MAX_NAME).collect();
    let kind = if name.contains("Aggregation Node") {
        FabricNode::Aggregation
    } else if name.contains("HCA") || name.contains("mlx") {
        FabricNode::Adapter
    } else {
        FabricNode::Switch
    };
    (kind, name)
}

/// Characters of a name that are kept.
const MAX_NAME: usize = 128;
/// Links that are kept: a subnet of 1,000 switches.
const MAX_LINKS: usize = 65_536;
