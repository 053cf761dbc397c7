//! The fence: the highest epoch that a node has seen. Commands of a lower one are refused.
//!
//! A process that just started has seen nothing, so an old coordinator could still move it. It therefore obeys nobody
//! before a majority of the electors told it which epoch they have seen: every later epoch was voted for by at least
//! one of them.

use std::collections::BTreeSet;

use bench_core::ids::{Epoch, NodeIndex};

/// The highest epoch seen. Only grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    highest: Option<Epoch>,
    told: BTreeSet<NodeIndex>,
    majority: usize,
}

/// What the fence says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It may be obeyed.
    Open,
    /// A higher epoch was seen.
    Stale {
        /// That epoch.
        seen: Epoch,
    },
    /// Too few electors have told their epoch since this process started.
    Shut {
        /// How many have.
        told: usize,
        /// How many must.
        majority: usize,
    },
}

impl Fence {
    /// The fence of a process that just started in a mesh with so many electors. Shut until [`Fence::learn`] heard a
    /// majority of them.
    pub fn new(electors: usize) -> Self {
        Self { highest: None, told: BTreeSet::new(), majority: electors / 2 + 1 }
    }

    /// Holds a command's epoch against the highest seen, and remembers it if it is higher. The caller has made sure
    /// that the command comes from the elector that the epoch names, over a connection of this process: with its
    /// command that elector tells which epoch it has seen.
    pub fn pass(&mut self, epoch: Epoch) -> Passage {
        match self.highest {
            Some(seen) if epoch < seen => return Passage::Stale { seen },
            Some(_) | None => self.learn(NodeIndex(epoch.elector), Some(epoch)),
        }
        if !self.is_open() {
            return Passage::Shut { told: self.told.len(), majority: self.majority };
        }
        Passage::Open
    }

    /// An elector told the highest epoch that it has seen or voted for.
    pub fn learn(&mut self, elector: NodeIndex, highest: Option<Epoch>) {
        self.told.insert(elector);
        self.raise(highest);
    }

    /// Remembers an epoch that another node has seen.
    pub fn raise(&mut self, epoch: Option<Epoch>) {
        self.highest = self.highest.max(epoch);
    }

    /// Whether a majority of the electors has told its epoch: before that nobody is obeyed.
    pub fn is_open(&self) -> bool {
        self.told.len() >= self.majority
    }

    /// The highest epoch seen.
    pub fn highest(&self) -> Option<Epoch> {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn epoch(term: u64, elector: u16) -> Epoch {
        Epoch { term, elector }
    }

    #[test]
    fn a_lower_epoch_is_refused_and_the_fence_never_falls() {
        let mut fence = Fence::new(1);
        assert_eq!(fence.pass(epoch(2, 0)), Passage::Open, "a lone elector is its own majority");
        assert_eq!(fence.pass(epoch(1, 4)), Passage::Stale { seen: epoch(2, 0) });
        assert_eq!(fence.pass(epoch(2, 1)), Passage::Open);
        fence.raise(Some(epoch(2, 0)));
        assert_eq!(fence.highest(), Some(epoch(2, 1)));
    }

    #[test]
    fn a_process_that_just_started_obeys_nobody_before_a_majority_told_its_epoch() {
        let mut fence = Fence::new(3);
        let shut = Passage::Shut { told: 1, majority: 2 };
        assert_eq!(fence.pass(epoch(1, 0)), shut);
        fence.learn(NodeIndex(0), Some(epoch(1, 0)));
        assert_eq!(fence.pass(epoch(1, 0)), shut, "one elector twice is one elector");
        fence.learn(NodeIndex(2), Some(epoch(2, 2)));
        assert_eq!(fence.pass(epoch(1, 0)), Passage::Stale { seen: epoch(2, 2) });
        assert_eq!(fence.pass(epoch(2, 2)), Passage::Open);
    }
}
