//! What the electors decide, and nothing else: never a figure.

use bench_core::ids::{Epoch, PlanHash, RunId};
use bench_core::message::RoundKey;
use serde::{Deserialize, Serialize};

/// One decision. Committed in order; applied by [`Decisions::apply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A run was accepted.
    RunAccepted {
        /// The run.
        run: RunId,
        /// Which plan.
        plan: PlanHash,
        /// Who accepted it.
        epoch: Epoch,
    },
    /// A round may start. No round starts before its mark committed in the epoch that starts it.
    RoundMark(RoundKey),
    /// A run is over.
    RunEnded {
        /// The run.
        run: RunId,
        /// Who ended it.
        epoch: Epoch,
    },
}

impl Entry {
    /// The epoch that proposed it.
    pub fn epoch(&self) -> Epoch {
        match self {
            Self::RunAccepted { epoch, .. } | Self::RunEnded { epoch, .. } => *epoch,
            Self::RoundMark(key) => key.epoch,
        }
    }
}

/// What the committed entries amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The run that is on.
    pub running: Option<(RunId, PlanHash)>,
    /// The latest run that is over.
    pub ended: Option<RunId>,
    /// The last round mark of the run that is on.
    pub last_mark: Option<RoundKey>,
}

impl Decisions {
    /// Applies one committed entry. Total: an entry that no longer fits changes nothing.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::RunAccepted { run, plan, .. } => {
                if self.running.is_none() {
                    self.running = Some((*run, *plan));
                    self.last_mark = None;
                }
            }
            Entry::RoundMark(key) => {
                if self.running.is_some_and(|(run, _)| run == key.run) {
                    self.last_mark = Some(*key);
                }
            }
            Entry::RunEnded { run, .. } => {
                if self.running.is_some_and(|(running, _)| running == *run) {
                    self.running = None;
                    self.ended = Some(*run);
                    self.last_mark = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Epoch = Epoch { term: 1, elector: 0 };
    const RUN: RunId = RunId([1; 16]);
    const OTHER: RunId = RunId([2; 16]);
    const PLAN: PlanHash = PlanHash([3; 16]);

    #[test]
    fn a_second_run_is_not_accepted_while_one_is_on() {
        let mut decisions = Decisions::default();
        decisions.apply(&Entry::RunAccepted {
            run: RUN,
            plan: PLAN,
            epoch: EPOCH,
        });
        decisions.apply(&Entry::RunAccepted {
            run: OTHER,
            plan: PLAN,
            epoch: EPOCH,
        });
        assert_eq!(decisions.running, Some((RUN, PLAN)));
        decisions.apply(&Entry::RunEnded {
            run: OTHER,
            epoch: EPOCH,
        });
        assert_eq!(decisions.running, Some((RUN, PLAN)));
        decisions.apply(&Entry::RunEnded {
            run: RUN,
            epoch: EPOCH,
        });
        assert_eq!((decisions.running, decisions.ended), (None, Some(RUN)));
    }
}
