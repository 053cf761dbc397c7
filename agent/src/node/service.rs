//! What this node answers: commands of the coordinator, questions of peers and clients.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bench_core::ids::{BootId, Epoch, NodeId};
use bench_core::message::{HandshakeReply, Refusal, Request, Response, Role};
use coordinator::Event;
use transport::control::mesh::{Connection, Peer, Service};

use super::Node;

/// The node as the mesh sees it. Holds it weakly, because the node holds the mesh.
#[derive(Debug)]
pub(super) struct NodeService(pub(super) Weak<Node>);

impl Service for NodeService {
    fn admit(&self, role: &Role) -> Result<Option<Epoch>, Refusal> {
        match self.0.upgrade() {
            Some(node) => node.admit(role),
            None => Ok(None),
        }
    }

    fn call(&self, peer: Peer, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(node) => node.serve(&peer, request).await,
                None => Response::Invalid { reason: "the agent is stopping".to_owned() },
            }
        })
    }

    fn connected(&self, connection: Connection) {
        if let (Some(node), Peer::Agent { node: name, boot, .. }) = (self.0.upgrade(), connection.peer()) {
            node.joined(name, *boot);
        }
    }

    fn lost(&self, peer: &Peer, reason: &str) {
        if let (Some(node), Some(name)) = (self.0.upgrade(), peer.node()) {
            node.left(name, reason);
        }
    }
}

impl Node {
    /// A node is connected: a member, where this node is an elector.
    pub(super) fn joined(&self, name: &NodeId, boot: BootId) {
        if let (Some(post), Some(index)) = (&self.post, self.roster.index_of(name)) {
            tracing::info!(node = %name, "joined");
            post.feed(Event::Joined { node: index, boot });
        }
    }

    /// A connection with a node is lost.
    pub(super) fn left(&self, name: &NodeId, reason: &str) {
        if let (Some(post), Some(index)) = (&self.post, self.roster.index_of(name))
            // A connection that replaced this one may be there already.
            && self.network().mesh.connected_to(name).is_none()
        {
            tracing::warn!(node = %name, reason, "left");
            post.feed(Event::Left { node: index, reason: reason.to_owned() });
        }
    }

    fn admit(&self, role: &Role) -> Result<Option<Epoch>, Refusal> {
        match role {
            Role::Client => Ok(self.fence.highest()),
            Role::Agent { node, roster, generation, .. } => {
                if self.roster.hash() != *roster {
                    return Err(Refusal::Roster {
                        node: self.name().clone(),
                        theirs: self.roster.hash(),
                        ours: *roster,
                        their_generation: self.roster.generation,
                        our_generation: *generation,
                    });
                }
                match self.roster.index_of(node) {
                    Some(_) => Ok(self.fence.highest()),
                    None => Err(Refusal::Unknown { node: self.name().clone(), name: node.clone() }),
                }
            }
        }
    }

    /// Answers a request of `peer`.
    async fn serve(self: &Arc<Self>, peer: &Peer, request: Request) -> Response {
        let allowed = match &request {
            Request::Probe { epoch, .. }
            | Request::Collect { epoch, .. }
            | Request::StoreResult { epoch, .. } => self.may_command(*epoch, peer),
            Request::Prepare(prepare) => self.may_command(prepare.key.epoch, peer),
            Request::Start(start) => self.may_command(start.key.epoch, peer),
            Request::Abort { key } => self.may_command(key.epoch, peer),
            Request::Handshake { .. } => match peer {
                Peer::Agent { .. } => Ok(()),
                Peer::Client { .. } => Err("only an agent may ask for endpoints".to_owned()),
            },
            Request::Attend(attend) if peer.node() != Some(&attend.node) => {
                Err(format!("{peer} attends in the name of {}", attend.node))
            }
            Request::Kept { .. } if peer.node().is_none() => {
                Err("only an agent may ask for what was kept".to_owned())
            }
            Request::Ping
            | Request::Clock
            | Request::Attend(_)
            | Request::Kept { .. }
            | Request::Submit { .. }
            | Request::Watch { .. }
            | Request::Cancel { .. }
            | Request::Status
            | Request::WhoCommands
            | Request::Raft { .. } => Ok(()),
        };
        match (allowed, request) {
            (
                Ok(()),
                request @ (Request::Submit { .. }
                | Request::Watch { .. }
                | Request::Cancel { .. }
                | Request::Attend(_)
                | Request::Status),
            ) => self.serve_client(peer, request).await,
            (Ok(()), Request::Raft { payload }) => self.serve_elector(peer, &payload).await,
            (Ok(()), request) => self.serve_command(request).await,
            (Err(reason), _) => Response::Invalid { reason },
        }
    }

    /// A command comes from the elector that its epoch names, or it is none.
    fn may_command(&self, epoch: Epoch, peer: &Peer) -> Result<(), String> {
        let named = self.roster.peers.get(usize::from(epoch.elector)).map(|peer| &peer.node);
        match peer {
            Peer::Agent { node, .. } if Some(node) == named => Ok(()),
            Peer::Agent { node, .. } => Err(format!("{node} may not command in epoch {epoch}")),
            Peer::Client { .. } => Err("a client may not command agents: submit a plan".to_owned()),
        }
    }

    /// Answers a request whose sender was checked.
    pub(super) async fn serve_command(self: &Arc<Self>, request: Request) -> Response {
        match request {
            Request::Probe { epoch, rails } => match self.fence.pass_when_open(epoch).await {
                Err(refusal) => refusal,
                Ok(()) => self.probe(rails.as_deref()).await,
            },
            Request::Prepare(prepare) => match self.fence.pass(prepare.key.epoch) {
                Err(refusal) => refusal,
                Ok(()) => Response::Prepared(self.prepare(prepare).await),
            },
            Request::Start(start) => match self.fence.pass(start.key.epoch) {
                Err(refusal) => refusal,
                Ok(()) => Response::Observations(self.start(start).await),
            },
            Request::Abort { key } => {
                self.abort(key).await;
                Response::Done
            }
            Request::Collect { epoch, run, cells, skip } => match self.fence.pass_when_open(epoch).await {
                Err(refusal) => refusal,
                Ok(()) => self.collect(run, &cells, skip),
            },
            Request::StoreResult { epoch, run, from, records } => match self.fence.pass(epoch) {
                Err(refusal) => refusal,
                Ok(()) => match self.results.keep(epoch, run, from, records) {
                    Ok(()) => Response::Done,
                    Err(reason) => Response::Invalid { reason },
                },
            },
            Request::Handshake { key, sources } => {
                let destinations = self.rounds.get_or_begin(key).meet(sources, HANDSHAKE_LIMIT).await;
                Response::Handshake(HandshakeReply { destinations })
            }
            Request::Kept { run, from } => self.serve_kept(run, from),
            Request::Ping => Response::Pong,
            Request::Clock => Response::Clock { now: transport::clock::now() },
            Request::WhoCommands => Response::Commander(self.view()),
            Request::Submit { .. }
            | Request::Watch { .. }
            | Request::Cancel { .. }
            | Request::Attend(_)
            | Request::Status
            | Request::Raft { .. } => Response::Invalid { reason: "not a command".to_owned() },
        }
    }

    async fn probe(&self, names: Option<&[String]>) -> Response {
        let rails = match self.rails.of(names) {
            Ok(rails) => rails,
            Err(reason) => return Response::NoSuchRails { reason },
        };
        let capabilities = match rails.first() {
            Some(first) => self.pool.capabilities(&self.placer.spec(first)).await,
            None => Ok(Vec::new()),
        };
        match capabilities {
            Ok(capabilities) => Response::Inventory(Box::new(self.inventory(rails.to_vec(), capabilities))),
            Err(failure) => Response::Invalid { reason: failure.detail },
        }
    }

    fn collect(&self, run: bench_core::ids::RunId, cells: &[bench_core::ids::CellId], skip: u64) -> Response {
        match self.journals.read(run) {
            Ok(observations) => {
                let wanted = observations
                    .into_iter()
                    .filter(|o| cells.is_empty() || cells.contains(&o.key.cell))
                    .skip(usize::try_from(skip).unwrap_or(usize::MAX));
                Response::Observations(wanted.take(COLLECT_BATCH).collect())
            }
            Err(error) => Response::Invalid { reason: format!("the journal cannot be read: {error}") },
        }
    }

    /// Passes an elector's question on to the one here.
    async fn serve_elector(&self, peer: &Peer, payload: &[u8]) -> Response {
        let from = peer.node().and_then(|name| self.roster.index_of(name));
        match (from, self.electors.get()) {
            (Some(from), Some(electors)) if self.roster.electors.contains(&from) => {
                Response::Raft { payload: electors.serve(from, payload).await }
            }
            (Some(_) | None, Some(_) | None) => Response::Invalid {
                reason: format!("{peer} asks {} what only electors ask each other", self.name()),
            },
        }
    }
}

/// How long a handshake waits for the listener: above every plan's time to arm, since the asker gives up by itself.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(60);

/// Observations in one answer to a collect: with marks and histogram at most 12 KiB each, half of a batch's 16 MiB.
const COLLECT_BATCH: usize = 640;
