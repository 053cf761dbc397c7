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

use bench_core::cell::Cell;
use bench_core::ids::{CellId, Epoch, NodeIndex, RunId};
use bench_core::measure::Window;
use bench_core::message::{Prepare, PrepareReply, Prepared, Request, Response, RoundKey, Start};
use bench_core::node::NodeInventory;
use bench_core::plan::{Plan, TestCase};
use bench_core::record::{Loss, LossWord, Phase, RoundRecord};
use bench_core::time::Mono;

use super::Context;
use super::causes::{Causes, absence, describe, not_tested};
use super::queue::PlannedRound;
use crate::command::Command;
use crate::config::{FINISH_GRACE, MAX_CLOCK_ERROR, MIN_TAIL, PREPARE_GRACE};
use crate::decision::Entry;
use crate::event::{CallFault, CallTag};

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Preparing,
    Proposed,
    Ready,
    Running,
    Over,
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
    causes: Causes,
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
        let key = RoundKey { run, round: planned.id, epoch, attempt: planned.attempt };
        let mut losses = Vec::new();
        let mut cells = Vec::new();
        for cell in planned.cells {
            match cell.ends().into_iter().find_map(|(_, node)| absence(node, inventories, context)) {
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
            causes: Causes::not_tested(losses),
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
        let (word, reason) = match result {
            Ok(Response::Prepared(reply)) => {
                self.take_reply(node, reply, context);
                return self.settle(context);
            }
            Ok(other) => (LossWord::Crash, format!("{name} answered prepare with {}", describe(&other))),
            Err(CallFault::Timeout) => (LossWord::Timeout, format!("{name} did not answer prepare in time")),
            Err(CallFault::Lost { reason }) => {
                (LossWord::Crash, format!("{name} was lost while arming: {reason}"))
            }
        };
        self.lose(node, word, Phase::Prepare, &reason);
        self.settle(context);
    }

    /// The round's mark committed.
    pub(crate) fn committed(&mut self, key: RoundKey) {
        if self.stage == Stage::Proposed && key == self.key {
            self.stage = Stage::Ready;
        }
    }

    /// Sends the start, `lead` before its instant: traffic begins at one instant everywhere.
    pub(crate) fn start(&mut self, lead: Duration, context: &mut Context<'_>) -> RoundRecord {
        let cells: Vec<Cell> = self.armed().copied().collect();
        let at = context.now.after(lead + 2 * self.worst_clock_error);
        let tail = MIN_TAIL + 2 * self.worst_clock_error;
        let mut by_node: BTreeMap<NodeIndex, Vec<CellId>> = BTreeMap::new();
        for cell in &self.cells {
            for (_, node) in cell.ends() {
                let ids = by_node.entry(node).or_default();
                if !self.causes.has(cell.id) {
                    ids.push(cell.id);
                    ids.dedup();
                }
            }
        }
        let longest = cells.iter().map(|cell| self.traffic_time(cell)).max().unwrap_or_default();
        let deadline = (at.since(context.now)) + longest + tail + FINISH_GRACE;
        for (node, ids) in by_node {
            if ids.is_empty() {
                context.abort_round(self.key, node);
                continue;
            }
            let start = Start { key: self.key, at, tail, cells: ids };
            let (tag, request) = (CallTag::Start(self.key), Box::new(Request::Start(start)));
            context.out.push(Command::Send { node, tag, request, deadline });
            self.waiting.insert(node);
        }
        self.stage = Stage::Running;
        self.deadline = context.now.after(deadline);
        let warmup = cells.iter().map(|cell| self.cases[cell.case.usize()].warmup).min().unwrap_or_default();
        let window = Window { start: at.after(warmup), end: at.after(longest) };
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
        let lost = match result {
            Ok(Response::Observations(_)) => None,
            Ok(other) => {
                let reason = format!("{name} answered start with {}", describe(&other));
                Some((LossWord::Crash, Phase::Measure, reason))
            }
            Err(CallFault::Timeout) => {
                Some((LossWord::Timeout, Phase::Collect, format!("{name} did not report the round in time")))
            }
            Err(CallFault::Lost { reason }) => {
                Some((LossWord::Crash, Phase::Measure, format!("{name} was lost during the round: {reason}")))
            }
        };
        if let Some((word, phase, reason)) = lost {
            self.lose(node, word, phase, &reason);
        }
        if self.waiting.is_empty() {
            self.stage = Stage::Over;
        }
    }

    /// A node is no member any more.
    pub(crate) fn node_left(&mut self, node: NodeIndex, reason: &str, context: &mut Context<'_>) {
        let waited_for = self.waiting.remove(&node);
        match self.stage {
            Stage::Preparing => self.lose(node, LossWord::Crash, Phase::Prepare, reason),
            Stage::Proposed | Stage::Ready => self.lose(node, LossWord::Crash, Phase::Armed, reason),
            Stage::Running if waited_for => self.lose(node, LossWord::Crash, Phase::Measure, reason),
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
            self.lose(node, LossWord::Timeout, phase, &reason);
        }
        self.settle(context);
    }

    /// Tells every node of the round to forget it.
    pub(crate) fn abort(&self, context: &mut Context<'_>) {
        let nodes: BTreeSet<NodeIndex> =
            self.cells.iter().flat_map(|cell| cell.ends()).map(|(_, node)| node).collect();
        for node in nodes.into_iter().filter(|node| context.members.is_present(*node)) {
            context.abort_round(self.key, node);
        }
    }

    /// The cells that left the round, with word and reason.
    pub(crate) fn into_losses(self) -> Vec<Loss> {
        self.causes.into_losses()
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
            let prepare = Prepare {
                key: self.key,
                ends,
                timeout: plan.prepare_timeout,
                rails: context.rails_of(plan, node),
            };
            let request = Box::new(Request::Prepare(prepare));
            let deadline = plan.prepare_timeout + PREPARE_GRACE;
            context.out.push(Command::Send { node, tag: CallTag::Prepare(self.key), request, deadline });
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
                let reason =
                    format!("{} could not tell its clock's offset", context.config.roster[node.usize()]);
                self.lose(node, LossWord::Timeout, Phase::Prepare, &reason);
            }
        }
        for (cell, end, failure) in reply.failed {
            let name = &context.config.roster[node.usize()];
            self.causes.end_failed(&self.cells, self.key.attempt, (node, name), (cell, end), &failure);
        }
    }

    fn lose(&mut self, node: NodeIndex, word: LossWord, phase: Phase, reason: &str) {
        self.causes.node_lost(&self.cells, self.key.attempt, node, (word, phase), reason);
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
        self.cells.iter().filter(|cell| !self.causes.has(cell.id))
    }

    fn traffic_time(&self, cell: &Cell) -> Duration {
        let case = &self.cases[cell.case.usize()];
        case.warmup + case.window
    }
}
