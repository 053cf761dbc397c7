//! What this node answers: commands of the coordinator, questions of peers and clients.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bench_core::ids::Epoch;
use bench_core::message::{HandshakeReply, Refusal, Request, Response, Role, StatusReply};
use coordinator::Event;
use transport::control::mesh::{Connection, Peer, Service};

use super::Node;
use super::link::LinkState;

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
                None => Response::Invalid {
                    reason: "the agent is stopping".to_owned(),
                },
            }
        })
    }

    fn connected(&self, connection: Connection) {
        if let (Some(node), Peer::Agent { node: name, boot, .. }) = (self.0.upgrade(), connection.peer())
            && let (Some(post), Some(index)) = (&node.post, node.roster.index_of(name))
        {
            tracing::info!(node = %name, "joined");
            post.feed(Event::Joined {
                node: index,
                boot: *boot,
            });
        }
    }

    fn lost(&self, peer: &Peer, reason: &str) {
        if let (Some(node), Some(name)) = (self.0.upgrade(), peer.node())
            && let (Some(post), Some(index)) = (&node.post, node.roster.index_of(name))
            // A connection that replaced this one may be there already.
            && node.network().mesh.connected_to(name).is_none()
        {
            tracing::warn!(node = %name, reason, "left");
            post.feed(Event::Left {
                node: index,
                reason: reason.to_owned(),
            });
        }
    }
}

impl Node {
    fn admit(&self, role: &Role) -> Result<Option<Epoch>, Refusal> {
        match role {
            Role::Client => Ok(self.fence.highest()),
            Role::Agent {
                node,
                roster,
                generation,
                ..
            } => {
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
                    None => Err(Refusal::Unknown {
                        node: self.name().clone(),
                        name: node.clone(),
                    }),
                }
            }
        }
    }

    /// Answers a request of `peer`.
    async fn serve(self: &Arc<Self>, peer: &Peer, request: Request) -> Response {
        let allowed = match &request {
            Request::Probe { epoch }
            | Request::Collect { epoch, .. }
            | Request::StoreResult { epoch, .. } => self.may_command(*epoch, peer),
            Request::Prepare(prepare) => self.may_command(prepare.key.epoch, peer),
            Request::Start(start) => self.may_command(start.key.epoch, peer),
            Request::Abort { key } => self.may_command(key.epoch, peer),
            Request::Handshake { .. } => match peer {
                Peer::Agent { .. } => Ok(()),
                Peer::Client { .. } => Err("only an agent may ask for endpoints".to_owned()),
            },
            Request::Ping
            | Request::Clock
            | Request::Submit { .. }
            | Request::Watch { .. }
            | Request::Cancel { .. }
            | Request::Status => Ok(()),
        };
        match allowed {
            Ok(()) => self.serve_command(request).await,
            Err(reason) => Response::Invalid { reason },
        }
    }

    /// A command comes from the elector that its epoch names, or it is none.
    fn may_command(&self, epoch: Epoch, peer: &Peer) -> Result<(), String> {
        let named = self
            .roster
            .peers
            .get(usize::from(epoch.elector))
            .map(|peer| &peer.node);
        match peer {
            Peer::Agent { node, .. } if Some(node) == named => Ok(()),
            Peer::Agent { node, .. } => Err(format!("{node} may not command in epoch {epoch}")),
            Peer::Client { .. } => Err("a client may not command agents: submit a plan".to_owned()),
        }
    }

    /// Answers a request whose sender was checked.
    pub(super) async fn serve_command(self: &Arc<Self>, request: Request) -> Response {
        match request {
            Request::Probe { epoch } => match self.fence.pass(epoch) {
                Err(refusal) => refusal,
                Ok(()) => self.probe().await,
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
            Request::Collect {
                epoch,
                run,
                cells,
                skip,
            } => match self.fence.pass(epoch) {
                Err(refusal) => refusal,
                Ok(()) => self.collect(run, &cells, skip),
            },
            Request::StoreResult {
                epoch,
                run,
                from,
                records,
            } => match self.fence.pass(epoch) {
                Err(refusal) => refusal,
                Ok(()) => match self.results.keep(epoch, run, from, records) {
                    Ok(()) => Response::Done,
                    Err(reason) => Response::Invalid { reason },
                },
            },
            Request::Handshake { key, cells } => {
                let endpoints = self
                    .rounds
                    .get_or_begin(key)
                    .endpoints(&cells, HANDSHAKE_LIMIT)
                    .await;
                Response::Handshake(HandshakeReply { endpoints })
            }
            Request::Ping => Response::Pong,
            Request::Clock => Response::Clock {
                now: transport::clock::now(),
            },
            Request::Submit { .. } | Request::Watch { .. } | Request::Cancel { .. } | Request::Status => {
                self.serve_client(request).await
            }
        }
    }

    async fn probe(&self) -> Response {
        match self.pool.capabilities().await {
            Ok(capabilities) => Response::Inventory(Box::new(self.inventory(capabilities))),
            Err(failure) => Response::Invalid {
                reason: failure.detail,
            },
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
            Err(error) => Response::Invalid {
                reason: format!("the journal cannot be read: {error}"),
            },
        }
    }

    /// Answers a client, here on the elected node, else by asking it.
    async fn serve_client(self: &Arc<Self>, request: Request) -> Response {
        let Some(post) = &self.post else {
            return self.forward(request).await;
        };
        match request {
            Request::Submit { run, plan } => post.submit(run, plan).await,
            Request::Watch { run, from, wait } => post.watch(run, from, wait).await,
            Request::Cancel { run } => post.cancel(run),
            Request::Status => Response::Status(Box::new(StatusReply {
                answered_by: self.name().clone(),
                coordinator: post.epoch().map(|epoch| (self.name().clone(), epoch)),
                members: post.members(self),
                run: post.latest(),
            })),
            Request::Ping
            | Request::Clock
            | Request::Probe { .. }
            | Request::Prepare(_)
            | Request::Start(_)
            | Request::Abort { .. }
            | Request::Collect { .. }
            | Request::StoreResult { .. }
            | Request::Handshake { .. } => Response::Invalid {
                reason: "not a client's question".to_owned(),
            },
        }
    }

    async fn forward(self: &Arc<Self>, request: Request) -> Response {
        let state = self.network().link.borrow().clone();
        let reason = match state {
            LinkState::Up { connection } => match connection.call(&request, FORWARD_LIMIT).await {
                Ok(response) => return self.sign(response),
                Err(error) => format!("{} reaches it no more: {error}", self.name()),
            },
            LinkState::Down { reason } | LinkState::Refused { reason } => {
                format!("{} does not reach it: {reason}", self.name())
            }
        };
        match request {
            Request::Status => Response::Status(Box::new(self.status_alone(&reason))),
            _ => Response::NoCoordinator { reason },
        }
    }

    fn sign(&self, response: Response) -> Response {
        match response {
            Response::Status(mut status) => {
                status.answered_by = self.name().clone();
                Response::Status(status)
            }
            other => other,
        }
    }

    /// What this node can say of the mesh without a coordinator.
    fn status_alone(&self, reason: &str) -> StatusReply {
        let member = |peer: &bench_core::roster::Peer| bench_core::message::MemberStatus {
            node: peer.node.clone(),
            address: format!("{}:{}", peer.host, peer.port),
            absent: (peer.node != *self.name()).then(|| format!("not known: {reason}")),
        };
        StatusReply {
            answered_by: self.name().clone(),
            coordinator: None,
            members: self.roster.peers.iter().map(member).collect(),
            run: None,
        }
    }
}

/// How long a handshake waits for the listener: above every plan's time to arm, since the asker gives up by itself.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(60);

/// Observations in one answer to a collect: with marks and histogram at most 12 KiB each, half of a batch's 16 MiB.
const COLLECT_BATCH: usize = 640;

/// How long a client's question may take at the coordinator: above the longest watch.
const FORWARD_LIMIT: Duration = Duration::from_secs(15);
