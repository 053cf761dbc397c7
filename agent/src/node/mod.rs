//! The agent of one node: its connections, its rounds, its workers and, on an elector, elections and the coordinator.
//!
//! ```text
//!  mesh ──requests──▶ service ──▶ measure ──▶ supervise::Pool ══▶ workers
//!   │                    │           └──────▶ journal
//!   │                    └──▶ command post (electors) ──▶ coordinator::Coordinator
//!   └──connected, lost───────▶
//! ```
//! | task | owner | ends when | cancelling it is safe because |
//! |---|---|---|---|
//! | command post | [`Agent`] | the node is dropped | the machine is never held across an await |
//! | elector | [`Agent`] | the agent stops, or its state cannot be kept | what it promised is on disk |
//! | one link to an elector | [`Agent`] | the agent stops | it holds only a connection |
//! | reading the epoch | [`Agent`] | a majority of electors has told it | it only asks |
//! | one call to an agent | the command post | its deadline | its answer is an event; nobody else waits for it |

mod attend;
mod command_post;
mod config;
mod elections;
mod emulate;
mod endpoint_board;
mod fence;
mod journal_file;
mod link;
mod measure;
mod outlook;
mod own_rails;
mod results;
mod rounds;
mod route;
mod service;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bench_core::ids::{BootId, Epoch, NodeId, NodeIndex, RunId};
use bench_core::message::{Outcome, Request, Response, Role, TaskId};
use bench_core::node::{Capability, NodeInventory, RailEndpoint};
use bench_core::roster::Roster;
use bench_core::time::{ClockOffset, ClockSample, Mono};
use coordinator::{CallFault, Config, Event};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use transport::control::mesh::{CallError, Limits, Mesh, MeshConfig};
use transport::control::peers::{DEFAULT_BOUND, PeerCache};
use transport::control::resolve::Resolver;

use crate::electors::Electors;
use crate::inventory::{Host, wall_seconds};
use crate::supervise::{Placer, Pool};
use command_post::CommandPost;
pub use config::{AgentConfig, AgentError, Deps};
pub use emulate::{Emulation, EmulationError};
use fence::Fence;
use journal_file::Journals;
use own_rails::OwnRails;
use results::Results;
use rounds::Rounds;

/// A running agent. [`Agent::shutdown`] ends it in order; dropping it stops its tasks at once.
#[derive(Debug)]
pub struct Agent {
    node: Arc<Node>,
    tasks: Vec<JoinHandle<()>>,
    refusals: watch::Receiver<Refusals>,
}

/// What electors said that will not have this agent.
type Refusals = BTreeMap<NodeIndex, String>;

/// What all parts of an agent see.
#[derive(Debug)]
pub(crate) struct Node {
    config: AgentConfig,
    host: Host,
    boot: BootId,
    roster: Roster,
    me: NodeIndex,
    rails: OwnRails,
    placer: Placer,
    fence: Fence,
    journals: Journals,
    results: Results,
    /// How the latest run ended that this node was asked for while it commands.
    outcome: tokio::sync::Mutex<Option<(RunId, Outcome)>>,
    rounds: Rounds,
    pool: Pool,
    /// On an elector.
    post: Option<Arc<CommandPost>>,
    /// On an elector; set once, since it needs the node for its way to the others.
    electors: OnceLock<Arc<Electors>>,
    /// Whom clients' questions were last passed on to.
    commander: Mutex<Option<NodeIndex>>,
    /// Set once, right after the mesh is bound: the mesh needs the node as its service first.
    network: OnceLock<Network>,
    next_task: AtomicU64,
    /// The epoch whose first round here was logged with its instant.
    first_start: Mutex<Option<Epoch>>,
}

#[derive(Debug)]
struct Network {
    mesh: Mesh,
    peers: PeerCache,
    resolver: Resolver,
    refusals: watch::Sender<Refusals>,
    /// Why the latest try to reach an elector failed, where none has succeeded since.
    troubles: Mutex<BTreeMap<NodeIndex, String>>,
}

impl Agent {
    /// Starts the agent: binds its address, begins to connect and, on an elector, takes part in elections.
    ///
    /// # Errors
    /// [`AgentError`] with what to do.
    pub fn start(config: AgentConfig, deps: Deps) -> Result<Self, AgentError> {
        let me = config.me;
        let is_elector = config.roster.electors.contains(&me);
        let post = is_elector.then(|| Arc::new(CommandPost::new(machine_config(&config))));
        let journals = Journals::open(config.state.join("journal"))
            .map_err(|source| AgentError::State { path: config.state.clone(), source })?;
        let node = Arc::new(Node {
            host: deps.host,
            boot: config.boot,
            roster: config.roster.clone(),
            me,
            rails: OwnRails::new(config.rails.clone(), config.root.clone()),
            placer: deps.placer,
            fence: Fence::new(config.roster.electors.len()),
            results: Results::default(),
            outcome: tokio::sync::Mutex::default(),
            journals,
            rounds: Rounds::default(),
            pool: Pool::new(deps.factory),
            post: post.clone(),
            electors: OnceLock::new(),
            commander: Mutex::new(None),
            network: OnceLock::new(),
            next_task: AtomicU64::new(1),
            first_start: Mutex::new(None),
            config,
        });
        let refusals = node.open_network()?;
        let mut tasks = Vec::new();
        if let Some(post) = post {
            tasks.extend(node.start_elector(&post)?);
        }
        for elector in link::dialed_by(me, &node.roster) {
            tasks.push(tokio::spawn(link::keep(Arc::downgrade(&node), elector)));
        }
        tasks.push(tokio::spawn(elections::read_epoch(Arc::downgrade(&node))));
        Ok(Self { node, tasks, refusals })
    }

    /// Waits until most electors that this agent dials refuse it: another living agent has its name, or it runs another
    /// build. A single one may be at fault itself.
    pub async fn refused(&self) -> String {
        let dialed = link::dialed_by(self.node.me, &self.node.roster).len();
        let most = |refusals: &Refusals| refusals.len() * 2 > dialed;
        let mut refusals = self.refusals.clone();
        match refusals.wait_for(most).await {
            Ok(refusals) => refusals.values().next().cloned().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// The name of this node.
    pub fn name(&self) -> &NodeId {
        self.node.name()
    }

    /// Stops the tasks, ends the workers and tells the peers.
    pub async fn shutdown(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        if let Some(electors) = self.node.electors.get() {
            electors.shutdown().await;
        }
        self.node.pool.shutdown().await;
        if let Some(network) = self.node.network.get() {
            network.mesh.shutdown().await;
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Node {
    fn name(&self) -> &NodeId {
        &self.roster.peers[self.me.usize()].node
    }

    fn open_network(self: &Arc<Self>) -> Result<watch::Receiver<Refusals>, AgentError> {
        let role = Role::Agent {
            node: self.name().clone(),
            boot: self.boot,
            roster: self.roster.hash(),
            generation: self.roster.generation,
        };
        let mesh = Mesh::bind(
            MeshConfig {
                listen: self.config.listen,
                key: self.config.key.clone(),
                role,
                build: self.config.build,
                limits: Limits::default(),
            },
            Arc::new(service::NodeService(Arc::downgrade(self))),
        )?;
        let (refusals, heard) = watch::channel(Refusals::new());
        let peers = PeerCache::new(mesh.clone(), DEFAULT_BOUND);
        let resolver = match self.config.dns {
            Some(server) => Resolver::with_server(server, &[])?,
            None => Resolver::system()?,
        };
        let network = Network { mesh, peers, resolver, refusals, troubles: Mutex::default() };
        self.network.set(network).expect("the network of a node is opened once");
        Ok(heard)
    }

    fn start_elector(self: &Arc<Self>, post: &Arc<CommandPost>) -> Result<Vec<JoinHandle<()>>, AgentError> {
        let elections::Elector { electors, duties, events } = elections::open(self)?;
        self.electors.set(Arc::clone(&electors)).expect("the elector of a node is opened once");
        post.feed(Event::Joined { node: self.me, boot: self.boot });
        let weak = || Arc::downgrade(self);
        Ok(vec![
            tokio::spawn(Arc::clone(post).run(weak())),
            tokio::spawn(elections::pump(weak(), Arc::clone(post), events)),
            tokio::spawn(elections::take_part(electors, duties)),
        ])
    }

    /// Takes note of an elector's refusal, or of its end.
    fn refused_by(&self, elector: NodeIndex, reason: Option<String>) {
        self.network().refusals.send_modify(|refusals| {
            match reason {
                Some(reason) => refusals.insert(elector, reason),
                None => refusals.remove(&elector),
            };
        });
    }

    fn network(&self) -> &Network {
        self.network.get().expect("the network is opened before anything is served or asked")
    }

    fn next_task(&self) -> TaskId {
        TaskId(self.next_task.fetch_add(1, Ordering::Relaxed))
    }

    fn inventory(&self, rails: Vec<RailEndpoint>, capabilities: Vec<Capability>) -> NodeInventory {
        NodeInventory {
            node: self.name().clone(),
            hostname: self.host.hostname.clone(),
            kernel: self.host.kernel.clone(),
            cpus: self.host.cpus,
            clock_source: self.host.clock_source.clone(),
            wall_seconds: wall_seconds(),
            rails,
            capabilities,
            notes: self.config.notes.clone(),
        }
    }

    /// A command of the coordinator on this node to any node, itself included.
    async fn command(
        self: &Arc<Self>,
        to: NodeIndex,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, CallFault> {
        // A process that was stopped goes on where it was; what it would start may be somebody else's by now.
        if let (Request::Start(start), Some(electors)) = (&request, self.electors.get())
            && !electors.confirms(start.key.epoch)
        {
            return Err(CallFault::Lost {
                reason: format!("no majority of the electors confirms epoch {}", start.key.epoch),
            });
        }
        if to == self.me {
            return tokio::time::timeout(deadline, self.serve_command(request))
                .await
                .map_err(|_| CallFault::Timeout);
        }
        let name = &self.roster.peers[to.usize()].node;
        let connection = self
            .network()
            .mesh
            .connected_to(name)
            .ok_or_else(|| CallFault::Lost { reason: format!("{name} is not connected") })?;
        connection.call(&request, deadline).await.map_err(|error| match error {
            CallError::Deadline { .. } => CallFault::Timeout,
            other => CallFault::Lost { reason: other.to_string() },
        })
    }

    /// A question to another agent of the roster, over a connection made on demand.
    async fn call_peer(
        self: &Arc<Self>,
        name: &NodeId,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, String> {
        if name == self.name() {
            return Ok(self.serve_own(request).await);
        }
        let peer = self.roster.peers.iter().find(|peer| peer.node == *name);
        let peer = peer.ok_or_else(|| format!("{name} is not in the roster"))?;
        let ask = async {
            let address = link::address_of(&self.network().resolver, peer).await?;
            let connection =
                self.network().peers.get(name, address).await.map_err(|error| error.to_string())?;
            connection.call(&request, deadline).await.map_err(|error| error.to_string())
        };
        match tokio::time::timeout(deadline, ask).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("nothing within {}", bench_core::units::format_duration(deadline))),
        }
    }

    /// A question of this node to itself: a cell whose two ends are both here. Boxed, because serving a command can
    /// lead to such a question.
    fn serve_own(self: &Arc<Self>, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send>> {
        let node = Arc::clone(self);
        Box::pin(async move { node.serve_command(request).await })
    }

    /// This node's clock against the coordinator's: the best of [`CLOCK_SAMPLES`] exchanges.
    async fn offset_to(&self, coordinator: NodeIndex) -> Option<ClockOffset> {
        if coordinator == self.me {
            return Some(ClockOffset::default());
        }
        let name = &self.roster.peers.get(coordinator.usize())?.node;
        let connection = self.network().mesh.connected_to(name)?;
        let mut samples: Vec<ClockSample> = Vec::with_capacity(CLOCK_SAMPLES);
        for _ in 0..CLOCK_SAMPLES {
            let sent: Mono = transport::clock::now();
            match connection.call(&Request::Clock, CLOCK_TIMEOUT).await {
                Ok(Response::Clock { now }) => {
                    samples.push(ClockSample { sent, reference: now, received: transport::clock::now() });
                }
                Ok(_) | Err(_) => break,
            }
        }
        ClockOffset::from_samples(&samples)
    }
}

fn machine_config(config: &AgentConfig) -> Config {
    Config {
        roster: config.roster.peers.iter().map(|peer| peer.node.clone()).collect(),
        electors: config.roster.electors.clone(),
        rails: config.rails.len() as u16,
        join_timeout: config.join_timeout,
    }
}

/// Exchanges for one estimate of a clock's offset: the design's number; the fastest of 8 is close to the path's floor.
const CLOCK_SAMPLES: usize = 8;

/// How long one of these exchanges may take.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(2);
