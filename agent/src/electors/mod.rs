//! The electors: a few agents that agree who commands the mesh and what it has decided, and survive each other.
//!
//! ```text
//!                  Wire::look_around          Ask::Raft, Ask::Admit
//!                        │                            │
//!  empty state ──▶ founding ──▶ store ──▶ openraft ◀──┴──▶ other electors
//!                        (found, or ask)     │
//!                                            ▼
//!                    lead: Elected, Committed, Deposed ──▶ events   ◀── Propose
//! ```
//! | task | owner | ends when | cancelling it is safe because |
//! |---|---|---|---|
//! | [`Electors::run`] | the agent | the agent stops | what is promised is on disk |
//! | openraft's own | the raft | [`Electors::shutdown`] | the same |
//!
//! One elector is not a special case: it elects itself, writes its log and outlives its restarts by the same rules.
//! An elector that does not know its own past is mute, see `founding`. Left to others: the connections ([`Wire`]),
//! and what a decision means (`coordinator`).

mod admit;
mod founding;
mod lead;
mod network;
mod store;
#[cfg(test)]
mod tests;
mod types;
mod wire;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bench_core::ids::{BootId, Epoch, NodeIndex};
use bench_core::message::{CommandView, Standing};
use coordinator::{Entry, Event};
use openraft::error::{InitializeError, RaftError};
use openraft::{Config, Raft, ServerState, SnapshotPolicy};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use self::admit::ask_until_admitted;
pub use self::founding::Quorum;
use self::founding::{Empty, Past, Step};
use self::lead::{Confirmed, Lead};
use self::network::Network;
use self::store::{Identity, Opened, Store};
use self::types::{ElectorId, TypeConfig, epoch_of};
use self::wire::{Answer, Ask, RaftCall, encode};
use crate::patience::look_until;

pub use store::StoreError;
pub use wire::{Answered, Attendance, Surroundings, Wire, WireFault};

/// What an elector must know.
#[derive(Clone, Debug)]
pub struct ElectorsConfig {
    /// Where its state is kept: a folder of its own for each generation of the mesh.
    pub folder: PathBuf,
    /// Its position.
    pub me: NodeIndex,
    /// Its process.
    pub boot: BootId,
    /// All electors, itself included.
    pub electors: Vec<NodeIndex>,
    /// Who must be there before the mesh is founded.
    pub quorum: Quorum,
    /// How long it waits for electors that it does not hear before a majority founds the mesh.
    pub join_timeout: Duration,
}

/// One elector.
#[derive(Debug)]
pub struct Electors {
    config: ElectorsConfig,
    wire: Arc<dyn Wire>,
    stage: Mutex<Stage>,
    /// It is running.
    begun: Notify,
    confirmed: Confirmed,
    proposals: mpsc::UnboundedSender<Entry>,
}

/// The ends of an elector's channels that [`Electors::run`] works on.
#[derive(Debug)]
pub struct Duties {
    opened: Opened,
    proposals: mpsc::UnboundedReceiver<Entry>,
    events: mpsc::UnboundedSender<Event>,
}

/// How far an elector is.
#[derive(Debug)]
enum Stage {
    /// It has no state.
    Empty,
    /// It is one of the electors, or asks to be.
    Running(Box<Running>),
}

#[derive(Clone)]
struct Running {
    identity: Identity,
    raft: Raft<TypeConfig>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Running").field(&self.identity).finish()
    }
}

impl Electors {
    /// Opens the elector's state. `events` hears who commands and what is decided, once [`Electors::run`] runs.
    ///
    /// # Errors
    /// [`StoreError`] if the folder cannot be used.
    pub fn open(
        config: ElectorsConfig,
        wire: Arc<dyn Wire>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<(Arc<Self>, Duties), StoreError> {
        let opened = Store::open(&config.folder, config.me.0)?;
        let (proposals, proposed) = mpsc::unbounded_channel();
        let electors = Self {
            config,
            wire,
            stage: Mutex::new(Stage::Empty),
            begun: Notify::new(),
            confirmed: Confirmed::default(),
            proposals,
        };
        let duties = Duties { opened, proposals: proposed, events };
        Ok((Arc::new(electors), duties))
    }

    /// Takes part in elections until the state can no longer be kept.
    ///
    /// # Errors
    /// A sentence that says what ended it.
    pub async fn run(self: Arc<Self>, duties: Duties) -> Result<(), String> {
        let Duties { opened, proposals, events } = duties;
        let store = match opened {
            Opened::Kept(store) => *store,
            Opened::Empty => self.settle(Past::Unknown).await?,
            Opened::Lost { reason } => {
                tracing::warn!(%reason, "this elector's state is damaged: it does not vote until it is replaced");
                self.settle(Past::Lost).await?
            }
        };
        let (running, applied) = self.start_raft(store).await?;
        let (electors, wire) = (self.config.electors.len(), Arc::clone(&self.wire));
        let asking = ask_until_admitted(running.clone(), Arc::clone(&self.wire));
        let leading = Lead::new(&running, electors, wire, &self.confirmed, events).run(applied, proposals);
        tokio::join!(asking, leading).1
    }

    /// Answers another elector's question, asked through its [`Wire`].
    pub async fn serve(&self, from: NodeIndex, payload: &[u8]) -> Vec<u8> {
        let answer = match (postcard::from_bytes(payload), self.running_soon().await) {
            (Err(error), _) => declined(format!("the question cannot be read: {error}")),
            (Ok(_), None) => declined("this elector has no state yet".to_owned()),
            (Ok(Ask::Raft { to, call }), Some(running)) if to == running.identity.id => {
                serve_raft(&running.raft, call).await
            }
            (Ok(Ask::Raft { to, .. }), Some(running)) => {
                declined(format!("{to} is no more, here is {}", running.identity.id))
            }
            (Ok(Ask::Admit { id }), Some(_)) if id.node() != from => {
                declined(format!("elector {from} may not ask for {id}"))
            }
            (Ok(Ask::Admit { id }), Some(running)) => match admit::admit(&running.raft, id).await {
                Ok(()) => Answer::Admitted,
                Err(reason) => declined(reason),
            },
        };
        encode(&answer)
    }

    /// Has an entry decided. It is decided when [`Event::Committed`] says so; if it is lost, [`Event::Deposed`] comes.
    pub fn propose(&self, entry: Entry) {
        // Without a receiver the elector has ended and said so.
        let _: Result<_, _> = self.proposals.send(entry);
    }

    /// Whether a majority has confirmed this epoch a moment ago: a process that was stopped and goes on finds that it
    /// does not know.
    pub fn confirms(&self, epoch: Epoch) -> bool {
        self.confirmed.holds(epoch)
    }

    /// What this elector knows of who commands.
    pub fn view(&self) -> CommandView {
        let Some(running) = self.running() else {
            return CommandView {
                seen: None,
                commander: None,
                standing: Standing::Empty { boot: self.config.boot },
            };
        };
        let metrics = running.raft.metrics().borrow().clone();
        let me = running.identity.id;
        let votes = metrics.membership_config.membership().voter_ids().any(|id| id == me);
        CommandView {
            seen: (metrics.vote.leader_id.term > 0).then(|| epoch_of(&metrics.vote)),
            commander: metrics.current_leader.map(|_| epoch_of(&metrics.vote)),
            standing: if votes || me.incarnation == 0 {
                Standing::Voter { founders: running.identity.founders }
            } else {
                Standing::Mute
            },
        }
    }

    /// Ends it in order.
    pub async fn shutdown(&self) {
        if let Some(running) = self.running() {
            // It fails only if its task has panicked.
            let _: Result<_, _> = running.raft.shutdown().await;
        }
    }

    /// Decides what an elector without state is, and gives it state.
    async fn settle(&self, past: Past) -> Result<Store, String> {
        let empty = Empty {
            me: self.config.me,
            boot: self.config.boot,
            electors: self.config.electors.clone(),
            past,
            quorum: self.config.quorum,
            join_timeout: self.config.join_timeout,
        };
        let begun = Instant::now();
        let identity = loop {
            let around = self.wire.look_around().await;
            match empty.decide(&around, begun.elapsed()) {
                Step::Found(identity) => {
                    tracing::info!(founders = identity.founders.len(), "this elector founds the mesh");
                    break identity;
                }
                Step::Ask(identity) => {
                    tracing::warn!(
                        "this elector has no state of a mesh that had begun: it asks to be taken in"
                    );
                    break identity;
                }
                Step::Wait => tokio::time::sleep(LOOK_EVERY).await,
            }
        };
        Store::found(&self.config.folder, identity).map_err(|error| error.to_string())
    }

    async fn start_raft(
        &self,
        store: Store,
    ) -> Result<(Running, mpsc::UnboundedReceiver<store::Applied>), String> {
        let Store { identity, log, machine, applied } = store;
        let network = Network { me: identity.id, wire: Arc::clone(&self.wire) };
        let config = raft_config().validate().map_err(|error| error.to_string())?;
        let raft = Raft::new(identity.id, Arc::new(config), network, log, machine)
            .await
            .map_err(|error| error.to_string())?;
        let running = Running { identity, raft };
        // Visible before it elects: whom it asks for a vote may ask back.
        *self.stage() = Stage::Running(Box::new(running.clone()));
        self.begun.notify_waiters();
        if running.identity.id.incarnation == 0 {
            found_cluster(&running.raft, self.config.me, &self.config.electors).await?;
        }
        Ok((running, applied))
    }

    /// The same, with a moment's patience: the first of the founders asks for votes as soon as it has state, and without
    /// an answer it waits for a whole election timeout before it asks again. Cancelling it loses nothing.
    async fn running_soon(&self) -> Option<Running> {
        look_until(&self.begun, Instant::now() + FOUNDING_PATIENCE, || self.running()).await
    }

    fn running(&self) -> Option<Running> {
        match &*self.stage() {
            Stage::Empty => None,
            Stage::Running(running) => Some((**running).clone()),
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().expect("nothing panics while the stage is held")
    }
}

/// Gives the log its first entry, the same at every founder; one that has a log or has voted has it already.
///
/// Whoever does so stands for election at once, so the founders take turns by their position: the first one that is
/// there is elected, and the others find that they have voted.
async fn found_cluster(raft: &Raft<TypeConfig>, me: NodeIndex, electors: &[NodeIndex]) -> Result<(), String> {
    let turn = electors.iter().take_while(|elector| **elector < me).count();
    let begun = Instant::now();
    while is_untouched(raft) && begun.elapsed() < FOUNDING_TURN * turn as u32 {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let voters: BTreeSet<ElectorId> = electors.iter().map(|elector| ElectorId::founder(*elector)).collect();
    match raft.initialize(voters).await {
        Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => {}
        Err(error) => return Err(error.to_string()),
    }
    let alone = electors.len() == 1 && raft.metrics().borrow().state != ServerState::Leader;
    if alone {
        // Saves the wait for the first tick; if it fails, the tick comes.
        let _: Result<_, _> = raft.trigger().elect().await;
    }
    Ok(())
}

/// Whether nobody has asked this elector for anything yet.
fn is_untouched(raft: &Raft<TypeConfig>) -> bool {
    let metrics = raft.metrics();
    let metrics = metrics.borrow();
    metrics.last_log_index.is_none() && metrics.vote.leader_id.term == 0
}

async fn serve_raft(raft: &Raft<TypeConfig>, call: RaftCall) -> Answer {
    match call {
        RaftCall::Append(request) => Answer::Append(raft.append_entries(request).await),
        RaftCall::Vote(request) => Answer::Vote(raft.vote(request).await),
        RaftCall::Snapshot(request) => Answer::Snapshot(raft.install_snapshot(request).await),
    }
}

fn declined(reason: String) -> Answer {
    Answer::Declined { reason }
}

fn raft_config() -> Config {
    Config {
        cluster_name: "railmesh".to_owned(),
        heartbeat_interval: HEARTBEAT.as_millis() as u64,
        election_timeout_min: ELECTION_MIN.as_millis() as u64,
        election_timeout_max: ELECTION_MAX.as_millis() as u64,
        install_snapshot_timeout: SNAPSHOT_TIMEOUT.as_millis() as u64,
        max_payload_entries: MAX_PAYLOAD_ENTRIES,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_EVERY),
        max_in_snapshot_log_to_keep: KEPT_ENTRIES,
        snapshot_max_chunk_size: SNAPSHOT_CHUNK_BYTES,
        ..Config::default()
    }
}

/// How often a leader gives a sign of life, and how long openraft waits for the answer: a hundred times the round trip
/// of a rack, and seldom enough that an idle mesh of five electors stays below 0.5 % of a core.
const HEARTBEAT: Duration = Duration::from_millis(200);

/// Shortest election timeout. openraft waits for the longest one (the leader's lease) and then this, at random up to
/// the longest: a dead leader is followed after 1.35 to 1.8 s, which leaves 1.2 s of the design's 3 s for the first
/// start; a living one must be silent through 7 heartbeats on end.
const ELECTION_MIN: Duration = Duration::from_millis(450);

/// Longest election timeout.
const ELECTION_MAX: Duration = Duration::from_millis(900);

/// How long a question waits for an elector without state: some looks around, and less than a vote's time-out.
const FOUNDING_PATIENCE: Duration = Duration::from_millis(300);

/// How long a part of a snapshot may take.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);

/// Entries in one message: an accepted plan is a few KiB, and a message at most 1 MiB.
const MAX_PAYLOAD_ENTRIES: u64 = 32;

/// Entries between two snapshots: the log stays below a few hundred KiB, also in a run of thousands of rounds.
const SNAPSHOT_EVERY: u64 = 1_000;

/// Entries that are kept behind a snapshot for electors that lag a little.
const KEPT_ENTRIES: u64 = 200;

/// Part of a snapshot in one message: half of the 1 MiB limit of a control message.
const SNAPSHOT_CHUNK_BYTES: u64 = 512 << 10;

/// Pause between two looks around of an elector without state: a cold start costs a few of them.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// How much later each founder stands for election than the one before it: an election on a busy machine.
const FOUNDING_TURN: Duration = Duration::from_millis(700);
