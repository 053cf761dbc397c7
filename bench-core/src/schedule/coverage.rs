//! How much of a fabric a schedule looks at.

use std::time::Duration;

use super::steps::Steps;

/// How much of what is possible is planned, on each rail and for each case alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Ordered pairs of different nodes that are measured.
    pub pairs_planned: u64,
    /// Ordered pairs of different nodes that there are.
    pub pairs_possible: u64,
    /// Partners of the node that has the fewest: it sends to as many, and as many send to it. 0 for loopback.
    pub min_partners: u32,
}

/// How a schedule relates to the budget of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetFit {
    /// No budget applies.
    Unlimited,
    /// Everything fits.
    Whole {
        /// The budget.
        budget: Duration,
    },
    /// A sample is measured so that it fits.
    Sampled {
        /// The budget.
        budget: Duration,
    },
    /// Even the least that is worth measuring takes longer; it is measured all the same.
    Exceeded {
        /// The budget.
        budget: Duration,
    },
}

impl Coverage {
    pub(super) fn of(steps: &Steps) -> Self {
        Self {
            pairs_planned: steps.ordered_pairs(),
            pairs_possible: steps.possible_pairs(),
            min_partners: steps.fewest_partners(),
        }
    }
}
