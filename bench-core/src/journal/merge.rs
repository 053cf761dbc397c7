//! The union of journals: which observations there are of each cell, and which of them count.
//!
//! The union is a set keyed by [`ObservationKey`], so order and repetition do not matter. Of the attempts at a cell
//! the highest complete one counts (epoch first, then attempt; complete means that both ends measured); all others
//! are superseded and outside every histogram.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::encode;
use crate::cell::End;
use crate::ids::{Attempt, CellId, Epoch, RunId};
use crate::record::{Observation, ObservationKey, Outcome};

/// One try at a cell. The derived order is that of counting: epoch first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey {
    /// The epoch in which it was commanded.
    pub epoch: Epoch,
    /// Which try within the epoch.
    pub attempt: Attempt,
}

/// What the two ends said of one attempt. More than one observation of an end is a conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnds<O> {
    /// Different observations of the source, in the order of their bytes.
    pub source: Vec<O>,
    /// Different observations of the destination, in the order of their bytes.
    pub destination: Vec<O>,
}

/// Every attempt at one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedCell<O> {
    attempts: BTreeMap<AttemptKey, AttemptEnds<O>>,
}

/// The union of observations, owned or borrowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged<O = Observation> {
    cells: BTreeMap<(RunId, CellId), MergedCell<O>>,
}

/// What a cell's attempts come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing<'a> {
    /// Both ends of the highest complete attempt.
    Complete {
        /// The attempt that counts.
        key: AttemptKey,
        /// The source's observation.
        source: &'a Observation,
        /// The destination's observation.
        destination: &'a Observation,
    },
    /// No attempt is complete: what there is of the highest.
    Incomplete {
        /// The highest attempt.
        key: AttemptKey,
        /// The source's observation.
        source: Option<&'a Observation>,
        /// The destination's observation.
        destination: Option<&'a Observation>,
    },
    /// One end of this attempt is on record twice with different contents.
    Conflict {
        /// The attempt.
        key: AttemptKey,
        /// The end.
        end: End,
    },
}

/// The union of `observations`: any order, any repetition, the same result.
pub fn merge<O: Borrow<Observation>>(observations: impl IntoIterator<Item = O>) -> Merged<O> {
    let mut merged = Merged { cells: BTreeMap::new() };
    for observation in observations {
        merged.insert(observation);
    }
    merged
}

impl<O: Borrow<Observation>> Merged<O> {
    fn insert(&mut self, observation: O) {
        let ObservationKey { run, cell, epoch, attempt, end } = observation.borrow().key;
        let ends = self
            .cells
            .entry((run, cell))
            .or_insert_with(|| MergedCell { attempts: BTreeMap::new() })
            .attempts
            .entry(AttemptKey { epoch, attempt })
            .or_insert_with(|| AttemptEnds { source: Vec::new(), destination: Vec::new() });
        let known = match end {
            End::Source => &mut ends.source,
            End::Destination => &mut ends.destination,
        };
        if !known.iter().any(|other| other.borrow() == observation.borrow()) {
            known.push(observation);
            if known.len() > 1 {
                known.sort_by_cached_key(|other| encode(other.borrow()));
            }
        }
    }

    /// What there is of a cell; `None` without any observation.
    pub fn cell(&self, run: RunId, cell: CellId) -> Option<&MergedCell<O>> {
        self.cells.get(&(run, cell))
    }

    /// Whether this very observation is in the union.
    pub fn holds(&self, observation: &Observation) -> bool {
        let key = observation.key;
        let attempt = AttemptKey { epoch: key.epoch, attempt: key.attempt };
        let known = self.cells.get(&(key.run, key.cell)).and_then(|cell| {
            let ends = cell.attempts.get(&attempt)?;
            Some(match key.end {
                End::Source => &ends.source,
                End::Destination => &ends.destination,
            })
        });
        known.is_some_and(|known| known.iter().any(|other| other.borrow() == observation))
    }

    /// Every observation of the union, in the order of cells and attempts.
    pub fn observations(&self) -> impl Iterator<Item = &Observation> {
        let attempts = self.cells.values().flat_map(|cell| cell.attempts.values());
        attempts.flat_map(|ends| ends.source.iter().chain(&ends.destination)).map(Borrow::borrow)
    }

    /// Every cell that was observed, with its run, in order.
    pub fn cells(&self) -> impl Iterator<Item = (RunId, CellId, &MergedCell<O>)> {
        self.cells.iter().map(|((run, cell), merged)| (*run, *cell, merged))
    }
}

impl<O: Borrow<Observation>> MergedCell<O> {
    /// What the attempts come to. A conflict in any attempt is one of the whole cell: what else was mixed up is not
    /// known.
    pub fn standing(&self) -> Standing<'_> {
        if let Some((key, end)) = self.conflicts().next().map(|(key, end, _)| (key, end)) {
            return Standing::Conflict { key, end };
        }
        let complete = self.attempts.iter().rev().find_map(|(key, ends)| {
            let (source, destination) = (measured(&ends.source)?, measured(&ends.destination)?);
            Some(Standing::Complete { key: *key, source, destination })
        });
        complete.unwrap_or_else(|| {
            let (key, ends) =
                self.attempts.last_key_value().expect("a merged cell is made by its first observation");
            Standing::Incomplete {
                key: *key,
                source: ends.source.first().map(Borrow::borrow),
                destination: ends.destination.first().map(Borrow::borrow),
            }
        })
    }

    /// Every attempt with its ends, lowest first.
    pub fn attempts(&self) -> impl Iterator<Item = (AttemptKey, &AttemptEnds<O>)> {
        self.attempts.iter().map(|(key, ends)| (*key, ends))
    }

    /// Ends that are on record with different contents.
    pub fn conflicts(&self) -> impl Iterator<Item = (AttemptKey, End, &[O])> {
        self.attempts.iter().flat_map(|(key, ends)| {
            [(End::Source, &ends.source), (End::Destination, &ends.destination)]
                .into_iter()
                .filter(|(_, seen)| seen.len() > 1)
                .map(|(end, seen)| (*key, end, seen.as_slice()))
        })
    }

    /// The attempts that do not count beside `counted`.
    pub fn superseded(&self, counted: AttemptKey) -> impl Iterator<Item = AttemptKey> {
        self.attempts.keys().copied().filter(move |key| *key != counted)
    }
}

fn measured<O: Borrow<Observation>>(end: &[O]) -> Option<&Observation> {
    let observation = end.first()?.borrow();
    match observation.outcome {
        Outcome::Measured(_) => Some(observation),
        Outcome::Failed(_) => None,
    }
}
