//! The smallest set of parts of one rail that explains its faulty cells.
//!
//! Each cell of the rail's matrix is faulty, sound or grey (near its limit: proves nothing). A set of parts costs one
//! for each part, one for each sound cell that a part covers (it contradicts the part), and one for each pair of nodes
//! whose faulty cells no part covers (the pair is a part then). The cheapest set is searched by adding the part that
//! saves most, and then by removing and exchanging until nothing saves any more: a robust factoring of the matrix into
//! row, column and whole-matrix effects whose residue are single pairs. A part has to save something, so where a pair
//! explains as much, the pair is named.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::NodeIndex;

/// One cell of a rail's matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) src: NodeIndex,
    pub(super) dst: NodeIndex,
    pub(super) mark: Mark,
}

/// What a cell says of the parts that it passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::judge) enum Mark {
    /// At least one of them is at fault.
    Faulty,
    /// Nothing.
    Grey,
    /// None of them is at fault.
    Sound,
}

/// A part of one rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Local {
    Rail,
    Both(NodeIndex),
    Send(NodeIndex),
    Receive(NodeIndex),
    /// Both directions of a pair, the lower node first.
    Pair(NodeIndex, NodeIndex),
    /// One direction of a pair.
    Directed(NodeIndex, NodeIndex),
}

/// The cheapest set of parts, in order.
///
/// The rail as a whole saves so much at once that a search which meets it first would not look further, so the search
/// runs once without it and once from it; the rail has to be cheaper.
pub(super) fn smallest_cover(entries: &[Entry]) -> Vec<Local> {
    let mut apart = Search::new(entries);
    while apart.improve() {}
    let mut whole = Search::new(entries);
    whole.add(Local::Rail);
    while whole.improve() {}
    let best = if whole.cost() < apart.cost() { whole } else { apart };
    let mut parts = best.parts();
    parts.extend(best.pairs());
    parts.sort();
    parts
}

struct Search<'a> {
    entries: &'a [Entry],
    by_node: BTreeMap<NodeIndex, Vec<usize>>,
    /// One side of a node before both, so that of equal savings the narrower part is taken.
    candidates: Vec<Local>,
    chosen: BTreeSet<Local>,
    /// How many chosen parts cover each entry.
    covered: Vec<u32>,
    /// Faulty entries that no part covers, by pair.
    open: BTreeMap<(NodeIndex, NodeIndex), u32>,
}

impl<'a> Search<'a> {
    fn new(entries: &'a [Entry]) -> Self {
        let mut by_node: BTreeMap<NodeIndex, Vec<usize>> = BTreeMap::new();
        let mut open = BTreeMap::new();
        let mut suspects = BTreeSet::new();
        for (i, entry) in entries.iter().enumerate() {
            by_node.entry(entry.src).or_default().push(i);
            if entry.dst != entry.src {
                by_node.entry(entry.dst).or_default().push(i);
            }
            match entry.mark {
                Mark::Faulty => {
                    *open.entry(pair(entry)).or_insert(0) += 1;
                    suspects.extend([entry.src, entry.dst]);
                }
                Mark::Grey | Mark::Sound => {}
            }
        }
        let nodes =
            suspects.iter().flat_map(|node| [Local::Send(*node), Local::Receive(*node), Local::Both(*node)]);
        Self {
            entries,
            by_node,
            candidates: nodes.collect(),
            chosen: BTreeSet::new(),
            covered: vec![0; entries.len()],
            open,
        }
    }

    fn cost(&self) -> usize {
        let contradicted = |(entry, covered): (&Entry, &u32)| entry.mark == Mark::Sound && *covered > 0;
        let contradictions = self.entries.iter().zip(&self.covered);
        self.chosen.len() + self.open.len() + contradictions.filter(|both| contradicted(*both)).count()
    }

    /// Makes the change that saves most; false if none saves anything.
    fn improve(&mut self) -> bool {
        if let Some((part, _)) = self.best_addition().filter(|(_, change)| *change < 0) {
            self.add(part);
            return true;
        }
        for part in self.parts() {
            let freed = self.remove(part);
            if freed < 0 {
                return true;
            }
            match self.best_addition() {
                Some((other, change)) if change + freed < 0 => {
                    self.add(other);
                    return true;
                }
                Some(_) | None => {
                    self.add(part);
                }
            }
        }
        false
    }

    fn best_addition(&self) -> Option<(Local, i64)> {
        self.candidates
            .iter()
            .filter(|part| !self.chosen.contains(part))
            .map(|part| (*part, self.price(*part)))
            .min_by_key(|(_, change)| *change)
    }

    /// What adding a part changes the cost by.
    fn price(&self, part: Local) -> i64 {
        let mut cost = 1;
        let mut closed: BTreeMap<(NodeIndex, NodeIndex), u32> = BTreeMap::new();
        for i in self.scope(part).filter(|i| self.covered[*i] == 0) {
            match self.entries[i].mark {
                Mark::Faulty => *closed.entry(pair(&self.entries[i])).or_insert(0) += 1,
                Mark::Sound => cost += 1,
                Mark::Grey => {}
            }
        }
        let pairs = closed.iter().filter(|(pair, count)| self.open.get(pair) == Some(count));
        cost - pairs.count() as i64
    }

    fn add(&mut self, part: Local) {
        let scope: Vec<usize> = self.scope(part).collect();
        for i in scope {
            self.covered[i] += 1;
            if self.covered[i] == 1 && self.entries[i].mark == Mark::Faulty {
                let pair = pair(&self.entries[i]);
                let left = self.open.get(&pair).map_or(0, |count| count - 1);
                if left == 0 {
                    self.open.remove(&pair);
                } else {
                    self.open.insert(pair, left);
                }
            }
        }
        self.chosen.insert(part);
    }

    /// Removes a part and returns what that changes the cost by.
    fn remove(&mut self, part: Local) -> i64 {
        let scope: Vec<usize> = self.scope(part).collect();
        for i in scope {
            self.covered[i] -= 1;
            if self.covered[i] == 0 && self.entries[i].mark == Mark::Faulty {
                *self.open.entry(pair(&self.entries[i])).or_insert(0) += 1;
            }
        }
        self.chosen.remove(&part);
        -self.price(part)
    }

    fn scope(&self, part: Local) -> Box<dyn Iterator<Item = usize> + '_> {
        let of = |node: NodeIndex| self.by_node.get(&node).into_iter().flatten().copied();
        match part {
            Local::Rail => Box::new(0..self.entries.len()),
            Local::Both(node) => Box::new(of(node)),
            Local::Send(node) => Box::new(of(node).filter(move |i| self.entries[*i].src == node)),
            Local::Receive(node) => Box::new(of(node).filter(move |i| self.entries[*i].dst == node)),
            Local::Pair(a, b) => Box::new(of(a).filter(move |i| pair(&self.entries[*i]) == (a, b))),
            Local::Directed(a, b) => {
                Box::new(of(a).filter(move |i| (self.entries[*i].src, self.entries[*i].dst) == (a, b)))
            }
        }
    }

    fn parts(&self) -> Vec<Local> {
        self.chosen.iter().copied().collect()
    }

    /// The pairs that are left over, with the direction where only one is faulty and the other one is not.
    fn pairs(&self) -> Vec<Local> {
        let left = |a, b| {
            self.entries.iter().enumerate().any(|(i, entry)| {
                (entry.src, entry.dst) == (a, b) && entry.mark == Mark::Faulty && self.covered[i] == 0
            })
        };
        self.open
            .keys()
            .map(|(a, b)| match (left(*a, *b), left(*b, *a)) {
                (true, false) => Local::Directed(*a, *b),
                (false, true) => Local::Directed(*b, *a),
                (true, true) | (false, false) => Local::Pair(*a, *b),
            })
            .collect()
    }
}

fn pair(entry: &Entry) -> (NodeIndex, NodeIndex) {
    (entry.src.min(entry.dst), entry.src.max(entry.dst))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The full matrix of `nodes` nodes whose faulty cells are given by `faulty(src, dst)`.
    fn cover(nodes: u16, faulty: impl Fn(u16, u16) -> bool) -> Vec<Local> {
        let mut entries = Vec::new();
        for (src, dst) in (0..nodes).flat_map(|src| (0..nodes).map(move |dst| (src, dst))) {
            if src != dst {
                entries.push(Entry {
                    src: NodeIndex(src),
                    dst: NodeIndex(dst),
                    mark: if faulty(src, dst) { Mark::Faulty } else { Mark::Sound },
                });
            }
        }
        smallest_cover(&entries)
    }

    #[test]
    fn two_bad_nodes_of_four_are_not_taken_for_the_rail() {
        assert_eq!(
            cover(4, |s, d| [s, d].iter().any(|n| *n < 2)),
            [Local::Both(NodeIndex(0)), Local::Both(NodeIndex(1))]
        );
    }

    #[test]
    fn a_node_that_receives_badly_is_not_taken_for_its_peers() {
        assert_eq!(cover(3, |_, d| d == 2), [Local::Receive(NodeIndex(2))]);
        assert_eq!(cover(6, |s, _| s == 4), [Local::Send(NodeIndex(4))]);
    }

    #[test]
    fn with_two_nodes_only_the_pair_can_be_named() {
        assert_eq!(cover(2, |_, _| true), [Local::Pair(NodeIndex(0), NodeIndex(1))]);
        assert_eq!(cover(2, |s, _| s == 1), [Local::Directed(NodeIndex(1), NodeIndex(0))]);
    }

    #[test]
    fn a_single_pair_among_sound_cells_stays_a_pair() {
        assert_eq!(
            cover(8, |s, d| (s, d) == (2, 5) || (s, d) == (5, 2)),
            [Local::Pair(NodeIndex(2), NodeIndex(5))]
        );
    }

    #[test]
    fn grey_cells_do_not_contradict_a_part() {
        let mut entries: Vec<Entry> = (1..6)
            .map(|dst| Entry {
                src: NodeIndex(0),
                dst: NodeIndex(dst),
                mark: if dst < 4 { Mark::Faulty } else { Mark::Grey },
            })
            .collect();
        assert_eq!(smallest_cover(&entries), [Local::Send(NodeIndex(0))]);
        entries.iter_mut().filter(|e| e.mark == Mark::Grey).for_each(|e| e.mark = Mark::Sound);
        entries.truncate(4);
        assert_eq!(smallest_cover(&entries), [Local::Send(NodeIndex(0))]);
    }

    #[test]
    fn a_whole_rail_is_one_part() {
        assert_eq!(cover(5, |_, _| true), [Local::Rail]);
    }
}
