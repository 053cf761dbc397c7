//! What the facts of ports alone say: which of them are of the kind that a compute fabric is made of.
//!
//! Ports form groups by link layer, model and bonding (by rate where no model is known). The group with the most
//! bandwidth is the compute fabric; InfiniBand counts double, since nobody buys it for anything less.

use std::collections::BTreeMap;

use crate::topology::model::{Hca, HcaId, Inventory, LinkLayer, Port, PortState};
use crate::topology::words;

use super::Confidence;

/// Which way the facts of a port lean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lean {
    /// To the compute fabric.
    Compute(Confidence, String),
    /// Away from it.
    Other(Confidence, String),
    /// They tell nothing.
    Nowhere,
}

/// The groups of a node's ports.
#[derive(Debug)]
pub(super) struct Groups {
    of_port: BTreeMap<(HcaId, u16), Key>,
    groups: BTreeMap<Key, Group>,
    best: Option<Key>,
}

/// What the ports of a group share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    layer: Option<LinkLayer>,
    model: Option<String>,
    bond: bool,
    /// Whole Mb/s, only where no model is known.
    rate_mbps: Option<u64>,
}

/// The ports of one kind.
#[derive(Clone, Debug, Default)]
struct Group {
    ports: usize,
    /// The highest rate of a port that is up, Gb/s.
    rate_gbps: Option<f64>,
    /// What the model can do, where every port is down, Gb/s.
    could_gbps: Option<f64>,
    /// Some port is not down.
    alive: bool,
    /// The link layer is only a guess from names or GIDs.
    guessed: bool,
}

impl Groups {
    /// Groups the ports of a node.
    pub(super) fn new(inventory: &Inventory) -> Self {
        let mut of_port = BTreeMap::new();
        let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
        for id in inventory.hca_ids() {
            let hca = inventory.hca(id);
            for port in &hca.ports {
                let (key, guessed) = key(hca, port);
                let group = groups.entry(key.clone()).or_default();
                group.ports += 1;
                group.guessed |= guessed;
                group.alive |= port.state != Some(PortState::Down);
                group.could_gbps = hca.model.as_deref().and_then(model_gbps);
                let rate = port.real_rate().map(|rate| rate.gbps());
                group.rate_gbps = [group.rate_gbps, rate].into_iter().flatten().reduce(f64::max);
                of_port.insert((id, port.number), key);
            }
        }
        let best = best(&groups);
        Self { of_port, groups, best }
    }

    /// Which way a port leans.
    pub(super) fn lean(&self, hca: HcaId, port: u16) -> Lean {
        let (Some(key), Some(best)) = (self.of_port.get(&(hca, port)), &self.best) else {
            return Lean::Nowhere;
        };
        let (Some(group), Some(leader)) = (self.groups.get(key), self.groups.get(best)) else {
            return Lean::Nowhere;
        };
        if key == best {
            let (confidence, why) = self.leading(key, group);
            return Lean::Compute(confidence, why);
        }
        let differences = differences(key, group, best, leader);
        // A port of the same kind that is down has no rate: nothing sets it apart.
        let strong = differences.iter().any(|(strength, _)| *strength == Confidence::Likely);
        let why: Vec<String> = differences.into_iter().map(|(_, why)| why).collect();
        match (why.is_empty(), strong) {
            (true, _) => Lean::Nowhere,
            (false, true) => Lean::Other(Confidence::Likely, why.join("; ")),
            (false, false) => Lean::Other(Confidence::Assumed, why.join("; ")),
        }
    }

    /// How sure it is that the leading group is the compute fabric, and why.
    fn leading(&self, key: &Key, group: &Group) -> (Confidence, String) {
        let text = format!("{} {}", words::count(group.ports, "port"), describe(key, group));
        let others = self.groups.len() > 1;
        if !group.alive {
            return (
                Confidence::Assumed,
                format!("{text}, all down: the group that could have the most bandwidth"),
            );
        }
        if group.guessed {
            return (
                Confidence::Assumed,
                format!("{text}, by LIDs, names or GIDs: the link layer is not shown"),
            );
        }
        match (others, group.rate_gbps) {
            (true, Some(_)) => (Confidence::Likely, format!("{text}: the group with the most bandwidth")),
            (true, None) => {
                (Confidence::Assumed, format!("{text}: preferred to the others, whose rates are not shown"))
            }
            (false, _) if group.ports > USUAL_RAILS => (
                Confidence::Assumed,
                format!(
                    "{text}, all alike: storage ports of the same kind cannot be told from rails without distances"
                ),
            ),
            (false, Some(_)) if group.ports > 1 => (Confidence::Likely, format!("{text}, all alike")),
            (false, _) => (Confidence::Assumed, format!("{text}: there is nothing to compare it with")),
        }
    }
}

/// The group that is the compute fabric, if one can be.
///
/// Several ports of a fast model that are all down may still be it: then it is the fabric that is down. One alone tells
/// nothing.
fn best(groups: &BTreeMap<Key, Group>) -> Option<Key> {
    let can_be = |key: &Key, group: &Group| match (group.alive, key.layer, group.rate_gbps) {
        (true, _, Some(rate)) => rate >= SLOWEST_RAIL_GBPS,
        (true, Some(LinkLayer::InfiniBand), None) => true,
        (true, Some(LinkLayer::Ethernet) | None, None) => false,
        (false, _, _) => group.ports > 1 && group.could_gbps.is_some_and(|rate| rate >= SLOWEST_RAIL_GBPS),
    };
    let weight = |key: &Key, group: &Group| {
        let preferred = if key.layer == Some(LinkLayer::InfiniBand) { 2.0 } else { 1.0 };
        let rate = if group.alive { group.rate_gbps } else { group.could_gbps };
        rate.unwrap_or(0.0) * group.ports as f64 * preferred
    };
    let infiniband = |key: &Key| key.layer == Some(LinkLayer::InfiniBand);
    groups
        .iter()
        .filter(|(key, group)| can_be(key, group))
        .max_by(|(a, x), (b, y)| {
            let by_weight = weight(a, x).total_cmp(&weight(b, y));
            by_weight.then(infiniband(a).cmp(&infiniband(b))).then(x.ports.cmp(&y.ports)).then(b.cmp(a))
        })
        .map(|(key, _)| key.clone())
}

/// The fastest port of a model, Gb/s, by the numbers that the mlx4 and mlx5 drivers use.
fn model_gbps(model: &str) -> Option<f64> {
    Some(match model {
        "MT4131" => 800.0,
        "MT4129" | "MT41692" => 400.0,
        "MT4123" | "MT41686" => 200.0,
        "MT4115" | "MT4119" | "MT4121" | "MT4125" => 100.0,
        "MT4099" | "MT4103" | "MT4113" => 56.0,
        _ => return None,
    })
}

fn key(hca: &Hca, port: &Port) -> (Key, bool) {
    let shown = port.link_layer;
    let layer = shown.or_else(|| guess_layer(port));
    let rate = port.real_rate().map(|rate| (rate.gbps() * 1000.0).round().clamp(0.0, 1e9) as u64);
    let key = Key {
        layer,
        model: hca.model.clone(),
        bond: hca.is_bond(),
        rate_mbps: rate.filter(|_| hca.model.is_none()),
    };
    (key, shown.is_none() && layer.is_some())
}

/// The link layer by weaker signs: a port with LIDs is one of InfiniBand; the kernel names network devices on InfiniBand `ib...`; a GID that is not made from
/// a MAC address and has neither an IP nor a network device is one of InfiniBand.
pub(super) fn guess_layer(port: &Port) -> Option<LinkLayer> {
    // Only InfiniBand has LIDs.
    let has = |lid: Option<u32>| lid.is_some_and(|lid| lid != 0 && lid < 0xc000);
    if has(port.lid) && has(port.sm_lid) {
        return Some(LinkLayer::InfiniBand);
    }
    if let Some(netdev) = &port.netdev {
        let ib = netdev.starts_with("ib");
        return Some(if ib { LinkLayer::InfiniBand } else { LinkLayer::Ethernet });
    }
    if port.gids.iter().any(|gid| gid.ipv4.is_some() || gid.version.as_deref() == Some("v2")) {
        return Some(LinkLayer::Ethernet);
    }
    let from_mac = |gid: &str| {
        let groups: Vec<&str> = gid.split(':').collect();
        matches!(groups.as_slice(), [.., third, second, _] if third.ends_with("ff") && second.starts_with("fe"))
    };
    let told = port.gids.iter().any(|gid| gid.version.as_deref() == Some("v1"));
    let none = port.gids.iter().all(|gid| !from_mac(&gid.gid.to_ascii_lowercase()));
    (told && none).then_some(LinkLayer::InfiniBand)
}

/// What sets a group apart from the leading one.
fn differences(key: &Key, group: &Group, best: &Key, leader: &Group) -> Vec<(Confidence, String)> {
    let mut found = Vec::new();
    if let (Some(own), Some(other)) = (key.layer, best.layer)
        && own != other
    {
        let strength = if group.guessed || leader.guessed { Confidence::Assumed } else { Confidence::Likely };
        found.push((strength, format!("{own} where the compute fabric is {other}")));
    }
    if let (Some(own), Some(other)) = (group.rate_gbps, leader.rate_gbps)
        && own < other
    {
        let strength = if own * 2.0 <= other { Confidence::Likely } else { Confidence::Assumed };
        found.push((strength, format!("{own:.0} Gb/s where the compute fabric has {other:.0}")));
    }
    if let (Some(own), Some(other)) = (&key.model, &best.model)
        && own != other
    {
        let strength = if group.rate_gbps.is_none() { Confidence::Likely } else { Confidence::Assumed };
        found.push((strength, format!("a {own} where the compute fabric has {other}")));
    }
    if key.bond && !best.bond {
        found.push((Confidence::Assumed, "a bond where the compute fabric has none".to_owned()));
    }
    found
}

fn describe(key: &Key, group: &Group) -> String {
    let model = key.model.as_deref().map(|model| format!("of {model}, "));
    let layer = key.layer.map_or("link layer unknown", LinkLayer::name);
    let rate = group.rate_gbps.map(|rate| format!(" at {rate:.0} Gb/s"));
    format!("{}{layer}{}", model.unwrap_or_default(), rate.unwrap_or_default())
}

/// Slower ports form no compute fabric: 40 Gb/s (QDR) was the last that did, 25 Gb/s is a front-end's.
const SLOWEST_RAIL_GBPS: f64 = 40.0;
/// More ports of one kind than the GPUs of the usual node: some are then likely not rails.
const USUAL_RAILS: usize = 8;
