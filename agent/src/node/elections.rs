//! The elector on this node, where there is one: its way to the others, and what it tells the command post.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bench_core::ids::{Epoch, NodeIndex};
use bench_core::message::{CommandView, Request, Response, Standing};
use coordinator::Event;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use transport::control::mesh::CallError;

use super::command_post::CommandPost;
use super::{AgentError, Node};
use crate::electors::{
    Answered, Attendance, Duties, Electors, ElectorsConfig, Surroundings, Wire, WireFault,
};

/// The elector and what it has to say.
#[derive(Debug)]
pub(super) struct Elector {
    pub(super) electors: Arc<Electors>,
    pub(super) duties: Duties,
    pub(super) events: mpsc::UnboundedReceiver<Event>,
}

/// Opens the elector's state on this node.
///
/// # Errors
/// [`AgentError::Electors`] if the state folder cannot be used.
pub(super) fn open(node: &Arc<Node>) -> Result<Elector, AgentError> {
    let config = ElectorsConfig {
        folder: node.config.state.join(format!("electors-{}", node.roster.generation)),
        me: node.me,
        boot: node.boot,
        electors: node.roster.electors.clone(),
        quorum: node.config.quorum,
        join_timeout: node.config.join_timeout,
    };
    let wire = Arc::new(MeshWire {
        node: Arc::downgrade(node),
        asked: Mutex::default(),
        silent_since: Mutex::default(),
    });
    // An elector says a few words a second at most, and the pump never waits.
    let (sender, events) = mpsc::unbounded_channel();
    let (electors, duties) = Electors::open(config, wire, sender)?;
    Ok(Elector { electors, duties, events })
}

/// Takes part in elections until the agent stops or the elector's state can no longer be kept.
pub(super) async fn take_part(electors: Arc<Electors>, duties: Duties) {
    if let Err(reason) = electors.run(duties).await {
        tracing::error!(
            %reason,
            "this elector has ended: the others go on without it; restart this agent when the cause is removed"
        );
    }
}

/// Passes on what the elector says.
pub(super) async fn pump(
    node: Weak<Node>,
    post: Arc<CommandPost>,
    mut events: mpsc::UnboundedReceiver<Event>,
) {
    while let Some(event) = events.recv().await {
        let Some(node) = node.upgrade() else { return };
        if let Event::Elected { epoch, .. } = &event {
            node.fence.learn(node.me, Some(*epoch));
            tracing::info!(node = %node.name(), %epoch, "commands the mesh");
        }
        post.feed(event);
    }
}

/// Reads the epoch from the electors until a majority has told it: before that, this node obeys nobody.
pub(super) async fn read_epoch(node: Weak<Node>) {
    let mut told = BTreeSet::new();
    let mut pause = FIRST_READ_PAUSE;
    loop {
        let Some(strong) = node.upgrade() else { return };
        let electors = strong.roster.electors.clone();
        for (elector, view) in strong.ask_electors().await {
            // One that may have forgotten a vote cannot say what it has seen.
            if let Standing::Voter { .. } = view.standing {
                strong.fence.learn(elector, view.seen);
                told.insert(elector);
            }
        }
        if told.len() > electors.len() / 2 {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // Never without a pause: what is asked may tell nothing new.
            () = async {
                strong.fence.knock().await;
                tokio::time::sleep(FIRST_READ_PAUSE).await;
            } => {}
        }
        drop(strong);
        pause = (2 * pause).min(LONGEST_READ_PAUSE);
    }
}

impl Node {
    /// What this node knows of who commands.
    pub(super) fn view(&self) -> CommandView {
        let own = self.electors.get().map(|electors| electors.view());
        let mut view =
            own.unwrap_or(CommandView { seen: None, commander: None, standing: Standing::NoElector });
        view.seen = view.seen.max(self.fence.highest());
        view
    }

    /// What the electors say that this node reaches, itself included.
    pub(super) async fn ask_electors(&self) -> BTreeMap<NodeIndex, CommandView> {
        let mut views = self.ask(&self.roster.electors).await;
        if self.electors.get().is_some() {
            views.insert(self.me, self.view());
        }
        views
    }

    async fn ask(&self, nodes: &[NodeIndex]) -> BTreeMap<NodeIndex, CommandView> {
        let mut asking = JoinSet::new();
        for node in nodes.iter().copied().filter(|node| *node != self.me) {
            let name = &self.roster.peers[node.usize()].node;
            if let Some(connection) = self.network().mesh.connected_to(name) {
                asking.spawn(async move {
                    match connection.call(&Request::WhoCommands, VIEW_LIMIT).await {
                        Ok(Response::Commander(view)) => Some((node, view)),
                        Ok(_) | Err(_) => None,
                    }
                });
            }
        }
        let answers = asking.join_all().await;
        answers.into_iter().flatten().collect()
    }

    /// Why nobody commands, with the remedy.
    pub(super) fn lack(&self, views: &BTreeMap<NodeIndex, CommandView>) -> String {
        let electors = &self.roster.electors;
        let missing: Vec<String> = electors
            .iter()
            .filter_map(|elector| {
                let peer = &self.roster.peers[elector.usize()];
                let name = format!("{} at {}:{}", peer.node, peer.host, peer.port);
                match views.get(elector).map(|view| &view.standing) {
                    Some(Standing::Voter { .. }) => None,
                    Some(Standing::Empty { .. }) => Some(format!("{name} (waits for the others)")),
                    Some(Standing::Mute) => Some(format!("{name} (has lost its state)")),
                    Some(Standing::NoElector) | None => {
                        let why =
                            self.trouble_with(*elector).map_or_else(String::new, |why| format!(": {why}"));
                        Some(format!("{name} (does not answer {}{why})", self.name()))
                    }
                }
            })
            .collect();
        let majority = electors.len() / 2 + 1;
        if electors.len() - missing.len() >= majority {
            return "the electors are electing one; ask again in a few seconds".to_owned();
        }
        format!(
            "{} of {} electors are missing: {}; {majority} are needed. Start them again; if their state is lost for good, \
             start every agent with --new-generation {}",
            missing.len(),
            electors.len(),
            missing.join(", "),
            self.roster.generation.0 + 1
        )
    }
}

/// The elector's way to the others.
#[derive(Debug)]
struct MeshWire {
    node: Weak<Node>,
    /// Nodes that are no electors and have been asked what they have seen, and the highest that they said.
    asked: Mutex<(BTreeSet<NodeIndex>, Option<Epoch>)>,
    /// Since when an elector has answered nothing.
    silent_since: Mutex<BTreeMap<NodeIndex, Instant>>,
}

impl Wire for MeshWire {
    fn call(&self, elector: NodeIndex, payload: Vec<u8>, deadline: Duration) -> Answered<'_> {
        Box::pin(async move {
            let node = self.node.upgrade().ok_or_else(|| unreachable("the agent stops"))?;
            let name = &node.roster.peers[elector.usize()].node;
            let connection =
                node.network().mesh.connected_to(name).ok_or_else(|| unreachable(name.as_str()))?;
            match connection.call(&Request::Raft { payload }, deadline).await {
                Ok(Response::Raft { payload }) => {
                    self.silence(elector, Silence::Broken);
                    Ok(payload)
                }
                Ok(other) => Err(unreachable(&format!("{name} answers {other:?}"))),
                Err(CallError::Deadline { .. }) => {
                    if self.silence(elector, Silence::Goes) > SILENCE_LIMIT {
                        // A process that was killed closes nothing; its successor waits for a new connection.
                        connection.close("it has answered nothing for too long");
                    }
                    Err(WireFault::Timeout)
                }
                Err(error) => Err(unreachable(&error.to_string())),
            }
        })
    }

    fn look_around(&self) -> Pin<Box<dyn Future<Output = Surroundings> + Send + '_>> {
        Box::pin(async move {
            let Some(node) = self.node.upgrade() else {
                return Surroundings::default();
            };
            let (electors, others) = tokio::join!(node.ask(&node.roster.electors), self.ask_others(&node));
            let told = electors.values().filter_map(|view| view.seen).max();
            let attendance = match node.absent().is_empty() {
                true => Attendance::Full,
                false => Attendance::Partial,
            };
            Surroundings { seen: told.max(others).max(node.fence.highest()), electors, attendance }
        })
    }
}

/// Whether an elector has just been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    Broken,
    Goes,
}

impl MeshWire {
    /// How long it has been silent.
    fn silence(&self, elector: NodeIndex, silence: Silence) -> Duration {
        let mut since = self.silent_since.lock().expect("nothing panics while the silences are held");
        match silence {
            Silence::Broken => {
                since.remove(&elector);
                Duration::ZERO
            }
            Silence::Goes => {
                let begun = *since.entry(elector).or_insert_with(Instant::now);
                let lasted = begun.elapsed();
                if lasted > SILENCE_LIMIT {
                    since.remove(&elector);
                }
                lasted
            }
        }
    }

    /// The highest epoch that members which are no electors have seen. Each is asked once: what they see later, an
    /// elector has told them.
    async fn ask_others(&self, node: &Node) -> Option<Epoch> {
        let fresh: Vec<NodeIndex> = {
            let asked = &self.asked.lock().expect(ASKED).0;
            let present = node.post.as_ref().map(|post| post.present()).unwrap_or_default();
            present
                .into_iter()
                .filter(|member| !node.roster.electors.contains(member) && !asked.contains(member))
                .collect()
        };
        let views = node.ask(&fresh).await;
        let mut asked = self.asked.lock().expect(ASKED);
        for (member, view) in views {
            asked.0.insert(member);
            asked.1 = asked.1.max(view.seen);
        }
        asked.1
    }
}

fn unreachable(reason: &str) -> WireFault {
    WireFault::Unreachable { reason: reason.to_owned() }
}

/// How long a node may take to say who commands: it only looks it up.
const VIEW_LIMIT: Duration = Duration::from_millis(500);

/// Pause after the first reading of the epoch; each further one waits twice as long.
const FIRST_READ_PAUSE: Duration = Duration::from_millis(20);

/// Longest pause between two readings: thousands of agents that wait for a mesh ask each elector once a second.
const LONGEST_READ_PAUSE: Duration = Duration::from_secs(1);

/// Silence after which an elector's connection is closed: above the longest stall that was seen on a machine with all
/// cores busy, and far below the 15 s in which QUIC notices.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// Why this lock cannot be poisoned.
const ASKED: &str = "nothing panics while the list of the asked is held";
