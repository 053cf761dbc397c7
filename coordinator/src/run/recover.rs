//! Going on with a run that another coordinator began.
//!
//! The electors' log tells the plan, every journal tells what was measured. The new coordinator asks every member for
//! its inventory and its whole journal of the run, takes the union, and plays what is missing in its own epoch; marks
//! of the old one start nothing any more. Nodes that do not answer in time are gone on without and join late.
//!
//! The log does not tell which cells were added as retests, so retests of older epochs are left out and suspects are
//! measured again.

use std::collections::BTreeSet;

use bench_core::ids::{CellId, Epoch, NodeIndex};
use bench_core::journal::{self, Standing};
use bench_core::message::{Request, Response, RoundKey};
use bench_core::record::{Note, Observation, RunEnd, RunRecord, Severity};
use bench_core::time::Mono;

use super::{Collecting, Context, Run, RunPhase};
use crate::command::Command;
use crate::config::{COLLECT_TIMEOUT, PROBE_TIMEOUT, RECOVERY_LIMIT, RECOVERY_PATIENCE};
use crate::decision::AcceptedRun;
use crate::event::{CallFault, CallTag};
use crate::members::MemberState;

/// What a new coordinator has found of a run so far.
#[derive(Debug)]
pub(super) struct Recovery {
    /// The last round that may have started.
    last_mark: RoundKey,
    /// What the journals hold.
    found: Vec<Observation>,
    /// Nodes that have answered anything.
    heard: BTreeSet<NodeIndex>,
    /// When even those that have are gone on without.
    limit: Mono,
    /// How the run ends once everything is gathered, if somebody stopped it meanwhile.
    end: Option<RunEnd>,
}

impl Run {
    /// A run that was accepted in an earlier epoch. If none of its rounds was marked, it begins as if it were new.
    pub(crate) fn take_over(
        accepted: AcceptedRun,
        last_mark: Option<RoundKey>,
        epoch: Epoch,
        join_deadline: Mono,
        context: &mut Context<'_>,
    ) -> Self {
        let AcceptedRun { run, plan, wall_seconds } = accepted;
        let mut run = Self::blank(run, *plan, epoch, wall_seconds, context);
        run.taken_over = true;
        match last_mark {
            None => {
                run.phase = RunPhase::Joining;
                run.deadline = Some(join_deadline);
            }
            Some(last_mark) => {
                run.phase = RunPhase::Recovering;
                run.deadline = Some(context.now.after(RECOVERY_PATIENCE));
                run.recovery = Some(Recovery {
                    last_mark,
                    found: Vec::new(),
                    heard: BTreeSet::new(),
                    limit: context.now.after(RECOVERY_LIMIT),
                    end: None,
                });
                let present: Vec<_> = context.members.present().collect();
                for node in present {
                    run.ask_all(node, context);
                }
            }
        }
        run
    }

    /// Asks a member for its inventory and for all that its journal holds of this run.
    pub(super) fn ask_all(&mut self, node: NodeIndex, context: &mut Context<'_>) {
        self.ask_inventory(node, context);
        self.ask_journal(node, Vec::new(), context);
    }

    /// Asks a member for its inventory.
    pub(super) fn ask_inventory(&mut self, node: NodeIndex, context: &mut Context<'_>) {
        let request =
            Box::new(Request::Probe { epoch: self.epoch, rails: context.rails_of(&self.plan, node) });
        context.out.push(Command::Send { node, tag: CallTag::Probe, request, deadline: PROBE_TIMEOUT });
        self.probing.insert(node);
    }

    /// Asks a member for what its journal holds of these cells; none means all.
    pub(super) fn ask_journal(&mut self, node: NodeIndex, cells: Vec<CellId>, context: &mut Context<'_>) {
        self.collecting.insert(node, Collecting { cells, skip: 0 });
        self.ask_next_batch(node, context);
    }

    /// A member told a batch of its journal, or did not. An empty one is the last.
    pub(super) fn collected(
        &mut self,
        node: NodeIndex,
        result: Result<Response, CallFault>,
        context: &mut Context<'_>,
    ) {
        let Some(collecting) = self.collecting.get_mut(&node) else {
            return;
        };
        match result {
            Ok(Response::Observations(observations)) if observations.is_empty() => {
                self.collecting.remove(&node);
                self.owing.remove(&node);
                self.hear(node);
            }
            Ok(Response::Observations(observations)) => {
                collecting.skip += observations.len() as u64;
                self.take_found(observations);
                self.ask_next_batch(node, context);
                self.hear(node);
            }
            Ok(_) | Err(_) => {
                self.collecting.remove(&node);
                self.owing.insert(node);
            }
        }
    }

    /// A member answered something.
    pub(super) fn hear(&mut self, node: NodeIndex) {
        if let Some(recovery) = &mut self.recovery {
            recovery.heard.insert(node);
        }
    }

    /// Recovering: goes on when everybody who can be expected to has told everything, or the time is over.
    pub(super) fn try_resume(&mut self, context: &mut Context<'_>) -> bool {
        let Some(recovery) = &self.recovery else {
            return false;
        };
        let patient = !self.overdue(context);
        let still_comes =
            |node: &NodeIndex| context.now < recovery.limit && (patient || recovery.heard.contains(node));
        let unseen = context.members.states().iter().any(|state| match state {
            MemberState::Never => true,
            MemberState::Present { .. } | MemberState::Gone { .. } => false,
        });
        let outstanding = self.probing.iter().chain(self.collecting.keys());
        if (patient && unseen) || outstanding.into_iter().any(still_comes) {
            if !patient {
                self.deadline = Some(recovery.limit);
            }
            return false;
        }
        self.begin(context);
        true
    }

    /// Whether every journal that can be had has been read. Asks once more those that failed to tell theirs.
    pub(super) fn has_collected(&mut self, context: &mut Context<'_>) -> bool {
        let again: Vec<_> =
            self.owing.iter().filter(|node| context.members.is_present(**node)).copied().collect();
        self.owing.clear();
        for node in again {
            self.ask_journal(node, Vec::new(), context);
        }
        if self.collecting.is_empty() {
            self.deadline = None;
            return true;
        }
        let deadline = *self.deadline.get_or_insert_with(|| context.now.after(COLLECT_TIMEOUT));
        context.now >= deadline
    }

    /// Stops a run that is being recovered: what the journals hold is gathered first.
    pub(super) fn stop_after_recovery(&mut self, end: RunEnd) -> bool {
        match &mut self.recovery {
            Some(recovery) if self.phase == RunPhase::Recovering => {
                recovery.end = Some(end);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Makes the records of what was found, and leaves out of the queue what is complete. Returns how the run ends if
    /// it was stopped meanwhile.
    pub(super) fn rebuild(&mut self, context: &Context<'_>) -> Option<RunEnd> {
        if self.taken_over {
            self.records.push(RunRecord::Note(self.change_note(context)));
        }
        let recovery = self.recovery.take()?;
        self.take_found(recovery.found);
        let merged = journal::merge(self.observed());
        let done = merged.cells().filter_map(|(_, cell, merged)| match merged.standing() {
            // Measuring again would not tell which of two different observations is right.
            Standing::Complete { .. } | Standing::Conflict { .. } => Some(cell),
            Standing::Incomplete { .. } => None,
        });
        let done = done.collect();
        self.queue.pass_over(done);
        recovery.end
    }

    fn ask_next_batch(&mut self, node: NodeIndex, context: &mut Context<'_>) {
        let Some(Collecting { cells, skip }) = self.collecting.get(&node) else {
            return;
        };
        let request =
            Box::new(Request::Collect { epoch: self.epoch, run: self.id, cells: cells.clone(), skip: *skip });
        context.out.push(Command::Send {
            node,
            tag: CallTag::Collect(self.id),
            request,
            deadline: COLLECT_TIMEOUT,
        });
    }

    /// Takes what a journal holds: kept aside until the schedule is known, then made records, each once.
    fn take_found(&mut self, observations: Vec<Observation>) {
        let Some(schedule) = &self.schedule else {
            if let Some(recovery) = &mut self.recovery {
                recovery.found.extend(observations);
            }
            return;
        };
        let planned = schedule.cells();
        let usable = observations.into_iter().filter(|o| o.key.epoch == self.epoch || o.key.cell.0 < planned);
        let (known, found) = (journal::merge(self.observed()), journal::merge(usable));
        let fresh = found.observations().filter(|o| !known.holds(o));
        let fresh: Vec<Observation> = fresh.cloned().collect();
        self.observe(fresh);
    }

    fn change_note(&self, context: &Context<'_>) -> Note {
        let node = NodeIndex(self.epoch.elector);
        let name = context.config.roster.get(node.usize()).map_or_else(String::new, ToString::to_string);
        let text = match &self.recovery {
            None => format!(
                "the coordinator changed before the first round: {name} commands in epoch {}",
                self.epoch
            ),
            Some(recovery) => format!(
                "the coordinator changed after the mark of {} in epoch {}: {name} commands in epoch {}; {} \
                 observations were found in the journals, retests of earlier epochs are measured again",
                recovery.last_mark.round,
                recovery.last_mark.epoch,
                self.epoch,
                recovery.found.len()
            ),
        };
        Note { severity: Severity::Info, node: Some(node), text, remedy: None }
    }
}
