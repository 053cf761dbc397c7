//! What the electors decide, and nothing else: never a figure.

use bench_core::ids::{Epoch, RunId};
use bench_core::message::RoundKey;
use bench_core::plan::Plan;
use serde::{Deserialize, Serialize};

/// One decision. Committed in order; applied by [`Decisions::apply`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// A run was accepted. The whole plan is here, so that whoever commands next can go on with the run.
    RunAccepted {
        /// The run.
        run: RunId,
        /// What is to be measured.
        plan: Box<Plan>,
        /// When it was submitted, seconds since 1970: a label.
        wall_seconds: u64,
        /// Who accepted it.
        epoch: Epoch,
    },
    /// A round may start. No round starts before its mark committed in the epoch that starts it.
    RoundMark(RoundKey),
    /// A run is over. Proposed when its result is on a majority of the electors.
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

/// A run that the electors accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptedRun {
    /// The run.
    pub run: RunId,
    /// What is to be measured.
    pub plan: Box<Plan>,
    /// When it was submitted, seconds since 1970: a label.
    pub wall_seconds: u64,
}

/// What the committed entries amount to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decisions {
    /// The run that is on.
    pub running: Option<AcceptedRun>,
    /// The latest run that is over.
    pub ended: Option<RunId>,
    /// The last round mark of the run that is on.
    pub last_mark: Option<RoundKey>,
}

impl Decisions {
    /// Applies one committed entry. Total: an entry that no longer fits changes nothing.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::RunAccepted { run, plan, wall_seconds, .. } => {
                if self.running.is_none() && self.ended != Some(*run) {
                    self.running =
                        Some(AcceptedRun { run: *run, plan: plan.clone(), wall_seconds: *wall_seconds });
                    self.last_mark = None;
                }
            }
            Entry::RoundMark(key) => {
                if self.is_running(key.run) {
                    self.last_mark = Some(*key);
                }
            }
            Entry::RunEnded { run, .. } => {
                if self.is_running(*run) {
                    self.running = None;
                    self.ended = Some(*run);
                    self.last_mark = None;
                }
            }
        }
    }

    /// Whether this run is on.
    pub fn is_running(&self, run: RunId) -> bool {
        self.running.as_ref().is_some_and(|accepted| accepted.run == run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_core::plan::PlanSpec;

    const EPOCH: Epoch = Epoch { term: 1, elector: 0 };
    const RUN: RunId = RunId([1; 16]);
    const OTHER: RunId = RunId([2; 16]);

    fn accepted(run: RunId) -> Entry {
        let plan = PlanSpec::default().validate().expect("the default plan");
        Entry::RunAccepted { run, plan: Box::new(plan), wall_seconds: 5, epoch: EPOCH }
    }

    fn ended(run: RunId) -> Entry {
        Entry::RunEnded { run, epoch: EPOCH }
    }

    #[test]
    fn a_second_run_is_not_accepted_while_one_is_on() {
        let mut decisions = Decisions::default();
        decisions.apply(&accepted(RUN));
        decisions.apply(&accepted(OTHER));
        assert!(decisions.is_running(RUN));
        decisions.apply(&ended(OTHER));
        assert!(decisions.is_running(RUN));
        decisions.apply(&ended(RUN));
        assert_eq!((decisions.running, decisions.ended), (None, Some(RUN)));
    }

    #[test]
    fn a_run_that_is_over_is_not_accepted_once_more() {
        let mut decisions = Decisions::default();
        for entry in [accepted(RUN), ended(RUN), accepted(RUN)] {
            decisions.apply(&entry);
        }
        assert_eq!((decisions.running, decisions.ended), (None, Some(RUN)));
    }
}
