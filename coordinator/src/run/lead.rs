//! How long before its instant a start is sent.
//!
//! ```text
//!  a round whose start came late at an end    the lead doubles, up to MAX_START_LEAD
//!  CALM_ROUNDS rounds in a row without        the lead halves, down to START_LEAD
//! ```
//! Too short a lead costs cells (an end that hears of its start too late has no figure), too long a one costs time
//! between rounds. What is enough depends on the machines and the mesh, so the run finds it out.

use std::time::Duration;

use bench_core::message::RoundKey;

use crate::config::{MAX_START_LEAD, START_LEAD};

/// Rounds in a row without a late start after which a raised lead is halved.
const CALM_ROUNDS: u32 = 64;

/// The lead of a run's next round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StartLead {
    lead: Duration,
    calm: u32,
    /// The round that raised it last: all late ends of one round are one piece of news.
    raised_by: Option<RoundKey>,
}

impl StartLead {
    /// The lead of a first round.
    pub(super) fn new() -> Self {
        Self { lead: START_LEAD, calm: 0, raised_by: None }
    }

    /// The lead of the round that is started now.
    pub(super) fn next(&mut self) -> Duration {
        self.calm += 1;
        if self.calm > CALM_ROUNDS {
            self.calm = 1;
            self.lead = (self.lead / 2).max(START_LEAD);
        }
        self.lead
    }

    /// An end of this round heard of its start too late.
    pub(super) fn came_late(&mut self, round: RoundKey) {
        self.calm = 0;
        if self.raised_by.replace(round) != Some(round) {
            self.lead = (self.lead * 2).min(MAX_START_LEAD);
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_core::ids::{Attempt, Epoch, RoundId, RunId};

    use super::*;

    fn round(index: u32) -> RoundKey {
        RoundKey {
            run: RunId([7; 16]),
            round: RoundId(index),
            epoch: Epoch { term: 1, elector: 0 },
            attempt: Attempt(1),
        }
    }

    #[test]
    fn each_round_with_late_ends_doubles_it_once_up_to_its_longest() {
        let mut lead = StartLead::new();
        lead.came_late(round(0));
        lead.came_late(round(0));
        assert_eq!(lead.next(), 2 * START_LEAD);
        for index in 1..20 {
            lead.came_late(round(index));
        }
        assert_eq!(lead.next(), MAX_START_LEAD);
    }

    #[test]
    fn calm_rounds_bring_it_back_and_never_below_its_shortest() {
        let mut lead = StartLead::new();
        lead.came_late(round(0));
        for _ in 0..CALM_ROUNDS {
            assert_eq!(lead.next(), 2 * START_LEAD);
        }
        assert_eq!(lead.next(), START_LEAD);
        for _ in 0..2 * CALM_ROUNDS {
            assert_eq!(lead.next(), START_LEAD);
        }
    }
}
