//! One run, from the client's question to the last record.
//!
//! ```text
//!  phase      event                               next       what goes out
//!  accepting  RunAccepted committed               joining    Reply Accepted
//!  joining    all members here, or join time-out  probing    Probe to every member
//!  probing    all told, or time-out               measuring  Started (or Ended: rails do not match)
//!  measuring  schedule played                     retrying   rounds for cells that infrastructure failed
//!  retrying   retries played                      retesting  rounds for suspects (none: ending)
//!  retesting  retests played                      ending     Propose RunEnded
//!  ending     RunEnded committed                  ended      Ended
//!  any        Cancel                              ending     Abort to every node with a round
//!  any        Deposed                             ended      Ended Aborted
//! ```

mod phase;
mod queue;
mod round;
mod start;
mod view;

use bench_core::ids::{Epoch, NodeIndex, PlanHash, RunId};
use bench_core::journal;
use bench_core::judge::{self, RunView as JudgedRun};
use bench_core::message::{Response, RoundKey, SubmitReply};
use bench_core::node::NodeInventory;
use bench_core::plan::{Plan, Retest};
use bench_core::record::{Observation, RunEnd, RunRecord};
use bench_core::schedule::Schedule;
use bench_core::time::Mono;

pub use phase::RunPhase;
pub use view::RunView;

use crate::command::Command;
use crate::config::{COLLECT_TIMEOUT, Config};
use crate::decision::Entry;
use crate::event::{CallFault, CallTag, Ticket};
use crate::members::Members;
use queue::RoundQueue;
use round::{ActiveRound, Step};

/// What every step of a run may look at, and where its commands go.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    pub(crate) members: &'a Members,
    pub(crate) out: &'a mut Vec<Command>,
    pub(crate) now: Mono,
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) plan: Plan,
    pub(crate) plan_hash: PlanHash,
    epoch: Epoch,
    ticket: Option<Ticket>,
    wall_seconds: u64,
    phase: RunPhase,
    deadline: Option<Mono>,
    inventories: Vec<Option<NodeInventory>>,
    waiting: Vec<NodeIndex>,
    schedule: Option<Schedule>,
    queue: RoundQueue,
    current: Option<ActiveRound>,
    next: Option<ActiveRound>,
    records: Vec<RunRecord>,
    end: RunEnd,
}

impl Run {
    /// A run that waits for its acceptance to be committed.
    pub(crate) fn new(
        id: RunId,
        plan: Plan,
        epoch: Epoch,
        ticket: Ticket,
        wall_seconds: u64,
        context: &mut Context<'_>,
    ) -> Self {
        let plan_hash = plan.hash();
        context.out.push(Command::Propose(Entry::RunAccepted {
            run: id,
            plan: Box::new(plan.clone()),
            wall_seconds,
            epoch,
        }));
        Self {
            id,
            plan,
            plan_hash,
            epoch,
            ticket: Some(ticket),
            wall_seconds,
            phase: RunPhase::Accepting,
            deadline: None,
            inventories: vec![None; context.config.roster.len()],
            waiting: Vec::new(),
            schedule: None,
            queue: RoundQueue::default(),
            current: None,
            next: None,
            records: Vec::new(),
            end: RunEnd::Completed,
        }
    }

    /// An entry of this run was committed.
    pub(crate) fn committed(&mut self, entry: &Entry, join_deadline: Mono, context: &mut Context<'_>) {
        match entry {
            Entry::RunAccepted { .. } => {
                if let Some(ticket) = self.ticket.take() {
                    context.out.push(Command::Reply {
                        ticket,
                        reply: SubmitReply::Accepted,
                    });
                }
                self.phase = RunPhase::Joining;
                self.deadline = Some(join_deadline);
            }
            Entry::RoundMark(key) => {
                if let Some(next) = &mut self.next {
                    next.committed(*key);
                }
            }
            Entry::RunEnded { .. } => {
                self.phase = RunPhase::Ended;
                self.deadline = None;
                self.records.push(RunRecord::Ended(self.end.clone()));
            }
        }
        self.advance(context);
    }

    /// A node is a member (again): ask it for what it may have measured while it was away.
    pub(crate) fn joined(&mut self, node: NodeIndex, context: &mut Context<'_>) {
        let cells = self.unseen_cells(node);
        if !(cells.is_empty() || self.phase.is_over()) {
            let request = bench_core::message::Request::Collect {
                epoch: self.epoch,
                run: self.id,
                cells,
                skip: 0,
            };
            let tag = CallTag::Collect(self.id);
            context.out.push(Command::Send {
                node,
                tag,
                request: Box::new(request),
                deadline: COLLECT_TIMEOUT,
            });
        }
        self.advance(context);
    }

    /// A node is no member any more.
    pub(crate) fn left(&mut self, node: NodeIndex, reason: &str, context: &mut Context<'_>) {
        self.waiting.retain(|waiting| *waiting != node);
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
        if self.phase.is_over() {
            // The last record is out or decided: what comes late is in the agents' journals.
            return;
        }
        match tag {
            CallTag::Probe => self.probed(node, result),
            CallTag::Prepare(key) => {
                if let Some(round) = self.round_mut(key) {
                    round.prepared(node, result, context);
                }
            }
            CallTag::Start(key) => self.finished(node, key, result, context),
            CallTag::Collect(_) => self.collected(result),
            CallTag::Abort(_) | CallTag::Store(_) => {}
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
        for round in [self.current.take(), self.next.take()].into_iter().flatten() {
            round.abort(context);
        }
        self.finish(end, context);
    }

    /// Ends the run at once, without the electors: this coordinator commands no more.
    pub(crate) fn depose(&mut self, reason: String) {
        if self.phase != RunPhase::Ended {
            self.current = None;
            self.next = None;
            self.phase = RunPhase::Ended;
            self.deadline = None;
            self.records.push(RunRecord::Ended(RunEnd::Aborted { reason }));
        }
    }

    /// When [`Run::on_deadline`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let rounds = [&self.current, &self.next]
            .into_iter()
            .flatten()
            .filter_map(ActiveRound::deadline);
        rounds.chain(self.deadline).min()
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
                RunPhase::Joining => self.try_probe(context),
                RunPhase::Probing => self.try_begin(context),
                RunPhase::Measuring | RunPhase::Retrying | RunPhase::Retesting => self.play(context),
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
        [&mut self.current, &mut self.next]
            .into_iter()
            .flatten()
            .find(|round| round.key() == key)
    }

    fn finished(
        &mut self,
        node: NodeIndex,
        key: RoundKey,
        result: Result<Response, CallFault>,
        context: &mut Context<'_>,
    ) {
        if let Ok(Response::Observations(observations)) = &result {
            self.observe(observations);
        }
        if let Some(round) = self.round_mut(key) {
            round.finished(node, result, context);
        }
    }

    fn collected(&mut self, result: Result<Response, CallFault>) {
        if let Ok(Response::Observations(observations)) = result {
            let known: std::collections::BTreeSet<_> = self.observed().map(|o| o.key).collect();
            let fresh: Vec<_> = observations
                .into_iter()
                .filter(|o| !known.contains(&o.key))
                .collect();
            self.observe(&fresh);
        }
    }

    fn observe(&mut self, observations: &[Observation]) {
        let own = observations
            .iter()
            .filter(|o| o.key.run == self.id && o.key.epoch <= self.epoch);
        self.records.extend(own.cloned().map(RunRecord::Observed));
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

    /// Plays rounds: prepares the next while the current one measures, starts it when the current one is over.
    /// Returns whether anything moved.
    fn play(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(round) = self.current.take_if(|round| round.is_over()) {
            self.records
                .extend(round.into_losses().into_iter().map(RunRecord::Lost));
            self.queue.round_over();
            return true;
        }
        if let Some(round) = self.next.take_if(|round| round.is_over()) {
            self.records
                .extend(round.into_losses().into_iter().map(RunRecord::Lost));
            self.queue.round_over();
            return true;
        }
        if self.current.is_none()
            && let Some(mut round) = self.next.take_if(|round| round.is_ready())
        {
            self.records.push(RunRecord::Round(round.start(context)));
            self.current = Some(round);
            return true;
        }
        if self.next.is_none() {
            return match self.queue.pull(self.schedule.as_ref()) {
                Some(planned) => {
                    let step = ActiveRound::begin(
                        planned,
                        self.id,
                        self.epoch,
                        &self.plan,
                        &self.inventories,
                        context,
                    );
                    match step {
                        Step::Preparing(round) => self.next = Some(*round),
                        Step::Nothing(losses) => {
                            self.records.extend(losses.into_iter().map(RunRecord::Lost));
                            self.queue.round_over();
                        }
                    }
                    true
                }
                None => self.current.is_none() && self.turn_over(context),
            };
        }
        false
    }

    /// Everything that was queued has been played.
    fn turn_over(&mut self, context: &mut Context<'_>) -> bool {
        match self.phase {
            RunPhase::Measuring => {
                self.phase = RunPhase::Retrying;
                self.queue_retries(context);
            }
            RunPhase::Retrying => {
                self.phase = RunPhase::Retesting;
                if self.plan.retest == Retest::Suspects {
                    self.queue_retests(context);
                }
            }
            RunPhase::Retesting => self.finish(RunEnd::Completed, context),
            RunPhase::Accepting
            | RunPhase::Joining
            | RunPhase::Probing
            | RunPhase::Ending
            | RunPhase::Ended => {
                return false;
            }
        }
        true
    }

    fn queue_retries(&mut self, context: &Context<'_>) {
        let merged = journal::merge(self.observed().cloned());
        let retries: Vec<_> = self
            .lost_cells(&merged)
            .into_iter()
            .filter(|cell| context.members.is_present(cell.src) && context.members.is_present(cell.dst))
            .collect();
        for cells in judge::pack(retries) {
            self.queue.add_retry(cells);
        }
    }

    fn queue_retests(&mut self, context: &Context<'_>) {
        let next_id = self.queue.next_cell_id(self.schedule.as_ref());
        let Some(schedule) = &self.schedule else { return };
        let Ok(view) = JudgedRun::new(&self.records, schedule) else {
            return;
        };
        let mut cells = judge::retests(&view, &judge::judge(&view), next_id);
        cells.retain(|cell| context.members.is_present(cell.src) && context.members.is_present(cell.dst));
        if !cells.is_empty() {
            self.records.push(RunRecord::Added(cells.clone()));
            self.queue.note_added(cells.len());
            for cells in judge::pack(cells) {
                self.queue.add_first(cells);
            }
        }
    }

    fn finish(&mut self, end: RunEnd, context: &mut Context<'_>) {
        self.end = end;
        self.phase = RunPhase::Ending;
        self.deadline = None;
        context.out.push(Command::Propose(Entry::RunEnded {
            run: self.id,
            epoch: self.epoch,
        }));
    }
}
