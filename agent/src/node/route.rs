//! Clients' questions: answered where this node commands, else passed on to whoever does.

use std::sync::Arc;
use std::time::Duration;

use bench_core::ids::NodeIndex;
use bench_core::message::{MemberStatus, Request, Response, StatusReply};
use tokio::time::Instant;
use transport::control::mesh::Peer;

use super::Node;
use super::command_post::{Cancelled, CommandPost};

impl Node {
    /// Answers a client, here or by asking the node that commands. What another node passes on is not passed on again.
    pub(super) async fn serve_client(self: &Arc<Self>, peer: &Peer, request: Request) -> Response {
        if let Some(post) = self.commanding() {
            return self.answer_client(post, request).await;
        }
        match peer {
            Peer::Client { .. } => self.forward(request).await,
            Peer::Agent { .. } => {
                Response::NoCoordinator { reason: format!("{} does not command", self.name()) }
            }
        }
    }

    fn commanding(&self) -> Option<&CommandPost> {
        self.post.as_deref().filter(|post| post.epoch().is_some())
    }

    async fn answer_client(self: &Arc<Self>, post: &CommandPost, request: Request) -> Response {
        match request {
            Request::Submit { run, plan } => post.submit(run, plan).await,
            Request::Watch { run, from, wait } => self.watch(post, run, from, wait).await,
            Request::Attend(attend) => self.answer_attend(post, *attend).await,
            Request::Cancel { run } => match post.cancel(run) {
                Cancelled::Asked => Response::Done,
                Cancelled::Unknown => Response::UnknownRun { run },
                Cancelled::Over(run) => Response::AlreadyOver { run, outcome: self.outcome(post, run).await },
            },
            Request::Status => Response::Status(Box::new(StatusReply {
                answered_by: self.name().clone(),
                coordinator: post.epoch().map(|epoch| (self.name().clone(), epoch)),
                lack: None,
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
            | Request::Kept { .. }
            | Request::WhoCommands
            | Request::Raft { .. }
            | Request::Handshake { .. } => Response::Invalid { reason: "not a client's question".to_owned() },
        }
    }

    /// Asks the node that commands; while an election may be on, looks for it for [`PATIENCE`].
    pub(super) async fn forward(self: &Arc<Self>, request: Request) -> Response {
        let begun = Instant::now();
        loop {
            let mut reason = match self.known_commander() {
                None => None,
                Some(elector) if elector == self.me => match self.commanding() {
                    Some(post) => return self.answer_client(post, request).await,
                    None => None,
                },
                Some(elector) => match self.pass_on(elector, &request).await {
                    Ok(response) => return response,
                    Err(reason) => Some(reason),
                },
            };
            self.forget_commander();
            let views = self.ask_electors().await;
            let commander = views.values().filter_map(|view| view.commander).max();
            match commander {
                Some(epoch) => self.remember_commander(NodeIndex(epoch.elector)),
                None => reason = Some(self.lack(&views)),
            }
            if begun.elapsed() >= PATIENCE {
                let lack = self.lack(&views);
                return match request {
                    Request::Status => Response::Status(Box::new(self.status_alone(lack))),
                    _ => Response::NoCoordinator { reason: reason.unwrap_or(lack) },
                };
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    async fn pass_on(&self, elector: NodeIndex, request: &Request) -> Result<Response, String> {
        let name = &self.roster.peers[elector.usize()].node;
        let connection = self
            .network()
            .mesh
            .connected_to(name)
            .ok_or_else(|| format!("{} does not reach the coordinator {name}", self.name()))?;
        match connection.call(request, limit_of(request)).await {
            Ok(Response::NoCoordinator { reason }) => Err(reason),
            Ok(Response::Status(mut status)) => {
                status.answered_by = self.name().clone();
                Ok(Response::Status(status))
            }
            Ok(response) => Ok(response),
            Err(error) => Err(error.to_string()),
        }
    }

    fn known_commander(&self) -> Option<NodeIndex> {
        *self.commander.lock().expect(HELD)
    }

    fn remember_commander(&self, elector: NodeIndex) {
        *self.commander.lock().expect(HELD) = Some(elector);
    }

    fn forget_commander(&self) {
        *self.commander.lock().expect(HELD) = None;
    }

    /// What this node can say of the mesh without a coordinator.
    fn status_alone(&self, lack: String) -> StatusReply {
        let member = |peer: &bench_core::roster::Peer| MemberStatus {
            node: peer.node.clone(),
            address: format!("{}:{}", peer.host, peer.port),
            absent: (peer.node != *self.name()).then(|| "not known without a coordinator".to_owned()),
        };
        StatusReply {
            answered_by: self.name().clone(),
            coordinator: None,
            lack: Some(lack),
            members: self.roster.peers.iter().map(member).collect(),
            run: None,
        }
    }
}

/// How long the coordinator may take to answer: a watch waits for news first.
fn limit_of(request: &Request) -> Duration {
    match request {
        Request::Watch { wait, .. } => *wait + ANSWER_LIMIT,
        Request::Attend(attend) => attend.wait + JUDGE_LIMIT,
        Request::Cancel { .. } => JUDGE_LIMIT,
        _ => ANSWER_LIMIT,
    }
}

/// How long a client's question looks for a coordinator: an election on a busy machine, twice.
const PATIENCE: Duration = Duration::from_secs(4);

/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(25);

/// How much longer than that an answer to a one-shot agent may take: the judge of the largest runs needs a minute.
const JUDGE_LIMIT: Duration = Duration::from_secs(90);

/// How long the coordinator may take for an answer: it decides with a majority at most.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// Why this lock cannot be poisoned.
const HELD: &str = "nothing panics while the commander is held";
