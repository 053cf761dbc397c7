//! Putting the result on the electors before the run's end is proposed.
//!
//! Every elector, this node included, gets the records in batches, the last of which ends in [`RunRecord::Ended`]. The
//! end is proposed as soon as a majority has kept them all; the others get the rest while the run is still here. An
//! elector that does not keep a batch is asked again after a pause. Without a majority within [`STORE_LIMIT`] the run
//! ends as aborted, and says which electors did not keep its result.

use std::collections::BTreeMap;

use bench_core::ids::NodeIndex;
use bench_core::message::{Request, Response};
use bench_core::record::{self, RunEnd, RunRecord};
use bench_core::time::Mono;

use super::{Context, Run, RunPhase};
use crate::command::Command;
use crate::config::{STORE_LIMIT, STORE_PAUSE, STORE_TIMEOUT};
use crate::decision::Entry;
use crate::event::{CallFault, CallTag};

/// The result on its way to the electors.
#[derive(Debug)]
pub(super) struct Storing {
    /// The records as they were when storing began, with the end as the last.
    records: Vec<RunRecord>,
    keepers: BTreeMap<NodeIndex, Keeper>,
    deadline: Mono,
}

/// How far one elector is.
#[derive(Debug)]
enum Keeper {
    /// It is asked to keep the batch from `from` to before `to`.
    Sending { from: usize, to: usize },
    /// It did not keep what begins at `from`; it is asked again at `until`.
    Pausing { from: usize, until: Mono, reason: String },
    /// It has kept everything.
    Kept,
}

impl Storing {
    /// Electors that have not kept everything.
    pub(super) fn waiting(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.keepers.iter().filter_map(|(node, keeper)| match keeper {
            Keeper::Sending { .. } | Keeper::Pausing { .. } => Some(*node),
            Keeper::Kept => None,
        })
    }

    /// How the run ends.
    fn end(&self) -> RunRecord {
        self.records.last().cloned().expect("the end is the last record that is stored")
    }

    fn next_deadline(&self) -> Mono {
        let pauses = self.keepers.values().filter_map(|keeper| match keeper {
            Keeper::Pausing { until, .. } => Some(*until),
            Keeper::Sending { .. } | Keeper::Kept => None,
        });
        pauses.chain([self.deadline]).min().unwrap_or(self.deadline)
    }

    fn has_majority(&self) -> bool {
        let kept = self.keepers.len() - self.waiting().count();
        kept > self.keepers.len() / 2
    }

    /// Who has not kept the result, and why not.
    fn shortfall(&self, context: &Context<'_>) -> String {
        let named = self.keepers.iter().filter_map(|(node, keeper)| {
            let name = &context.config.roster[node.usize()];
            match keeper {
                Keeper::Sending { .. } => Some(format!("{name} did not answer")),
                Keeper::Pausing { reason, .. } => Some(format!("{name}: {reason}")),
                Keeper::Kept => None,
            }
        });
        let named: Vec<String> = named.collect();
        format!(
            "the result is not on a majority of the {} electors after {}: {}",
            self.keepers.len(),
            bench_core::units::format_duration(STORE_LIMIT),
            named.join("; ")
        )
    }
}

impl Run {
    /// Stores the result; the end is proposed when a majority has it.
    pub(super) fn finish(&mut self, end: RunEnd, context: &mut Context<'_>) {
        self.phase = RunPhase::Storing;
        self.deadline = None;
        self.probing.clear();
        self.collecting.clear();
        let mut records = self.records.clone();
        records.push(RunRecord::Ended(end));
        let keepers = context.config.electors.iter().map(|node| {
            let unsent = Keeper::Pausing { from: 0, until: context.now, reason: "not asked yet".to_owned() };
            (*node, unsent)
        });
        self.storing =
            Some(Storing { records, keepers: keepers.collect(), deadline: context.now.after(STORE_LIMIT) });
    }

    /// Storing: asks electors whose turn it is; goes on when a majority has the result or the time is over.
    pub(super) fn try_end(&mut self, context: &mut Context<'_>) -> bool {
        let Some(storing) = &self.storing else {
            return false;
        };
        let enough = storing.has_majority();
        if !enough && context.now >= storing.deadline {
            let reason = storing.shortfall(context);
            self.correct_end(RunEnd::Aborted { reason }, context);
        } else if !enough {
            self.ask_due_keepers(context);
            return false;
        }
        self.phase = RunPhase::Ending;
        context.out.push(Command::Propose(Entry::RunEnded { run: self.id, epoch: self.epoch }));
        true
    }

    /// An elector kept a batch, or did not.
    pub(super) fn stored(
        &mut self,
        node: NodeIndex,
        result: Result<Response, CallFault>,
        context: &mut Context<'_>,
    ) {
        let Some(storing) = &mut self.storing else { return };
        let Some(keeper) = storing.keepers.get_mut(&node) else {
            return;
        };
        let Keeper::Sending { from, to } = *keeper else {
            return;
        };
        let (from, reason) = match result {
            Ok(Response::Done) if to == storing.records.len() => {
                *keeper = Keeper::Kept;
                return;
            }
            Ok(Response::Done) => {
                self.send_batch(node, to, context);
                return;
            }
            // A restarted elector may have lost the batches before.
            Ok(Response::Invalid { reason }) => (0, reason),
            Ok(_) => (0, "it answered with something else".to_owned()),
            Err(fault) => (from, fault.to_string()),
        };
        let until = context.now.after(STORE_PAUSE);
        *keeper = Keeper::Pausing { from, until, reason };
    }

    /// When storing wants to be woken.
    pub(super) fn storing_deadline(&self) -> Option<Mono> {
        match self.phase {
            RunPhase::Storing => self.storing.as_ref().map(Storing::next_deadline),
            RunPhase::Accepting
            | RunPhase::Recovering
            | RunPhase::Joining
            | RunPhase::Probing
            | RunPhase::Measuring
            | RunPhase::Retrying
            | RunPhase::Retesting
            | RunPhase::Ending
            | RunPhase::Ended => None,
        }
    }

    /// The last record of the run, once the electors have decided.
    pub(super) fn end_record(&self) -> Option<RunRecord> {
        self.storing.as_ref().map(Storing::end)
    }

    fn ask_due_keepers(&mut self, context: &mut Context<'_>) {
        let Some(storing) = &self.storing else { return };
        let due = storing.keepers.iter().filter_map(|(node, keeper)| match keeper {
            Keeper::Pausing { from, until, .. } if *until <= context.now => Some((*node, *from)),
            Keeper::Pausing { .. } | Keeper::Sending { .. } | Keeper::Kept => None,
        });
        let due: Vec<_> = due.collect();
        for (node, from) in due {
            self.send_batch(node, from, context);
        }
    }

    fn send_batch(&mut self, node: NodeIndex, from: usize, context: &mut Context<'_>) {
        let Some(storing) = &mut self.storing else { return };
        let records = record::batch(&storing.records[from..]).to_vec();
        let to = from + records.len();
        storing.keepers.insert(node, Keeper::Sending { from, to });
        let request =
            Box::new(Request::StoreResult { epoch: self.epoch, run: self.id, from: from as u64, records });
        context.out.push(Command::Send {
            node,
            tag: CallTag::Store(self.id),
            request,
            deadline: STORE_TIMEOUT,
        });
    }

    /// Ends the run otherwise than was stored, and tells those who have the whole of it.
    fn correct_end(&mut self, end: RunEnd, context: &mut Context<'_>) {
        let Some(storing) = &mut self.storing else { return };
        let last = storing.records.len() - 1;
        storing.records[last] = RunRecord::Ended(end);
        let kept = storing.keepers.iter().filter_map(|(node, keeper)| match keeper {
            Keeper::Kept => Some(*node),
            Keeper::Sending { .. } | Keeper::Pausing { .. } => None,
        });
        let kept: Vec<_> = kept.collect();
        for node in kept {
            self.send_batch(node, last, context);
        }
    }
}
