//! Whether the rails of all nodes are the same rails: as many, of the same kind, in the same order.
//!
//! A rail is a position, so two nodes that number their devices differently would measure across rails without a word.
//! What shows it is compared here; what nobody can see (one switch, one subnet, no addresses) stays the user's to know.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::ids::{NodeId, RailId};
use crate::node::{Network, NodeInventory, RailEndpoint};
use crate::topology::LinkLayer;
use crate::units::BitsPerSecond;

/// How many rails every node has, if they agree.
///
/// # Errors
/// [`RailMismatch`] with every place that shows it.
pub fn agree(nodes: &[&NodeInventory]) -> Result<u16, RailMismatch> {
    let Some(first) = nodes.first() else {
        return Err(RailMismatch::Nobody);
    };
    let without: Vec<NodeId> =
        nodes.iter().filter(|node| node.rails.is_empty()).map(|node| node.node.clone()).collect();
    if !without.is_empty() {
        return Err(RailMismatch::NoRail { nodes: without });
    }
    same_count(nodes)?;
    let mut places = of_another_layer(nodes);
    places.extend(crossed(nodes));
    if places.is_empty() { Ok(first.rails.len() as u16) } else { Err(RailMismatch::Places { places }) }
}

/// Rails that are slower or faster than the same rail of most nodes.
pub fn odd_rates(nodes: &[&NodeInventory]) -> Vec<OddRate> {
    let mut odd = Vec::new();
    for (rail, endpoints) in by_rail(nodes) {
        let rates = endpoints.iter().filter_map(|(_, endpoint)| endpoint.line_rate_bps);
        let Some(usual_bps) = most_frequent(rates) else { continue };
        for (node, endpoint) in endpoints {
            if let Some(rate_bps) = endpoint.line_rate_bps.filter(|rate| *rate != usual_bps) {
                odd.push(OddRate { node: node.clone(), rail, place: endpoint.place(), rate_bps, usual_bps });
            }
        }
    }
    odd
}

/// Why the rails of the nodes do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RailMismatch {
    /// No node told its inventory.
    Nobody,
    /// Nodes without a rail.
    NoRail {
        /// Which.
        nodes: Vec<NodeId>,
    },
    /// Nodes with another number of rails than most.
    Count {
        /// A node with as many as most, and its rails.
        usual: (NodeId, Vec<String>),
        /// The others with theirs.
        others: Vec<(NodeId, Vec<String>)>,
    },
    /// Rails that show that they are not the same rail.
    Places {
        /// Each with what it shows.
        places: Vec<MismatchedRail>,
    },
}

/// A rail of one node that is not the same rail on others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MismatchedRail {
    /// The node.
    pub node: NodeId,
    /// Its rail.
    pub rail: RailId,
    /// The device and address there.
    pub place: String,
    /// What shows it.
    pub sign: MismatchSign,
}

/// What shows that a rail of a node is not the same rail on others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MismatchSign {
    /// Another link layer than on most nodes.
    LinkLayer {
        /// Here.
        here: LinkLayer,
        /// On most nodes.
        usual: LinkLayer,
    },
    /// Its network belongs to another rail on other nodes.
    Network {
        /// The network.
        network: Network,
        /// The rail that it is elsewhere.
        elsewhere: RailId,
        /// One such node.
        example: NodeId,
    },
}

/// A rail with another line rate than the same rail of most nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddRate {
    /// The node.
    pub node: NodeId,
    /// Its rail.
    pub rail: RailId,
    /// The device and address there.
    pub place: String,
    /// Its line rate, bits a second.
    pub rate_bps: u64,
    /// That of most nodes, bits a second.
    pub usual_bps: u64,
}

impl fmt::Display for OddRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |bps: u64| BitsPerSecond(bps as f64);
        let Self { node, rail, place, .. } = self;
        write!(
            f,
            "{node}, rail {rail} ({place}) runs at {}, that rail of most nodes at {}",
            rate(self.rate_bps),
            rate(self.usual_bps)
        )
    }
}

impl fmt::Display for MismatchedRail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, rail, place, sign } = self;
        match sign {
            MismatchSign::LinkLayer { here, usual } => {
                write!(f, "{node}'s rail {rail} ({place}) is {here}, that rail of most nodes is {usual}")
            }
            MismatchSign::Network { network, elsewhere, example } => {
                write!(
                    f,
                    "{node}'s rail {rail} ({place}) is in {network}, which is rail {elsewhere} of {example}"
                )
            }
        }
    }
}

impl fmt::Display for RailMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("no node told its inventory"),
            Self::NoRail { nodes } => {
                write!(f, "{} without a rail: name the devices with --rails", joined(nodes))
            }
            Self::Count { usual, others } => {
                let (node, rails) = usual;
                write!(f, "the rails of the nodes do not match: {node} has {}", listed(rails))?;
                for (node, rails) in others.iter().take(SHOWN) {
                    write!(f, ", {node} has {}", listed(rails))?;
                }
                more(f, others.len())?;
                f.write_str("; name them on every node with --rails, or with rails_of in the plan")
            }
            Self::Places { places } => {
                f.write_str("the rails of the nodes do not match: ")?;
                write!(f, "{}", joined(places))?;
                f.write_str("; name them in the same order with --rails, or with rails_of in the plan")
            }
        }
    }
}

impl std::error::Error for RailMismatch {}

fn listed(rails: &[String]) -> String {
    format!("{} ({})", rails.len(), rails.join(", "))
}

/// The first few, and how many more.
fn joined<T: fmt::Display>(items: &[T]) -> String {
    let mut text = items.iter().take(SHOWN).map(T::to_string).collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN {
        text.push_str(&format!(" and {} more", items.len() - SHOWN));
    }
    text
}

fn more(f: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    if all > SHOWN { write!(f, " and {} more", all - SHOWN) } else { Ok(()) }
}

fn same_count(nodes: &[&NodeInventory]) -> Result<(), RailMismatch> {
    let usual = most_frequent(nodes.iter().map(|node| node.rails.len())).unwrap_or(0);
    let described = |node: &&NodeInventory| {
        let rails = node.rails.iter().map(|rail| format!("{}={}", rail.rail, rail.place()));
        (node.node.clone(), rails.collect::<Vec<_>>())
    };
    let others: Vec<_> = nodes.iter().filter(|node| node.rails.len() != usual).map(described).collect();
    match nodes.iter().find(|node| node.rails.len() == usual) {
        Some(example) if !others.is_empty() => Err(RailMismatch::Count { usual: described(example), others }),
        Some(_) | None => Ok(()),
    }
}

fn of_another_layer(nodes: &[&NodeInventory]) -> Vec<MismatchedRail> {
    let layer = |endpoint: &RailEndpoint| endpoint.hca.as_ref().and_then(|hca| hca.link_layer);
    let mut places = Vec::new();
    for (rail, endpoints) in by_rail(nodes) {
        let Some(usual) = most_frequent(endpoints.iter().filter_map(|(_, endpoint)| layer(endpoint))) else {
            continue;
        };
        for (node, endpoint) in endpoints {
            if let Some(here) = layer(endpoint).filter(|here| *here != usual) {
                let sign = MismatchSign::LinkLayer { here, usual };
                places.push(MismatchedRail { node: node.clone(), rail, place: endpoint.place(), sign });
            }
        }
    }
    places
}

/// Rails whose network is another rail elsewhere. A network that one node has on several rails tells nothing.
fn crossed(nodes: &[&NodeInventory]) -> Vec<MismatchedRail> {
    let mut users: BTreeMap<Network, Vec<(&NodeInventory, &RailEndpoint)>> = BTreeMap::new();
    for node in nodes {
        for endpoint in &node.rails {
            if let Some(network) = endpoint.network.filter(|network| !network.is_link_local()) {
                users.entry(network).or_default().push((node, endpoint));
            }
        }
    }
    let mut places = Vec::new();
    for (network, users) in users {
        let owners: BTreeSet<&NodeId> = users.iter().map(|(node, _)| &node.node).collect();
        let usual = most_frequent(users.iter().map(|(_, endpoint)| endpoint.rail));
        let Some(elsewhere) = usual.filter(|_| owners.len() == users.len()) else { continue };
        let Some((example, _)) = users.iter().find(|(_, endpoint)| endpoint.rail == elsewhere) else {
            continue;
        };
        for (node, endpoint) in users.iter().filter(|(_, endpoint)| endpoint.rail != elsewhere) {
            places.push(MismatchedRail {
                node: node.node.clone(),
                rail: endpoint.rail,
                place: endpoint.place(),
                sign: MismatchSign::Network { network, elsewhere, example: example.node.clone() },
            });
        }
    }
    places
}

fn by_rail<'a>(nodes: &[&'a NodeInventory]) -> BTreeMap<RailId, Vec<(&'a NodeId, &'a RailEndpoint)>> {
    let mut rails: BTreeMap<RailId, Vec<(&NodeId, &RailEndpoint)>> = BTreeMap::new();
    for node in nodes {
        for endpoint in &node.rails {
            rails.entry(endpoint.rail).or_default().push((&node.node, endpoint));
        }
    }
    rails
}

/// The most frequent item; of several, the one that comes first.
fn most_frequent<T: Copy + Ord>(items: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, (usize, usize)> = BTreeMap::new();
    for (place, item) in items.enumerate() {
        counts.entry(item).or_insert((0, usize::MAX - place)).0 += 1;
    }
    counts.into_iter().max_by_key(|(_, rank)| *rank).map(|(item, _)| item)
}

/// Places that a message lists.
const SHOWN: usize = 4;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::judge::testing::inventory_of;
    use crate::node::RailHca;

    /// A node whose rails have these addresses, each in a /24.
    fn node(name: &str, rails: &[[u8; 4]]) -> NodeInventory {
        let endpoints = (0..).map(RailId).zip(rails).map(|(rail, addr)| {
            let addr = Ipv4Addr::from(*addr).into();
            let plain = RailEndpoint::plain(rail, format!("dev{}", rail.0), addr, String::new());
            RailEndpoint { network: Some(Network::of(addr, 24)), ..plain }
        });
        inventory_of(NodeId::new(name).unwrap(), endpoints.collect())
    }

    fn text(nodes: &[NodeInventory]) -> String {
        agree(&nodes.iter().collect::<Vec<_>>()).unwrap_err().to_string()
    }

    #[test]
    fn nodes_that_agree_are_counted() {
        let nodes = [node("a", &[[10, 0, 0, 1], [10, 0, 1, 1]]), node("b", &[[10, 0, 0, 2], [10, 0, 1, 2]])];
        assert_eq!(agree(&nodes.iter().collect::<Vec<_>>()), Ok(2));
    }

    #[test]
    fn another_number_of_rails_names_the_few_and_shows_the_many() {
        let pair = |n| [[10, 0, 0, n], [10, 0, 1, n]];
        let nodes = [node("a", &[[10, 0, 0, 1]]), node("b", &pair(2)), node("c", &pair(3))];
        let text = text(&nodes);
        assert!(
            text.contains("b has 2 (r0=dev0 10.0.0.2, r1=dev1 10.0.1.2), a has 1 (r0=dev0 10.0.0.1)"),
            "{text}"
        );
        assert!(text.contains("--rails"), "{text}");
    }

    #[test]
    fn crossed_rails_are_named_with_the_rail_that_they_are_elsewhere() {
        let nodes = [
            node("a", &[[10, 0, 0, 1], [10, 0, 1, 1]]),
            node("b", &[[10, 0, 1, 2], [10, 0, 0, 2]]),
            node("c", &[[10, 0, 0, 3], [10, 0, 1, 3]]),
        ];
        let text = text(&nodes);
        assert!(
            text.contains("b's rail r0 (dev0 10.0.1.2) is in 10.0.1.0/24, which is rail r1 of a"),
            "{text}"
        );
        assert!(!text.contains("a's rail") && !text.contains("c's rail"), "{text}");
    }

    #[test]
    fn rails_in_one_network_or_in_many_tell_nothing() {
        let shared = [node("a", &[[10, 0, 0, 1], [10, 0, 0, 2]]), node("b", &[[10, 0, 0, 3], [10, 0, 0, 4]])];
        assert_eq!(agree(&shared.iter().collect::<Vec<_>>()), Ok(2));
        let routed = [node("a", &[[10, 1, 0, 1], [10, 2, 0, 1]]), node("b", &[[10, 3, 0, 1], [10, 4, 0, 1]])];
        assert_eq!(agree(&routed.iter().collect::<Vec<_>>()), Ok(2));
        let unset = [node("a", &[[169, 254, 0, 1]]), node("b", &[[10, 4, 0, 1]])];
        assert_eq!(agree(&unset.iter().collect::<Vec<_>>()), Ok(1));
    }

    #[test]
    fn another_link_layer_or_rate_is_named() {
        let mut nodes = [1, 2, 3].map(|n| node(&format!("n{n}"), &[[10, 0, 0, n]]));
        for (node, layer) in
            nodes.iter_mut().zip([LinkLayer::InfiniBand, LinkLayer::Ethernet, LinkLayer::InfiniBand])
        {
            let hca = RailHca { device: "mlx5_0".to_owned(), port: 1, link_layer: Some(layer) };
            node.rails[0].hca = Some(hca);
            node.rails[0].line_rate_bps =
                Some(if layer == LinkLayer::Ethernet { 100 } else { 400 } * 1_000_000_000);
        }
        let said = text(&nodes);
        assert!(said.contains("n2's rail r0 (mlx5_0 (dev0) 10.0.0.2) is Ethernet"), "{said}");
        let odd = odd_rates(&nodes.iter().collect::<Vec<_>>());
        assert_eq!(odd.len(), 1);
        assert!(odd[0].to_string().starts_with("n2, rail r0"), "{}", odd[0]);
    }

    #[test]
    fn a_mesh_without_rails_says_what_to_do() {
        assert_eq!(agree(&[]).unwrap_err().to_string(), "no node told its inventory");
        assert!(text(&[node("a", &[])]).contains("a without a rail: name the devices with --rails"));
    }
}
