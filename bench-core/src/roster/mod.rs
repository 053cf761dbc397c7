//! The roster: the nodes that should take part, in order, fixed for a mesh generation.
//!
//! ```text
//!  --peers, hostfile, pod-name pattern ──parse_*──────────────▶ Vec<Peer> ──Roster::new──▶ Roster ──hash──▶ hello
//!  A records of a Service              ──peers_from_addresses─▶
//! ```
//!
//! Every node must come to the same roster by itself, so nothing here depends on anything but its arguments.
//! Left to others: resolving names and learning whether the nodes are there.

mod error;
mod expand;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use sha2::{Digest, Sha256};

pub use error::RosterError;
pub(crate) use expand::expand;
pub use parse::{parse_hostfile, parse_peers, parse_pod_pattern};

use crate::ids::{Generation, NodeId, NodeIndex, RosterHash};

/// A node with the address of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub node: NodeId,
    /// A host name or an IP address, without brackets.
    pub host: String,
    /// The UDP port of its control mesh.
    pub port: u16,
}

/// The nodes that should take part, in order. Node `i` of the mesh is `peers[i]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The nodes: each name and each address once.
    pub peers: Vec<Peer>,
    /// The nodes that may elect and be elected, ascending.
    pub electors: Vec<NodeIndex>,
    /// The generation of the mesh.
    pub generation: Generation,
}

impl Roster {
    /// The roster of `peers`, whose first nodes are the electors: `electors` of them, or by default 1 of up to 2 nodes,
    /// 3 of up to 4, else 5.
    ///
    /// # Errors
    /// [`RosterError`] if there is no peer or too many, if a name or an address stands there twice, or if the number of
    /// electors is even, above 9 or above the number of nodes.
    pub fn new(
        peers: Vec<Peer>,
        electors: Option<usize>,
        generation: Generation,
    ) -> Result<Self, RosterError> {
        check_peers(&peers)?;
        let electors = checked_electors(electors, peers.len())?;
        Ok(Self { peers, electors: (0..electors).map(NodeIndex).collect(), generation })
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Whether there is no node, which [`Roster::new`] refuses.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// The position of a name; `None` if it is not in the roster.
    pub fn index_of(&self, node: &NodeId) -> Option<NodeIndex> {
        self.peers.iter().zip(0..).find_map(|(peer, index)| (peer.node == *node).then_some(NodeIndex(index)))
    }

    /// The node at a position; `None` if it is beyond the roster.
    pub fn node(&self, index: NodeIndex) -> Option<&Peer> {
        self.peers.get(index.usize())
    }

    /// What all members of a mesh must agree on: SHA-256 over peers in order, electors and generation, cut to 128 bits.
    pub fn hash(&self) -> RosterHash {
        let mut canonical = Canonical(Sha256::new_with_prefix(HASH_DOMAIN));
        canonical.number(self.generation.0);
        canonical.number(self.peers.len() as u64);
        for peer in &self.peers {
            canonical.text(peer.node.as_str());
            canonical.text(&peer.host);
            canonical.number(peer.port.into());
        }
        canonical.number(self.electors.len() as u64);
        for elector in &self.electors {
            canonical.number(elector.0.into());
        }
        let digest = canonical.0.finalize();
        let mut hash = RosterHash([0; 16]);
        hash.0.copy_from_slice(&digest[..16]);
        hash
    }
}

/// The peers behind plain address records, which have no order and no names: sorted by address, named by it.
///
/// An IPv4 address in IPv6 form counts as the IPv4 address; repeated records count once.
///
/// # Errors
/// [`RosterError::Count`] unless there are exactly `expect` different addresses.
pub fn peers_from_addresses(
    addresses: &[IpAddr],
    port: u16,
    expect: usize,
) -> Result<Vec<Peer>, RosterError> {
    let mut sorted: Vec<IpAddr> = addresses.iter().map(IpAddr::to_canonical).collect();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() != expect {
        return Err(RosterError::Count { found: sorted.len(), expected: expect });
    }
    let peers = sorted
        .iter()
        .map(|address| Peer::new(&address.to_string(), address.to_string(), port))
        .collect::<Result<Vec<_>, _>>()?;
    check_peers(&peers)?;
    Ok(peers)
}

impl Peer {
    fn new(name: &str, host: String, port: u16) -> Result<Self, RosterError> {
        Ok(Self { node: NodeId::new(name)?, host, port })
    }
}

impl fmt::Display for Peer {
    /// The form that [`parse_peers`] reads: `gpu-001:7777`, `[fd00::1]:7777`, `a=10.0.0.1:7777`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.node.as_str() != self.host {
            write!(f, "{}=", self.node)?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Refuses an empty or too large list, and names or addresses that stand there twice.
fn check_peers(peers: &[Peer]) -> Result<(), RosterError> {
    if peers.is_empty() {
        return Err(RosterError::Empty);
    }
    if peers.len() > MAX_NODES {
        return Err(RosterError::TooMany { max: MAX_NODES });
    }
    let mut names = BTreeMap::new();
    let mut addresses = BTreeMap::new();
    for peer in peers {
        if names.insert(&peer.node, ()).is_some() {
            return Err(RosterError::RepeatedName { name: peer.node.clone() });
        }
        if let Some(first) = addresses.insert((&peer.host, peer.port), &peer.node) {
            return Err(RosterError::RepeatedAddress {
                first: first.clone(),
                second: peer.node.clone(),
                host: peer.host.clone(),
                port: peer.port,
            });
        }
    }
    Ok(())
}

fn checked_electors(electors: Option<usize>, nodes: usize) -> Result<u16, RosterError> {
    let count = electors.unwrap_or(match nodes {
        0..=2 => 1,
        3..=4 => 3,
        _ => 5,
    });
    match u16::try_from(count) {
        Ok(electors) if count % 2 == 1 && count <= nodes && electors <= MAX_ELECTORS => Ok(electors),
        Ok(_) | Err(_) => Err(RosterError::Electors { electors: count, nodes, max: MAX_ELECTORS }),
    }
}

/// Writes values so that no two different rosters give the same bytes: numbers with fixed length, texts after theirs.
struct Canonical(Sha256);

impl Canonical {
    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text);
    }
}

/// Largest roster: what the mesh is built for and measured with (64 racks of 64 nodes).
pub const MAX_NODES: usize = 4_096;

/// Most electors: every agent keeps a connection to each of them, and 9 already outlive any 4 losses.
const MAX_ELECTORS: u16 = 9;

/// Keeps this hash apart from every other use of SHA-256, and one layout of it from the next.
const HASH_DOMAIN: &[u8] = b"railmesh roster 1";
