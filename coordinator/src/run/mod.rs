//! One run, from the client's question to the last record.
//!
//! ```text
//!  phase       event                                next       what goes out
//!  accepting   RunAccepted committed                joining    Reply Accepted
//!  recovering  all told, or patience over           measuring  Started, Note, Observed (of earlier epochs)
//!  joining     all members here, or join time-out   probing    Probe to every member
//!  probing     all told, or time-out                measuring  Started (or storing: rails do not match)
//!  measuring   schedule played                      retrying   rounds for cells that infrastructure failed
//!  retrying    retries played                       retesting  rounds for suspects (none: storing)
//!  retesting   retests played                       storing    StoreResult to every elector
//!  storing     a majority has it, or time-out       ending     Propose RunEnded
//!  ending      RunEnded committed                   ended      Ended
//!  any         Cancel                               storing    Abort to every node with a round
//!  any         Deposed                              dropped    Reply Undecided, if the client waits
//! ```
//! A run that was accepted in an earlier epoch begins at `recovering`, or at `joining` if none of its rounds was marked.

mod causes;
mod lead;
mod phase;
mod play;
mod queue;
mod recover;
mod round;
mod start;
mod store;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use bench_core::ids::{CellId, Epoch, NodeIndex, PlanHash, RunId};
use bench_core::message::{Request, Response, RoundKey, SubmitReply};
use bench_core::node::NodeInventory;
use bench_core::plan::Plan;
use bench_core::record::{FailureKind, Observation, Outcome, RunEnd, RunRecord};
use bench_core::schedule::Schedule;
use bench_core::time::Mono;

pub use phase::RunPhase;
pub use view::RunView;

use crate::command::Command;
use crate::config::{ABORT_TIMEOUT, Config};
use crate::decision::Entry;
use crate::event::{CallFault, CallTag, Ticket};
use crate::members::Members;
use lead::StartLead;
use queue::RoundQueue;
use recover::Recovery;
use round::{ActiveRound, Step};
use store::Storing;

/// What every step of a run may look at, and where its commands go.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    pub(crate) members: &'a Members,
    pub(crate) out: &'a mut Vec<Command>,
    pub(crate) now: Mono,
}

impl Context<'_> {
    /// What the plan takes as a node's rails.
    pub(crate) fn rails_of(&self, plan: &Plan, node: NodeIndex) -> Option<Vec<String>> {
        plan.rails_of.of(&self.config.roster[node.usize()]).map(<[String]>::to_vec)
    }

    /// Tells a node to forget a round.
    pub(crate) fn abort_round(&mut self, key: RoundKey, node: NodeIndex) {
        let (tag, request) = (CallTag::Abort(key), Box::new(Request::Abort { key }));
        self.out.push(Command::Send { node, tag, request, deadline: ABORT_TIMEOUT });
    }
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) plan: Plan,
    pub(crate) plan_hash: PlanHash,
    epoch: Epoch,
    /// Clients' questions that wait for the electors.
    tickets: Vec<Ticket>,
    wall_seconds: u64,
    phase: RunPhase,
    deadline: Option<Mono>,
    inventories: Vec<Option<NodeInventory>>,
    /// Nodes that are asked for their inventory.
    probing: BTreeSet<NodeIndex>,
    /// Why the plan's rails cannot be used.
    unfit: Option<String>,
    /// Nodes that are asked for their journal.
    collecting: BTreeMap<NodeIndex, Collecting>,
    /// Nodes that failed to tell their journal.
    owing: BTreeSet<NodeIndex>,
    taken_over: bool,
    recovery: Option<Recovery>,
    schedule: Option<Schedule>,
    queue: RoundQueue,
    current: Option<ActiveRound>,
    next: Option<ActiveRound>,
    storing: Option<Storing>,
    lead: StartLead,
    records: Vec<RunRecord>,
}

/// A journal that is being read.
#[derive(Debug)]
struct Collecting {
    /// Cells that are asked for; none means all.
    cells: Vec<CellId>,
    /// Observations that were told.
    skip: u64,
}

impl Run {
    /// A run that waits for its acceptance to be committed.
    pub(crate) fn new(
        id: RunId,
        plan: Plan,
        epoch: Epoch,
        ticket: Option<Ticket>,
        wall_seconds: u64,
        context: &mut Context<'_>,
    ) -> Self {
        context.out.push(Command::Propose(Entry::RunAccepted {
            run: id,
            plan: Box::new(plan.clone()),
            wall_seconds,
            epoch,
        }));
        let mut run = Self::blank(id, plan, epoch, wall_seconds, context);
        run.tickets.extend(ticket);
        run
    }

    fn blank(id: RunId, plan: Plan, epoch: Epoch, wall_seconds: u64, context: &Context<'_>) -> Self {
        Self {
            id,
            plan_hash: plan.hash(),
            plan,
            epoch,
            tickets: Vec::new(),
            wall_seconds,
            phase: RunPhase::Accepting,
            deadline: None,
            inventories: vec![None; context.config.roster.len()],
            probing: BTreeSet::new(),
            unfit: None,
            collecting: BTreeMap::new(),
            owing: BTreeSet::new(),
            taken_over: false,
            recovery: None,
            schedule: None,
            queue: RoundQueue::default(),
            current: None,
            next: None,
            storing: None,
            lead: StartLead::new(),
            records: Vec::new(),
        }
    }

    /// An entry of this run's epoch was committed.
    pub(crate) fn committed(&mut self, entry: &Entry, join_deadline: Mono, context: &mut Context<'_>) {
        match entry {
            Entry::RunAccepted { run, .. } if *run == self.id => {
                let accepted = |ticket| Command::Reply { ticket, reply: SubmitReply::Accepted };
                context.out.extend(self.tickets.drain(..).map(accepted));
                if self.phase == RunPhase::Accepting {
                    self.phase = RunPhase::Joining;
                    self.deadline = Some(join_deadline);
                }
            }
            Entry::RoundMark(key) => {
                if let Some(next) = &mut self.next {
                    next.committed(*key);
                }
            }
            Entry::RunEnded { run, .. } if *run == self.id => {
                self.phase = RunPhase::Ended;
                self.records.extend(self.end_record());
            }
            Entry::RunAccepted { .. } | Entry::RunEnded { .. } => {}
        }
        self.advance(context);
    }

    /// A node is a member (again): ask it for what this run does not know of it.
    pub(crate) fn joined(&mut self, node: NodeIndex, context: &mut Context<'_>) {
        match self.phase {
            RunPhase::Recovering => self.ask_all(node, context),
            RunPhase::Probing | RunPhase::Measuring | RunPhase::Retrying | RunPhase::Retesting => {
                let unseen = self.unseen_cells(node);
                if self.inventories[node.usize()].is_none() {
                    self.ask_inventory(node, context);
                }
                if self.taken_over {
                    self.ask_journal(node, Vec::new(), context);
                } else if !unseen.is_empty() {
                    self.ask_journal(node, unseen, context);
                }
            }
            RunPhase::Accepting
            | RunPhase::Joining
            | RunPhase::Storing
            | RunPhase::Ending
            | RunPhase::Ended => {}
        }
        self.advance(context);
    }

    /// A node is no member any more.
    pub(crate) fn left(&mut self, node: NodeIndex, reason: &str, context: &mut Context<'_>) {
        self.probing.remove(&node);
        if self.collecting.remove(&node).is_some() {
            self.owing.insert(node);
        }
        let name = &context.config.roster[node.usize()];
        let text = format!("{name} left the mesh: {reason}");
        for round in [&mut self.current, &mut self.next].into_iter().flatten() {
            round.node_left(node, &text, context);
        }
        self.advance(context);
    }

    /// An agent answered a call of this run.
    pub(crate) fn answered(
        &mut self,
        node: NodeIndex,
        tag: CallTag,
        result: Result<Response, CallFault>,
        context: &mut Context<'_>,
    ) {
        match tag {
            CallTag::Store(run) if run == self.id => self.stored(node, result, context),
            // The last record is decided: what comes late is in the agents' journals.
            CallTag::Probe | CallTag::Prepare(_) | CallTag::Start(_) | CallTag::Collect(_)
                if self.phase.is_over() => {}
            CallTag::Probe => self.probed(node, result, context),
            CallTag::Prepare(key) => {
                if let Some(round) = self.round_mut(key) {
                    round.prepared(node, result, context);
                }
            }
            CallTag::Start(key) => self.finished(node, key, result, context),
            CallTag::Collect(run) if run == self.id => self.collected(node, result, context),
            CallTag::Store(_) | CallTag::Collect(_) | CallTag::Abort(_) => {}
        }
        self.advance(context);
    }

    /// Whether the last record is out.
    pub(crate) fn is_ended(&self) -> bool {
        self.phase == RunPhase::Ended
    }

    /// Stops what is on and ends the run as `end`.
    pub(crate) fn stop(&mut self, end: RunEnd, context: &mut Context<'_>) {
        if self.phase.is_over() {
            return;
        }
        if self.phase == RunPhase::Recovering {
            self.stop_after_recovery(end);
            return;
        }
        for round in [self.current.take(), self.next.take()].into_iter().flatten() {
            round.abort(context);
        }
        self.finish(end, context);
        self.advance(context);
    }

    /// Clients' questions that wait for the electors.
    pub(crate) fn into_tickets(self) -> Vec<Ticket> {
        self.tickets
    }

    /// A client submits this run once more: `None` if it is told when the electors have decided.
    pub(crate) fn submitted_again(&mut self, ticket: Ticket) -> Option<SubmitReply> {
        if self.phase != RunPhase::Accepting {
            return Some(SubmitReply::Accepted);
        }
        self.tickets.push(ticket);
        None
    }

    /// When [`Run::on_deadline`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let rounds = [&self.current, &self.next].into_iter().flatten().filter_map(ActiveRound::deadline);
        rounds.chain(self.deadline).chain(self.storing_deadline()).min()
    }

    /// Time passed a deadline.
    pub(crate) fn on_deadline(&mut self, context: &mut Context<'_>) {
        for round in [&mut self.current, &mut self.next].into_iter().flatten() {
            round.on_deadline(context);
        }
        self.advance(context);
    }

    /// Goes on as far as it can without another event.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) {
        loop {
            let progressed = match self.phase {
                RunPhase::Accepting | RunPhase::Ending | RunPhase::Ended => false,
                RunPhase::Recovering => self.try_resume(context),
                RunPhase::Joining => self.try_probe(context),
                RunPhase::Probing => self.try_begin(context),
                RunPhase::Measuring | RunPhase::Retrying | RunPhase::Retesting => self.play(context),
                RunPhase::Storing => self.try_end(context),
            };
            if !progressed {
                return;
            }
        }
    }

    fn overdue(&self, context: &Context<'_>) -> bool {
        self.deadline.is_some_and(|deadline| context.now >= deadline)
    }

    fn round_mut(&mut self, key: RoundKey) -> Option<&mut ActiveRound> {
        [&mut self.current, &mut self.next].into_iter().flatten().find(|round| round.key() == key)
    }

    fn finished(
        &mut self,
        node: NodeIndex,
        key: RoundKey,
        result: Result<Response, CallFault>,
        context: &mut Context<'_>,
    ) {
        if let Ok(Response::Observations(observations)) = &result {
            if observations.iter().any(is_late) {
                self.lead.came_late(key);
            }
            self.observe(observations.iter().cloned());
        }
        if let Some(round) = self.round_mut(key) {
            round.finished(node, result, context);
        }
    }

    fn observe(&mut self, observations: impl IntoIterator<Item = Observation>) {
        let (run, epoch) = (self.id, self.epoch);
        let own = observations.into_iter().filter(|o| o.key.run == run && o.key.epoch <= epoch);
        self.records.extend(own.map(RunRecord::Observed));
    }

    fn observed(&self) -> impl Iterator<Item = &Observation> {
        self.records.iter().filter_map(|record| match record {
            RunRecord::Observed(observation) => Some(observation),
            RunRecord::Started(_)
            | RunRecord::Round(_)
            | RunRecord::Lost(_)
            | RunRecord::Added(_)
            | RunRecord::Note(_)
            | RunRecord::Ended(_) => None,
        })
    }
}

/// Whether an end heard of its start too late.
fn is_late(observation: &Observation) -> bool {
    match &observation.outcome {
        Outcome::Failed(failure) => failure.kind == FailureKind::Late,
        Outcome::Measured(_) => false,
    }
}
