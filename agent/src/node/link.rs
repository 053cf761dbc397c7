//! This node's connections to the electors: kept open, made again after a loss, a name resolved anew when nobody
//! answers. Between two electors the one with the lower index dials.

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::Duration;

use bench_core::ids::NodeIndex;
use bench_core::roster::{Peer, Roster};
use transport::control::backoff::BackoffPolicy;
use transport::control::keep::{KeptConnection, LinkEvent};
use transport::control::mesh::Peer as Remote;
use transport::control::resolve::Resolver;

use super::Node;

/// The electors that this node dials.
pub(super) fn dialed_by(me: NodeIndex, roster: &Roster) -> Vec<NodeIndex> {
    let electors = roster.electors.iter().copied();
    if roster.electors.contains(&me) {
        electors.filter(|elector| *elector > me).collect()
    } else {
        electors.collect()
    }
}

/// Keeps a connection to an elector until the node is gone.
pub(super) async fn keep(node: Weak<Node>, elector: NodeIndex) {
    let Some((peer, resolver, mesh, turn)) = node.upgrade().map(|node| {
        let network = node.network();
        let peer = node.roster.peers[elector.usize()].clone();
        let turn = turn_of(node.me, &node.roster);
        (peer, network.resolver.clone(), network.mesh.clone(), turn)
    }) else {
        return;
    };
    tokio::time::sleep(turn).await;
    let mut open: Option<(SocketAddr, KeptConnection)> = None;
    loop {
        let address = match address_of(&resolver, &peer).await {
            Ok(address) => address,
            Err(reason) => {
                tracing::warn!(elector = %peer.node, %reason, "the elector's name does not resolve yet");
                tokio::time::sleep(RESOLVE_PAUSE).await;
                continue;
            }
        };
        // The same address goes on with its waits, which have grown: from the beginning they would be short.
        let (_, kept) = match open.take().filter(|(known, _)| *known == address) {
            Some(going) => open.insert(going),
            None => {
                let policy = BackoffPolicy::new(FIRST_WAIT, LONGEST_WAIT).expect("constants in order");
                let kept = KeptConnection::start(mesh.clone(), address, Some(peer.node.clone()), policy);
                open.insert((address, kept))
            }
        };
        match follow(&node, elector, kept).await {
            Next::Resolve => {}
            Next::Later => {
                open = None;
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            Next::End => return,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Resolve,
    Later,
    End,
}

/// Passes on what happens to one kept connection until it is refused or has failed [`FAILURES_TO_RESOLVE`] times.
async fn follow(node: &Weak<Node>, elector: NodeIndex, kept: &mut KeptConnection) -> Next {
    let mut failures = 0;
    while let Some(event) = kept.next().await {
        let Some(node) = node.upgrade() else {
            return Next::End;
        };
        let name = &node.roster.peers[elector.usize()].node;
        match event {
            LinkEvent::Up(connection) => {
                failures = 0;
                tracing::info!(elector = %connection.peer(), "connected with an elector");
                node.refused_by(elector, None);
                node.trouble(elector, None);
                if let Remote::Agent { boot, .. } = connection.peer() {
                    node.joined(name, *boot);
                }
            }
            LinkEvent::Down { reason } => {
                tracing::warn!(elector = %name, %reason, "lost an elector");
                node.left(name, &reason);
            }
            LinkEvent::Failed { error, retry_in } => {
                tracing::warn!(elector = %name, %error, ?retry_in, "cannot reach an elector yet");
                node.trouble(elector, Some(error.to_string()));
                failures += 1;
                if failures >= FAILURES_TO_RESOLVE {
                    return Next::Resolve;
                }
            }
            LinkEvent::GivenUp { error } => {
                tracing::error!(elector = %name, %error, "refused by an elector");
                node.trouble(elector, Some(error.to_string()));
                node.refused_by(elector, Some(error.to_string()));
                return Next::Later;
            }
        }
    }
    Next::Later
}

/// How long a node waits before it dials for the first time. Agents of a cluster start at once, and every one of them
/// dials every elector: without turns, an elector's socket overflows, and who lost a packet waits for its time-out.
fn turn_of(me: NodeIndex, roster: &Roster) -> Duration {
    if roster.electors.contains(&me) { Duration::ZERO } else { HANDSHAKE_TIME * u32::from(me.0) }
}

/// The UDP address of a peer: the first that its host resolves to.
pub(super) async fn address_of(resolver: &Resolver, peer: &Peer) -> Result<SocketAddr, String> {
    let addresses = resolver.lookup(&peer.host).await.map_err(|error| error.to_string())?;
    let first = addresses.first().ok_or_else(|| format!("{} has no address", peer.host))?;
    Ok(SocketAddr::new(*first, peer.port))
}

/// Wait after the first failed try: agents start within milliseconds of each other.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// What a handshake costs an elector: 57 ms for 59 on a 2 GHz Xeon (docs/benchmarks.md).
const HANDSHAKE_TIME: Duration = Duration::from_millis(1);

/// Pause between two questions to DNS: a Service whose pods are not up yet is normal.
const RESOLVE_PAUSE: Duration = Duration::from_secs(1);

/// Failed tries after which the name is resolved anew: a restarted pod has another address.
const FAILURES_TO_RESOLVE: u32 = 4;

/// Pause after a refusal: somebody has to change something first.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use bench_core::ids::Generation;

    use super::*;

    #[test]
    fn electors_dial_at_once_and_every_other_node_at_an_instant_of_its_own() {
        let peer = |n: u16| Peer {
            node: format!("n{n}").parse().expect("a name"),
            host: "127.0.0.1".to_owned(),
            port: 7777 + n,
        };
        let peers = (1..=64).map(peer).collect();
        let roster = Roster::new(peers, None, Generation(0)).expect("a roster");
        let turns: Vec<Duration> = (0..64).map(|n| turn_of(NodeIndex(n), &roster)).collect();
        assert!(turns[..5].iter().all(Duration::is_zero));
        assert!(turns[5..].is_sorted_by(|a, b| a < b));
        assert_eq!(turns[63], 63 * HANDSHAKE_TIME);
    }
}
