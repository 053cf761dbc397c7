//! This node's connection to the coordinator: kept open, made again after a loss, its name resolved anew when nobody
//! answers.

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::Duration;

use bench_core::ids::NodeIndex;
use bench_core::roster::Peer;
use tokio::sync::watch;
use transport::control::backoff::BackoffPolicy;
use transport::control::keep::{KeptConnection, LinkEvent};
use transport::control::mesh::Connection;
use transport::control::resolve::Resolver;

use super::Node;

/// How the connection to the coordinator is.
#[derive(Clone, Debug)]
pub(super) enum LinkState {
    /// It is open.
    Up {
        /// The connection.
        connection: Connection,
    },
    /// It is not, for now.
    Down {
        /// Why.
        reason: String,
    },
    /// It will not be before somebody changes something.
    Refused {
        /// What.
        reason: String,
    },
}

impl LinkState {
    /// Whether nothing more will come.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::Up { .. } | Self::Down { .. } => false,
        }
    }
}

/// Keeps the connection until the node is gone or refused for good.
pub(super) async fn keep(node: Weak<Node>, commander: NodeIndex) {
    let Some((peer, link, resolver, mesh)) = node.upgrade().map(|node| {
        let network = node.network();
        let peer = node.roster.peers[commander.usize()].clone();
        (
            peer,
            network.link.clone(),
            network.resolver.clone(),
            network.mesh.clone(),
        )
    }) else {
        return;
    };
    loop {
        let address = match address_of(&resolver, &peer).await {
            Ok(address) => address,
            Err(reason) => {
                tracing::warn!(node = %peer.node, %reason, "the coordinator's name does not resolve yet");
                link.send_replace(LinkState::Down { reason });
                tokio::time::sleep(RESOLVE_PAUSE).await;
                continue;
            }
        };
        let policy = BackoffPolicy::new(FIRST_WAIT, LONGEST_WAIT).expect("constants in order");
        let mut kept = KeptConnection::start(mesh.clone(), address, Some(peer.node.clone()), policy);
        if follow(&node, commander, &mut kept, &link).await == Next::End {
            return;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Resolve,
    End,
}

/// Passes on what happens to one kept connection until it is refused or has failed [`FAILURES_TO_RESOLVE`] times.
async fn follow(
    node: &Weak<Node>,
    commander: NodeIndex,
    kept: &mut KeptConnection,
    link: &watch::Sender<LinkState>,
) -> Next {
    let mut failures = 0;
    while let Some(event) = kept.next().await {
        match event {
            LinkEvent::Up(connection) => {
                failures = 0;
                let Some(node) = node.upgrade() else {
                    return Next::End;
                };
                node.fence.learn(commander, connection.epoch());
                tracing::info!(coordinator = %connection.peer(), "joined the mesh");
                link.send_replace(LinkState::Up { connection });
            }
            LinkEvent::Down { reason } => {
                tracing::warn!(%reason, "lost the coordinator");
                link.send_replace(LinkState::Down { reason });
            }
            LinkEvent::Failed { error, retry_in } => {
                tracing::warn!(%error, ?retry_in, "cannot join the mesh yet");
                link.send_replace(LinkState::Down {
                    reason: error.to_string(),
                });
                failures += 1;
                if failures >= FAILURES_TO_RESOLVE {
                    return Next::Resolve;
                }
            }
            LinkEvent::GivenUp { error } => {
                tracing::error!(%error, "refused by the mesh");
                link.send_replace(LinkState::Refused {
                    reason: error.to_string(),
                });
                return Next::End;
            }
        }
    }
    Next::Resolve
}

/// The UDP address of a peer: the first that its host resolves to.
pub(super) async fn address_of(resolver: &Resolver, peer: &Peer) -> Result<SocketAddr, String> {
    let addresses = resolver
        .lookup(&peer.host)
        .await
        .map_err(|error| error.to_string())?;
    let first = addresses
        .first()
        .ok_or_else(|| format!("{} has no address", peer.host))?;
    Ok(SocketAddr::new(*first, peer.port))
}

/// Wait after the first failed try: agents start within milliseconds of each other.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Pause between two questions to DNS: a Service whose pods are not up yet is normal.
const RESOLVE_PAUSE: Duration = Duration::from_secs(1);

/// Failed tries after which the name is resolved anew: a restarted pod has another address.
const FAILURES_TO_RESOLVE: u32 = 4;
