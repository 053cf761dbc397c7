//! What happened in a simulated mesh, in order: what the invariants look at.

use std::collections::BTreeMap;
use std::fmt;

use bench_core::ids::Epoch;
use bench_core::message::RoundKey;
use bench_core::record::{Observation, RunRecord};
use bench_core::time::Mono;

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// A machine was told that it is elected.
    Elected { node: usize, epoch: Epoch },
    /// An agent obeyed a command.
    Obeyed { node: usize, epoch: Epoch },
    /// An agent's fence stood at this epoch after a command; `life` grows when the node loses its state.
    Fence { node: usize, life: u64, epoch: Epoch },
    /// A coordinator sent the start of a round.
    StartSent { key: RoundKey },
    /// An agent began to measure.
    StartObeyed { node: usize, key: RoundKey },
    /// A leader found that a round's mark is on a majority.
    Marked { key: RoundKey },
    /// A leader found that the end of a run is on a majority; so many electors held the whole result then.
    Ended { keepers: usize, electors: usize },
    /// A node was no member for an elector.
    Left { elector: usize, node: usize },
    /// A node was a member for an elector.
    Joined { elector: usize, node: usize },
    /// An end appended an observation to its journal.
    Journaled { node: usize, observation: Box<Observation> },
    /// A node was killed or stood still.
    Away { node: usize },
    /// A node's process started again, with no member.
    Restarted { node: usize },
    /// Messages began to be lost, or no longer are.
    Network { whole: bool },
    /// A node lost its state.
    Lost { node: usize },
}

/// Everything that happened, and what was left in the end.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) list: Vec<(Mono, Fact)>,
    /// The records of the coordinator that ended the run; empty if it did not end.
    pub(crate) result: Vec<RunRecord>,
    /// What every journal held in the end.
    pub(crate) journals: BTreeMap<usize, Vec<Observation>>,
    /// When the faults were over.
    pub(crate) healed: Mono,
}

impl Facts {
    pub(crate) fn note(&mut self, at: Mono, fact: Fact) {
        self.list.push((at, fact));
    }
}

/// A property that did not hold.
#[derive(Clone)]
pub(crate) struct Violation {
    pub(crate) invariant: &'static str,
    pub(crate) at: Mono,
    pub(crate) what: String,
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, at, what } = self;
        write!(f, "at {} ms: {invariant}: {what}", at.as_nanos() / 1_000_000)
    }
}
