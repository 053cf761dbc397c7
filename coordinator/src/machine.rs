//! The coordinator: members, and at most one run at a time.

mod attend;

use std::collections::VecDeque;

use bench_core::ids::{Epoch, NodeIndex, RunId};
use bench_core::message::{Response, SubmitReply};
use bench_core::plan::Plan;
use bench_core::record::RunEnd;
use bench_core::schedule::Schedule;
use bench_core::time::Mono;

use crate::command::Command;
use crate::config::Config;
use crate::decision::{AcceptedRun, Decisions, Entry};
use crate::event::{CallFault, CallTag, Event, Ticket};
use crate::members::Members;
use crate::muster::{Comer, Muster};
use crate::run::{Context, Run, RunView};

/// The run machine of one elector. It does nothing until it is elected and nothing after it is deposed.
#[derive(Debug)]
pub struct Coordinator {
    config: Config,
    epoch: Option<Epoch>,
    join_deadline: Mono,
    members: Members,
    decisions: Decisions,
    muster: Muster,
    runs: VecDeque<Run>,
    commands: VecDeque<Command>,
}

impl Coordinator {
    /// A machine that is not elected.
    pub fn new(config: Config) -> Self {
        let members = Members::none_of(config.roster.len());
        Self {
            config,
            epoch: None,
            join_deadline: Mono::from_nanos(0),
            members,
            decisions: Decisions::default(),
            muster: Muster::default(),
            runs: VecDeque::new(),
            commands: VecDeque::new(),
        }
    }

    /// Something happened at `now`.
    pub fn handle(&mut self, event: Event, now: Mono) {
        match event {
            Event::Elected { epoch, decisions } => self.elected(epoch, *decisions, now),
            Event::Deposed { reason } => self.deposed(&reason),
            Event::Committed(entry) => self.committed(&entry, now),
            Event::Joined { node, boot } => {
                self.members.join(node, boot);
                self.with_run(now, |run, context| run.joined(node, context));
            }
            Event::Left { node, reason } => {
                self.members.leave(node, reason.clone());
                self.muster.left(node);
                self.with_run(now, |run, context| run.left(node, &reason, context));
            }
            Event::Submit { ticket, run, plan, wall_seconds } => {
                self.submit(ticket, run, *plan, wall_seconds, now);
            }
            Event::Attended { node, run, plan, attending, printed_by, wall_seconds } => {
                self.attended(Comer { node, run, plan, wall_seconds }, attending, printed_by, now);
            }
            Event::Cancel { run } => self.cancel(run, now),
            Event::Answered { node, tag, result } => self.answered(node, tag, result, now),
        }
    }

    /// The next command, in order.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When [`Coordinator::on_deadline`] is due; `None` if time changes nothing.
    pub fn next_deadline(&self) -> Option<Mono> {
        let run = self.runs.back().and_then(Run::next_deadline);
        run.into_iter().chain(self.muster_deadline()).min()
    }

    /// Time passed a deadline.
    pub fn on_deadline(&mut self, now: Mono) {
        self.with_run(now, Run::on_deadline);
        self.close_muster(now);
    }

    /// The epoch in which this elector commands; `None` if it does not.
    pub fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// The latest run that the electors know to be over.
    pub fn last_ended(&self) -> Option<RunId> {
        self.decisions.ended
    }

    /// Who is here.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// A run by its id, or the latest.
    pub fn run(&self, id: Option<RunId>) -> Option<RunView<'_>> {
        let run = match id {
            Some(id) => self.runs.iter().find(|run| run.id == id),
            None => self.runs.back(),
        };
        run.map(|run| RunView::new(run, &self.config, &self.members))
    }

    fn elected(&mut self, epoch: Epoch, decisions: Decisions, now: Mono) {
        self.epoch = Some(epoch);
        self.decisions = decisions;
        self.join_deadline = now.after(self.config.join_timeout);
        self.muster_anew();
        self.drop_open_run("it was elected anew");
        if let Some(accepted) = self.decisions.running.clone() {
            self.take_over(accepted, epoch, now);
        }
    }

    /// Goes on with a run of an earlier epoch.
    fn take_over(&mut self, accepted: AcceptedRun, epoch: Epoch, now: Mono) {
        let mut out = Vec::new();
        let mut context = Context { config: &self.config, members: &self.members, out: &mut out, now };
        let last_mark = self.decisions.last_mark;
        let run = Run::take_over(accepted, last_mark, epoch, self.join_deadline, &mut context);
        self.keep(run);
        self.commands.extend(out);
        self.with_run(now, Run::advance);
    }

    fn deposed(&mut self, reason: &str) {
        self.epoch = None;
        self.muster_anew();
        self.commands.clear();
        self.drop_open_run(reason);
    }

    /// Forgets a run that is not over: whoever commands next goes on with it, if it was accepted.
    fn drop_open_run(&mut self, reason: &str) {
        if self.runs.back().is_none_or(Run::is_ended) {
            return;
        }
        let tickets = self.runs.pop_back().map(Run::into_tickets);
        for ticket in tickets.unwrap_or_default() {
            let reason = format!("the coordinator was replaced: {reason}");
            self.reply(ticket, SubmitReply::Undecided { reason });
        }
    }

    fn keep(&mut self, run: Run) {
        while self.runs.len() >= KEPT_RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(run);
    }

    fn committed(&mut self, entry: &Entry, now: Mono) {
        self.decisions.apply(entry);
        if self.epoch != Some(entry.epoch()) {
            return;
        }
        let join_deadline = self.join_deadline.max(now);
        self.with_run(now, |run, context| run.committed(entry, join_deadline, context));
        self.play_agreed(now);
    }

    fn submit(&mut self, ticket: Ticket, id: RunId, plan: Plan, wall_seconds: u64, now: Mono) {
        let Some(epoch) = self.epoch else {
            let reason = "this node does not command the mesh".to_owned();
            self.reply(ticket, SubmitReply::Rejected { reason });
            return;
        };
        if let Some(known) = self.runs.iter_mut().find(|run| run.id == id) {
            let reply = if known.plan_hash == plan.hash() {
                known.submitted_again(ticket)
            } else {
                Some(SubmitReply::Rejected {
                    reason: format!("run {id} exists with another plan: choose another id"),
                })
            };
            if let Some(reply) = reply {
                self.reply(ticket, reply);
            }
            return;
        }
        if let Some(on) = self.runs.back().filter(|run| !run.is_ended()) {
            let reply = SubmitReply::Busy { run: on.id };
            self.reply(ticket, reply);
            return;
        }
        if self.decisions.ended == Some(id) {
            self.reply(ticket, SubmitReply::Accepted);
            return;
        }
        if let Some(reason) = self.unfit(&plan) {
            self.reply(ticket, SubmitReply::Rejected { reason });
            return;
        }
        let mut out = Vec::new();
        let mut context = Context { config: &self.config, members: &self.members, out: &mut out, now };
        let run = Run::new(id, plan, epoch, Some(ticket), wall_seconds, &mut context);
        self.keep(run);
        self.commands.extend(out);
    }

    /// Why a plan cannot be played here, as far as this node knows by itself.
    fn unfit(&self, plan: &Plan) -> Option<String> {
        let roster = &self.config.roster;
        if let Some(stranger) = plan.rails_of.stranger(roster) {
            return Some(format!("rails_of names {stranger}, which is not in the roster"));
        }
        let rails = plan.rails_of.count().unwrap_or(self.config.rails);
        Schedule::check(plan, roster.len() as u16, rails).err().map(|error| error.to_string())
    }

    fn cancel(&mut self, id: Option<RunId>, now: Mono) {
        self.with_run(now, |run, context| {
            if id.is_none_or(|id| id == run.id) {
                run.stop(RunEnd::Cancelled, context);
            }
        });
    }

    fn answered(&mut self, node: NodeIndex, tag: CallTag, result: Result<Response, CallFault>, now: Mono) {
        if let Ok(Response::StaleEpoch { seen }) = &result
            && self.epoch.is_some_and(|epoch| epoch < *seen)
        {
            let name = &self.config.roster[node.usize()];
            let reason = format!("{name} has seen epoch {seen}");
            self.deposed(&reason);
            return;
        }
        self.with_run(now, |run, context| run.answered(node, tag, result, context));
    }

    fn reply(&mut self, ticket: Ticket, reply: SubmitReply) {
        self.commands.push_back(Command::Reply { ticket, reply });
    }

    fn with_run(&mut self, now: Mono, act: impl FnOnce(&mut Run, &mut Context<'_>)) {
        if self.epoch.is_none() {
            return;
        }
        if let Some(run) = self.runs.back_mut() {
            let mut out = Vec::new();
            let mut context = Context { config: &self.config, members: &self.members, out: &mut out, now };
            act(run, &mut context);
            self.commands.extend(out);
        }
    }
}

/// Runs whose records are kept for `results` and `attach`; the oldest goes first.
const KEPT_RUNS: usize = 4;
