//! The coordinator's shell on the elected node: wait, feed, execute, publish.
//!
//! One task ([`CommandPost::run`]) owns the execution of commands and the machine's deadlines; it ends when the agent
//! stops. Events come from connections, client requests and the tasks of single calls; each locks the machine, feeds
//! one event and wakes the task. The machine is never held across an await.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bench_core::ids::{Epoch, NodeIndex, RunId};
use bench_core::message::{MemberStatus, Response, RunStatus, SubmitReply, WatchReply};
use bench_core::plan::Plan;
use bench_core::record::{self, RunRecord};
use coordinator::{Attendance, CallFault, CallTag, Command, Config, Coordinator, Event, MemberState, Ticket};
use tokio::sync::{Notify, oneshot, watch};

use super::Node;
use crate::inventory::wall_seconds;

/// What becomes of a client's wish to stop a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// The machine was told.
    Asked,
    /// This run was over before.
    Over(RunId),
    /// There is no such run.
    Unknown,
}

/// The coordinator's shell.
#[derive(Debug)]
pub(crate) struct CommandPost {
    machine: Mutex<Coordinator>,
    /// Wakes the task; one permit, so a second wake before the task looks is the same wake.
    wake: Notify,
    /// Counts changes; watchers wait for the next.
    news: watch::Sender<u64>,
    tickets: Mutex<HashMap<Ticket, oneshot::Sender<SubmitReply>>>,
    next_ticket: AtomicU64,
}

impl CommandPost {
    /// A shell around a machine that is not elected.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            machine: Mutex::new(Coordinator::new(config)),
            wake: Notify::new(),
            news: watch::Sender::new(0),
            tickets: Mutex::new(HashMap::new()),
            next_ticket: AtomicU64::new(0),
        }
    }

    /// Feeds an event.
    pub(crate) fn feed(&self, event: Event) {
        self.machine().handle(event, transport::clock::now());
        self.wake.notify_one();
    }

    /// Executes commands until the agent stops.
    pub(crate) async fn run(self: Arc<Self>, node: Weak<Node>) {
        loop {
            while let Some(command) = self.next_command() {
                let Some(node) = node.upgrade() else { return };
                self.execute(command, &node);
            }
            self.news.send_modify(|count| *count += 1);
            let deadline = self.machine().next_deadline();
            tokio::select! {
                () = self.wake.notified() => {}
                () = sleep_until(deadline) => self.machine().on_deadline(transport::clock::now()),
            }
        }
    }

    /// A client's plan; answered when the electors have decided.
    pub(crate) async fn submit(&self, run: RunId, plan: Box<Plan>) -> Response {
        let ticket = Ticket(self.next_ticket.fetch_add(1, Ordering::Relaxed));
        let (sender, reply) = oneshot::channel();
        self.tickets.lock().expect(HELD).insert(ticket, sender);
        self.feed(Event::Submit { ticket, run, plan, wall_seconds: wall_seconds() });
        match reply.await {
            Ok(reply) => Response::Submitted(reply),
            Err(_) => {
                Response::NoCoordinator { reason: "the coordinator stopped before it decided".to_owned() }
            }
        }
    }

    /// Records of a run from number `from` on; waits up to `wait` for one.
    pub(crate) async fn watch(&self, run: Option<RunId>, from: u64, wait: Duration) -> Response {
        let mut news = self.news.subscribe();
        let limit = tokio::time::Instant::now() + wait.min(LONGEST_WATCH);
        loop {
            news.mark_unchanged();
            match self.look(run, from) {
                None => return Response::UnknownRun { run },
                Some(reply) if !reply.records.is_empty() || reply.status.ended => {
                    return Response::Records(reply);
                }
                Some(reply) => {
                    if tokio::time::timeout_at(limit, news.changed()).await.is_err() {
                        return Response::Records(reply);
                    }
                }
            }
        }
    }

    /// Wakes whoever waits for news of anything.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// How far the run of a one-shot agent is; `None` if this node does not command.
    pub(crate) fn attendance(&self, node: NodeIndex, run: RunId) -> Option<Attendance> {
        self.machine().attendance(node, run, transport::clock::now())
    }

    /// All records of a run that is over, if the machine still has them.
    pub(crate) fn records_of_ended(&self, run: RunId) -> Option<Vec<RunRecord>> {
        let machine = self.machine();
        let view = machine.run(Some(run)).filter(|view| view.status().ended)?;
        Some(view.records().to_vec())
    }

    /// The latest run that is over.
    pub(crate) fn last_ended(&self) -> Option<RunId> {
        self.machine().last_ended()
    }

    /// Stops a run.
    pub(crate) fn cancel(&self, run: Option<RunId>) -> Cancelled {
        let known = self.machine().run(run).map(|view| (view.id(), view.status().ended));
        let over = self.last_ended();
        match (known, over) {
            (Some((_, false)), _) => {
                self.feed(Event::Cancel { run });
                Cancelled::Asked
            }
            (Some((run, true)), _) => Cancelled::Over(run),
            (None, Some(over)) if run.is_none_or(|run| run == over) => Cancelled::Over(over),
            (None, Some(_) | None) => Cancelled::Unknown,
        }
    }

    /// The epoch in which this node commands.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.machine().epoch()
    }

    /// Members in roster order, with the addresses that `node` knows.
    pub(crate) fn members(&self, node: &Node) -> Vec<MemberStatus> {
        let machine = self.machine();
        let states = machine.members().states().iter().zip(&node.roster.peers);
        states
            .map(|(state, peer)| MemberStatus {
                node: peer.node.clone(),
                address: format!("{}:{}", peer.host, peer.port),
                absent: match state {
                    MemberState::Never => Some("has not joined".to_owned()),
                    MemberState::Present { .. } => None,
                    MemberState::Gone { reason } => Some(reason.clone()),
                },
            })
            .collect()
    }

    /// Who of the roster is not here.
    pub(crate) fn absent(&self) -> Vec<NodeIndex> {
        self.machine().members().absent().collect()
    }

    /// Who is here.
    pub(crate) fn present(&self) -> Vec<NodeIndex> {
        let machine = self.machine();
        let states = machine.members().states().iter().zip(0..);
        states
            .filter(|(state, _)| matches!(state, MemberState::Present { .. }))
            .map(|(_, index)| NodeIndex(index))
            .collect()
    }

    /// How far the latest run is.
    pub(crate) fn latest(&self) -> Option<RunStatus> {
        self.machine().run(None).map(|run| run.status())
    }

    fn look(&self, run: Option<RunId>, from: u64) -> Option<WatchReply> {
        let machine = self.machine();
        let view = machine.run(run)?;
        let fresh = view.records().get(from as usize..).unwrap_or_default();
        Some(WatchReply {
            run: view.id(),
            epoch: view.epoch(),
            from,
            records: record::batch(fresh).to_vec(),
            status: view.status(),
        })
    }

    fn execute(self: &Arc<Self>, command: Command, node: &Arc<Node>) {
        match command {
            Command::Propose(entry) => {
                if let Some(electors) = node.electors.get() {
                    electors.propose(entry);
                }
            }
            Command::Reply { ticket, reply } => {
                if let Some(sender) = self.tickets.lock().expect(HELD).remove(&ticket) {
                    // A client that went away needs no answer.
                    let _: Result<_, _> = sender.send(reply);
                }
            }
            Command::Send { node: to, tag, request, deadline } => {
                let (post, node) = (Arc::clone(self), Arc::clone(node));
                // The task ends with the call's deadline at the latest.
                tokio::spawn(async move {
                    let result = node.command(to, *request, deadline).await;
                    post.answered(to, tag, result);
                });
            }
        }
    }

    fn answered(&self, node: NodeIndex, tag: CallTag, result: Result<Response, CallFault>) {
        self.feed(Event::Answered { node, tag, result });
    }

    fn next_command(&self) -> Option<Command> {
        self.machine().poll_command()
    }

    fn machine(&self) -> MutexGuard<'_, Coordinator> {
        self.machine.lock().expect(HELD)
    }
}

async fn sleep_until(deadline: Option<bench_core::time::Mono>) {
    match deadline {
        Some(deadline) => tokio::time::sleep(deadline.since(transport::clock::now())).await,
        None => std::future::pending().await,
    }
}

/// Longest wait for news in one request: below the idle limit of a connection.
pub(super) const LONGEST_WATCH: Duration = Duration::from_secs(10);

/// Why the locks of this module cannot be poisoned.
const HELD: &str = "nothing panics while the command post's lock is held";
