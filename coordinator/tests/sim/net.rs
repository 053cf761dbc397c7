//! The network model: who reaches whom, how long it takes, and what gets lost.

use std::collections::BTreeSet;
use std::time::Duration;

use bench_core::fabric::Rng;

/// Who reaches whom.
#[derive(Debug, Default)]
pub(crate) struct Net {
    /// Pairs (from, to) over which nothing arrives. One direction of a pair may be cut alone.
    cut: BTreeSet<(usize, usize)>,
    /// Messages lost of a thousand.
    pub(crate) loss: u64,
    /// Longest additional delay, microseconds.
    pub(crate) jitter: u64,
}

impl Net {
    /// Cuts everything from one side to the other.
    pub(crate) fn cut(&mut self, from: &[usize], to: &[usize]) {
        for a in from {
            self.cut.extend(to.iter().filter(|b| *b != a).map(|b| (*a, *b)));
        }
    }

    pub(crate) fn heal(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        !self.cut.contains(&(from, to))
    }

    /// How long a message takes; `None` if it is lost.
    pub(crate) fn send(&self, from: usize, to: usize, rng: &mut Rng) -> Option<Duration> {
        if from == to {
            return Some(Duration::from_micros(1));
        }
        let lost = rng.next_u64() % 1000 < self.loss;
        let jitter = rng.next_u64() % (self.jitter + 200);
        (self.reaches(from, to) && !lost).then(|| Duration::from_micros(100 + jitter))
    }
}
