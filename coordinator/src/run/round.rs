//! One try of one round: armed by all, marked, started at an agreed instant, over.
//!
//! ```text
//!  stage      event                                    next       what goes out
//!  preparing  every node answered, left or is late     proposed   Propose RoundMark   (no cell armed: over)
//!  proposed   the mark committed                       ready
//!  ready      the round before is over                 running    Start to nodes with armed cells, Abort to others
//!  running    every node answered, left or is late     over
//! ```
//! A cell whose end cannot be armed, or whose node is lost, leaves the round with a word and a reason; the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bench_core::cell::{Cell, End};
use bench_core::ids::{CellId, Epoch, NodeIndex, RunId};
use bench_core::measure::Window;
use bench_core::message::{Prepare, PrepareReply, Prepared, Request, Response, RoundKey, Start};
use bench_core::node::NodeInventory;
use bench_core::plan::{Plan, TestCase};
use bench_core::record::{Failure, FailureKind, Loss, LossWord, Phase, RoundRecord};
use bench_core::time::Mono;

use super::Context;
use super::queue::PlannedRound;
use crate::command::Command;
use crate::config::{FINISH_GRACE, MIN_TAIL, PREPARE_GRACE, START_LEAD};
use crate::decision::Entry;
use crate::event::{CallFault, CallTag};
use crate::members::MemberState;

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Preparing,
    Proposed,
    Ready,
    Running,
    Over,
}

/// Why a cell left the round, and how sure that is: who was seen silent outweighs what a partner reported.
#[derive(Debug)]
struct Cause {
    loss: Loss,
    sureness: Sureness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sureness {
    Reported,
    Witnessed,
}

/// One try of one round.
#[derive(Debug)]
pub(crate) struct ActiveRound {
    key: RoundKey,
    stage: Stage,
    cells: Vec<Cell>,
    cases: Vec<TestCase>,
    waiting: BTreeSet<NodeIndex>,
    deadline: Mono,
    causes: BTreeMap<CellId, Cause>,
    worst_clock_error: Duration,
}

/// What a planned round became.
#[derive(Debug)]
pub(crate) enum Step {
    /// Its nodes are asked to arm.
    Preparing(Box<ActiveRound>),
    /// None of its cells can be tested.
    Nothing(Vec<Loss>),
}

impl ActiveRound {
    /// Asks the round's nodes to arm; cells of absent nodes are not tested.
    pub(crate) fn begin(
        planned: PlannedRound,
        run: RunId,
        epoch: Epoch,
        plan: &Plan,
        inventories: &[Option<NodeInventory>],
        context: &mut Context<'_>,
    ) -> Step {
        let key = RoundKey {
            run,
            round: planned.id,
            epoch,
            attempt: planned.attempt,
        };
        let mut losses = Vec::new();
        let mut cells = Vec::new();
        for cell in planned.cells {
            match cell
                .ends()
                .into_iter()
                .find_map(|(_, node)| absence(node, inventories, context))
            {
                Some((node, reason)) => losses.push(not_tested(&cell, node, reason)),
                None => cells.push(cell),
            }
        }
        if cells.is_empty() {
            return Step::Nothing(losses);
        }
        let mut round = Self {
            key,
            stage: Stage::Preparing,
            cells,
            cases: plan.cases.clone(),
            waiting: BTreeSet::new(),
            deadline: context.now.after(plan.prepare_timeout + PREPARE_GRACE),
            causes: losses
                .into_iter()
                .map(|loss| {
                    (
                        loss.cell,
                        Cause {
                            loss,
                            sureness: Sureness::Witnessed,
                        },
                    )
                })
                .collect(),
            worst_clock_error: Duration::ZERO,
        };
        round.send_prepare(plan, context);
        Step::Preparing(Box::new(round))
    }

    pub(crate) fn key(&self) -> RoundKey {
        self.key
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// When this stage gives up.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        match self.stage {
            Stage::Preparing | Stage::Running => Some(self.deadline),
            Stage::Proposed | Stage::Ready | Stage::Over => None,
        }
    }

    /// Whom it waits for, and for what.
    pub(crate) fn waiting(&self) -> Vec<(NodeIndex, String)> {
        let what = match self.stage {
            Stage::Preparing => format!("{} to be armed", self.key.round),
            Stage::Running => format!("{} to be over", self.key.round),
            Stage::Proposed | Stage::Ready | Stage::Over => return Vec::new(),
        };
        self.waiting.iter().map(|node| (*node, what.clone())).collect()
    }

    /// A node answered `prepare`, or the call failed.
    pub(crate) fn prepared(
        &mut self,
        node: NodeIndex,
        result: Result<Response, CallFault>,
        context: &mut Context<'_>,
    ) {
        if self.stage != Stage::Preparing || !self.waiting.remove(&node) {
            return;
        }
        let name = &context.config.roster[node.usize()];
        match result {
            Ok(Response::Prepared(reply)) => self.take_reply(node, reply, context),
            Ok(other) => {
                let reason = format!("{name} answered prepare with {}", describe(&other));
                self.node_lost(node, LossWord::Crash, Phase::Prepare, &reason);
            }
            Err(CallFault::Timeout) => {
                let reason = format!("{name} did not answer prepare in time");
                self.node_lost(node, LossWord::Timeout, Phase::Prepare, &reason);
            }
            Err(CallFault::Lost { reason }) => {
                let reason = format!("{name} was lost while arming: {reason}");
                self.node_lost(node, LossWord::Crash, Phase::Prepare, &reason);
            }
        }
        self.settle(context);
    }

    /// The round's mark committed.
    pub(crate) fn committed(&mut self, key: RoundKey) {
        if self.stage == Stage::Proposed && key == self.key {
            self.stage = Stage::Ready;
        }
    }

    /// Sends the start: traffic begins at one instant everywhere.
    pub(crate) fn start(&mut self, context: &mut Context<'_>) -> RoundRecord {
        let cells: Vec<Cell> = self.armed().copied().collect();
        let at = context.now.after(START_LEAD + 2 * self.worst_clock_error);
        let tail = MIN_TAIL + 2 * self.worst_clock_error;
        let mut by_node: BTreeMap<NodeIndex, Vec<CellId>> = BTreeMap::new();
        for cell in &self.cells {
            for (_, node) in cell.ends() {
                let ids = by_node.entry(node).or_default();
                if !self.causes.contains_key(&cell.id) {
                    ids.push(cell.id);
                    ids.dedup();
                }
            }
        }
        let longest = cells
            .iter()
            .map(|cell| self.traffic_time(cell))
            .max()
            .unwrap_or_default();
        let deadline = (at.since(context.now)) + longest + tail + FINISH_GRACE;
        for (node, ids) in by_node {
            if ids.is_empty() {
                send_abort(self.key, node, context);
                continue;
            }
            let request = Box::new(Request::Start(Start {
                key: self.key,
                at,
                tail,
                cells: ids,
            }));
            context.out.push(Command::Send {
                node,
                tag: CallTag::Start(self.key),
                request,
                deadline,
            });
            self.waiting.insert(node);
        }
        self.stage = Stage::Running;
        self.deadline = context.now.after(deadline);
        let window = Window {
            start: at,
            end: at.after(longest),
        };
        let window = cells.first().map_or(window, |cell| {
            let case = &self.cases[cell.case.usize()];
            Window {
                start: at.after(case.warmup),
                end: at.after(longest),
            }
        });
        RoundRecord {
            round: self.key.round,
            attempt: self.key.attempt,
            epoch: self.key.epoch,
            cells: cells.len() as u32,
            window,
        }
    }

    /// A node answered `start`, or the call failed.
    pub(crate) fn finished(
        &mut self,
        node: NodeIndex,
        result: Result<Response, CallFault>,
        context: &Context<'_>,
    ) {
        if self.stage != Stage::Running || !self.waiting.remove(&node) {
            return;
        }
        let name = &context.config.roster[node.usize()];
        match result {
            Ok(Response::Observations(_)) => {}
            Ok(other) => {
                let reason = format!("{name} answered start with {}", describe(&other));
                self.node_lost(node, LossWord::Crash, Phase::Measure, &reason);
            }
            Err(CallFault::Timeout) => {
                let reason = format!("{name} did not report the round in time");
                self.node_lost(node, LossWord::Timeout, Phase::Collect, &reason);
            }
            Err(CallFault::Lost { reason }) => {
                let reason = format!("{name} was lost during the round: {reason}");
                self.node_lost(node, LossWord::Crash, Phase::Measure, &reason);
            }
        }
        if self.waiting.is_empty() {
            self.stage = Stage::Over;
        }
    }

    /// A node is no member any more.
    pub(crate) fn node_left(&mut self, node: NodeIndex, reason: &str, context: &mut Context<'_>) {
        let waited_for = self.waiting.remove(&node);
        match self.stage {
            Stage::Preparing => self.node_lost(node, LossWord::Crash, Phase::Prepare, reason),
            Stage::Proposed | Stage::Ready => self.node_lost(node, LossWord::Crash, Phase::Armed, reason),
            Stage::Running if waited_for => self.node_lost(node, LossWord::Crash, Phase::Measure, reason),
            Stage::Running | Stage::Over => {}
        }
        self.settle(context);
    }

    /// Time passed: whoever is still waited for is named.
    pub(crate) fn on_deadline(&mut self, context: &mut Context<'_>) {
        if self.deadline().is_none_or(|deadline| context.now < deadline) {
            return;
        }
        let (phase, what) = match self.stage {
            Stage::Preparing => (Phase::Prepare, "was not armed in time"),
            Stage::Running | Stage::Proposed | Stage::Ready | Stage::Over => {
                (Phase::Collect, "did not report the round in time")
            }
        };
        for node in std::mem::take(&mut self.waiting) {
            let reason = format!("{} {what}", context.config.roster[node.usize()]);
            self.node_lost(node, LossWord::Timeout, phase, &reason);
        }
        self.settle(context);
    }

    /// Tells every node of the round to forget it.
    pub(crate) fn abort(&self, context: &mut Context<'_>) {
        let nodes: BTreeSet<NodeIndex> = self
            .cells
            .iter()
            .flat_map(|cell| cell.ends())
            .map(|(_, node)| node)
            .collect();
        for node in nodes.into_iter().filter(|node| context.members.is_present(*node)) {
            send_abort(self.key, node, context);
        }
    }

    /// The cells that left the round, with word and reason.
    pub(crate) fn into_losses(self) -> Vec<Loss> {
        self.causes.into_values().map(|cause| cause.loss).collect()
    }

    fn send_prepare(&mut self, plan: &Plan, context: &mut Context<'_>) {
        let mut by_node: BTreeMap<NodeIndex, Vec<Prepared>> = BTreeMap::new();
        for cell in &self.cells {
            for (end, node) in cell.ends() {
                by_node.entry(node).or_default().push(Prepared {
                    cell: *cell,
                    end,
                    case: self.cases[cell.case.usize()],
                    peer: context.config.roster[cell.node(end.other()).usize()].clone(),
                });
            }
        }
        for (node, ends) in by_node {
            let request = Box::new(Request::Prepare(Prepare {
                key: self.key,
                ends,
                timeout: plan.prepare_timeout,
            }));
            let deadline = plan.prepare_timeout + PREPARE_GRACE;
            context.out.push(Command::Send {
                node,
                tag: CallTag::Prepare(self.key),
                request,
                deadline,
            });
            self.waiting.insert(node);
        }
    }

    fn take_reply(&mut self, node: NodeIndex, reply: PrepareReply, context: &Context<'_>) {
        match reply.clock {
            Some(clock) => {
                let error = Duration::from_nanos(clock.error_ns).min(MAX_CLOCK_ERROR);
                self.worst_clock_error = self.worst_clock_error.max(error);
            }
            None => {
                let reason = format!(
                    "{} could not tell its clock's offset",
                    context.config.roster[node.usize()]
                );
                self.node_lost(node, LossWord::Timeout, Phase::Prepare, &reason);
            }
        }
        for (cell, end, failure) in reply.failed {
            self.end_failed(node, cell, end, &failure, context);
        }
    }

    fn end_failed(
        &mut self,
        node: NodeIndex,
        id: CellId,
        end: End,
        failure: &Failure,
        context: &Context<'_>,
    ) {
        let Some(cell) = self
            .cells
            .iter()
            .find(|cell| cell.id == id && cell.node(end) == node)
            .copied()
        else {
            return;
        };
        // A handshake or connect that got no answer speaks about the other end.
        let about = match failure.phase {
            Phase::Handshake => cell.node(end.other()),
            Phase::Probe
            | Phase::Prepare
            | Phase::Connect
            | Phase::Armed
            | Phase::Warmup
            | Phase::Measure
            | Phase::Collect => node,
        };
        let loss = Loss {
            cell: id,
            attempt: Some(self.key.attempt),
            word: word_of(failure.kind),
            node: Some(about),
            phase: Some(failure.phase),
            reason: format!(
                "{}: {}",
                context.config.roster[node.usize()],
                with_remedy(failure)
            ),
        };
        self.blame(loss, Sureness::Reported);
    }

    fn node_lost(&mut self, node: NodeIndex, word: LossWord, phase: Phase, reason: &str) {
        let ids: Vec<CellId> = self
            .cells
            .iter()
            .filter(|c| c.src == node || c.dst == node)
            .map(|c| c.id)
            .collect();
        for cell in ids {
            let loss = Loss {
                cell,
                attempt: Some(self.key.attempt),
                word,
                node: Some(node),
                phase: Some(phase),
                reason: reason.to_owned(),
            };
            self.blame(loss, Sureness::Witnessed);
        }
    }

    fn blame(&mut self, loss: Loss, sureness: Sureness) {
        match self.causes.get(&loss.cell) {
            Some(known) if known.sureness >= sureness => {}
            Some(_) | None => {
                self.causes.insert(loss.cell, Cause { loss, sureness });
            }
        }
    }

    fn settle(&mut self, context: &mut Context<'_>) {
        if !self.waiting.is_empty() {
            return;
        }
        match self.stage {
            Stage::Preparing | Stage::Proposed | Stage::Ready if self.armed().next().is_none() => {
                self.abort(context);
                self.stage = Stage::Over;
            }
            Stage::Preparing => {
                context.out.push(Command::Propose(Entry::RoundMark(self.key)));
                self.stage = Stage::Proposed;
            }
            Stage::Running => self.stage = Stage::Over,
            Stage::Proposed | Stage::Ready | Stage::Over => {}
        }
    }

    fn armed(&self) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(|cell| !self.causes.contains_key(&cell.id))
    }

    fn traffic_time(&self, cell: &Cell) -> Duration {
        let case = &self.cases[cell.case.usize()];
        case.warmup + case.window
    }
}

fn send_abort(key: RoundKey, node: NodeIndex, context: &mut Context<'_>) {
    let request = Box::new(Request::Abort { key });
    context.out.push(Command::Send {
        node,
        tag: CallTag::Abort(key),
        request,
        deadline: ABORT_TIMEOUT,
    });
}

fn absence(
    node: NodeIndex,
    inventories: &[Option<NodeInventory>],
    context: &Context<'_>,
) -> Option<(NodeIndex, String)> {
    let name = &context.config.roster[node.usize()];
    let reason = match &context.members.states()[node.usize()] {
        MemberState::Present { .. } if inventories[node.usize()].is_some() => return None,
        MemberState::Present { .. } => format!("{name} joined after the run began"),
        MemberState::Never => format!("{name} never joined"),
        MemberState::Gone { reason } => format!("{name} is gone: {reason}"),
    };
    Some((node, reason))
}

fn not_tested(cell: &Cell, node: NodeIndex, reason: String) -> Loss {
    Loss {
        cell: cell.id,
        attempt: None,
        word: LossWord::NotTested,
        node: Some(node),
        phase: None,
        reason,
    }
}

fn word_of(kind: FailureKind) -> LossWord {
    match kind {
        FailureKind::Crash | FailureKind::Corrupt => LossWord::Crash,
        FailureKind::Timeout => LossWord::Timeout,
        FailureKind::Unsupported => LossWord::Skip,
        FailureKind::Cancelled => LossWord::NotTested,
    }
}

fn with_remedy(failure: &Failure) -> String {
    match &failure.remedy {
        Some(remedy) => format!("{} ({remedy})", failure.detail),
        None => failure.detail.clone(),
    }
}

fn describe(response: &Response) -> String {
    match response {
        Response::StaleEpoch { seen } => format!("a refusal: it has seen epoch {seen}"),
        Response::Invalid { reason } => format!("a refusal: {reason}"),
        Response::Refused(refusal) => format!("a refusal: {refusal}"),
        Response::Pong
        | Response::Clock { .. }
        | Response::Inventory(_)
        | Response::Prepared(_)
        | Response::Observations(_)
        | Response::Done
        | Response::Handshake(_)
        | Response::Submitted(_)
        | Response::Records(_)
        | Response::Status(_)
        | Response::NoCoordinator { .. }
        | Response::Commander(_)
        | Response::Raft { .. }
        | Response::UnknownRun { .. } => "another kind of answer".to_owned(),
    }
}

/// Largest clock error that lead and tail allow for; a larger one makes the round's figures `not concurrent` anyway.
const MAX_CLOCK_ERROR: Duration = Duration::from_millis(50);

/// How long an agent may take to forget a round.
const ABORT_TIMEOUT: Duration = Duration::from_secs(5);
