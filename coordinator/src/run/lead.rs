//! How long before its instant a start is sent.
//!
//! ```text
//!  a round whose start came late at an end    the lead doubles, up to MAX_START_LEAD; the calm it asks for grows fourfold
//!  that many rounds in a row without          the lead halves, down to START_LEAD
//!  MOST_CALM rounds in a row without          one late start is an exception again
//! ```
//! Too short a lead costs cells (an end that hears of its start too late has no figure and is tried again), too long a
//! one costs time between rounds. What is enough depends on the machines and the mesh, so the run finds it out: a single
//! hiccup raises the lead for a few rounds, a busy machine for the rest of the run.

use std::time::Duration;

use bench_core::message::RoundKey;

use crate::config::{MAX_START_LEAD, START_LEAD};

/// How much longer a calm is asked for after each late start.
const CALM_GROWTH: u32 = 4;

/// The longest calm that is asked for, in rounds.
const MOST_CALM: u32 = 256;

/// The lead of a run's next round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StartLead {
    lead: Duration,
    /// Rounds in a row without a late start.
    calm: u32,
    /// Rounds in a row after which the lead halves.
    asked: u32,
    /// The round that raised it last: all late ends of one round are one piece of news.
    raised_by: Option<RoundKey>,
}

impl StartLead {
    /// The lead of a first round.
    pub(super) fn new() -> Self {
        Self { lead: START_LEAD, calm: 0, asked: 1, raised_by: None }
    }

    /// The lead of the round that is started now.
    pub(super) fn next(&mut self) -> Duration {
        if self.lead > START_LEAD && self.calm >= self.asked {
            self.calm = 0;
            self.lead = (self.lead / 2).max(START_LEAD);
        }
        if self.calm >= MOST_CALM {
            self.asked = 1;
        }
        self.calm = self.calm.saturating_add(1);
        self.lead
    }

    /// An end of this round heard of its start too late.
    pub(super) fn came_late(&mut self, round: RoundKey) {
        self.calm = 0;
        if self.raised_by.replace(round) != Some(round) {
            self.lead = (self.lead * 2).min(MAX_START_LEAD);
            self.asked = (self.asked * CALM_GROWTH).min(MOST_CALM);
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
    fn one_hiccup_raises_it_for_a_few_rounds_and_many_for_long() {
        let mut lead = StartLead::new();
        lead.came_late(round(0));
        let raised = |lead: &mut StartLead| (0..2 * MOST_CALM).filter(|_| lead.next() > START_LEAD).count();
        assert_eq!(raised(&mut lead), CALM_GROWTH as usize);
        for index in 1..=4 {
            lead.came_late(round(index));
            lead.next();
        }
        assert!(raised(&mut lead) > MOST_CALM as usize);
    }

    #[test]
    fn it_never_falls_below_its_shortest() {
        let mut lead = StartLead::new();
        lead.came_late(round(0));
        for _ in 0..3 * MOST_CALM {
            assert!(lead.next() >= START_LEAD);
        }
        assert_eq!(lead.next(), START_LEAD);
    }
}
