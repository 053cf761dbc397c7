//! The steps of a pattern: who sends to whom at the same time on one rail, by arithmetic.
//!
//! The circle method: of an even number of players one stays, the others sit on a circle. In matching `t` the one who
//! stays meets `t`, and `t + s` meets `t - s` for every further `s`. With an odd number of nodes the one who stays is
//! nobody, so that node `t` rests in matching `t`.
//!
//! A *turn* is what a budget keeps or leaves out as a whole: a matching with its directions, or a distance of a shift.

use super::sample::Sample;
use crate::ids::NodeIndex;
use crate::plan::{Duplex, Pattern};

/// The steps of a pattern for a number of nodes: of all its turns or of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    shape: Shape,
    nodes: u32,
    kept: Sample,
}

/// A pattern together with its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A matching in one direction, then in the other.
    PairsOneWay,
    /// A matching in both directions at once.
    PairsBoth,
    Shift,
    AllToAll,
    Incast,
    Outcast,
    Loopback,
}

impl Steps {
    /// All steps of `pattern` among `nodes` nodes, which are at least one for loopback and two for any other.
    /// `duplex` matters to [`Pattern::Pairs`] only: all others fix their directions.
    pub(super) fn all(pattern: Pattern, duplex: Duplex, nodes: u16) -> Self {
        let shape = match (pattern, duplex) {
            (Pattern::Pairs, Duplex::OneWay) => Shape::PairsOneWay,
            (Pattern::Pairs, Duplex::Both) => Shape::PairsBoth,
            (Pattern::Shift, Duplex::OneWay | Duplex::Both) => Shape::Shift,
            (Pattern::AllToAll, Duplex::OneWay | Duplex::Both) => Shape::AllToAll,
            (Pattern::Incast, Duplex::OneWay | Duplex::Both) => Shape::Incast,
            (Pattern::Outcast, Duplex::OneWay | Duplex::Both) => Shape::Outcast,
            (Pattern::Loopback, Duplex::OneWay | Duplex::Both) => Shape::Loopback,
        };
        Self { shape, nodes: nodes.into(), kept: Sample::All }
    }

    /// The same pattern with the turns of `kept` only.
    pub(super) fn keeping(self, kept: Sample) -> Self {
        Self { kept, ..self }
    }

    /// How many turns the whole pattern has.
    pub(super) fn turns(&self) -> u32 {
        match self.shape {
            Shape::PairsOneWay | Shape::PairsBoth => self.circle(),
            Shape::Shift => self.nodes - 1,
            Shape::Incast | Shape::Outcast => self.nodes,
            Shape::AllToAll | Shape::Loopback => 1,
        }
    }

    /// Fewest turns that are worth measuring: every node meets [`LEAST_PARTNERS`], or all others if they are fewer.
    /// Patterns of one crowd lose their meaning with a turn left out, so there it is all of them.
    pub(super) fn least_turns(&self) -> u32 {
        let least = match self.shape {
            Shape::PairsOneWay | Shape::PairsBoth => LEAST_PARTNERS + self.rests_of_a_node(),
            Shape::Shift => LEAST_PARTNERS,
            Shape::Incast | Shape::Outcast | Shape::AllToAll | Shape::Loopback => self.turns(),
        };
        least.min(self.turns())
    }

    /// How many turns are kept.
    pub(super) fn kept_turns(&self) -> u32 {
        self.kept.len(self.turns())
    }

    /// How many steps a turn has.
    pub(super) fn steps_of_a_turn(&self) -> u32 {
        match self.shape {
            Shape::PairsOneWay => 2,
            Shape::PairsBoth
            | Shape::Shift
            | Shape::Incast
            | Shape::Outcast
            | Shape::AllToAll
            | Shape::Loopback => 1,
        }
    }

    /// How many steps the kept turns have.
    pub(super) fn count(&self) -> u32 {
        self.kept_turns() * self.steps_of_a_turn()
    }

    /// How many cells each step has.
    pub(super) fn cells(&self) -> u32 {
        match self.shape {
            Shape::PairsOneWay => self.nodes / 2,
            Shape::PairsBoth => self.nodes / 2 * 2,
            Shape::Shift | Shape::Loopback => self.nodes,
            Shape::AllToAll => self.nodes * (self.nodes - 1),
            Shape::Incast | Shape::Outcast => self.nodes - 1,
        }
    }

    /// Source and destination of the cell at `position` in `step`.
    pub(super) fn ends(&self, step: u32, position: u32) -> (NodeIndex, NodeIndex) {
        let turn = self.kept.turn(step / self.steps_of_a_turn());
        let (src, dst) = match self.shape {
            Shape::PairsOneWay => turned(self.pair(turn, position), step % 2),
            Shape::PairsBoth => turned(self.pair(turn, position / 2), position % 2),
            Shape::Shift => (position, (position + 1 + turn) % self.nodes),
            Shape::AllToAll => {
                let others = self.nodes - 1;
                let src = position / others;
                (src, skipping(src, position % others))
            }
            Shape::Incast => (skipping(turn, position), turn),
            Shape::Outcast => (turn, skipping(turn, position)),
            Shape::Loopback => (position, position),
        };
        (index(src), index(dst))
    }

    /// Ordered pairs of different nodes that the kept turns measure.
    pub(super) fn ordered_pairs(&self) -> u64 {
        match self.shape {
            Shape::Loopback => 0,
            Shape::PairsOneWay
            | Shape::PairsBoth
            | Shape::Shift
            | Shape::AllToAll
            | Shape::Incast
            | Shape::Outcast => u64::from(self.count()) * u64::from(self.cells()),
        }
    }

    /// Ordered pairs of different nodes that there are.
    pub(super) fn possible_pairs(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.nodes - 1)
    }

    /// Nodes that the node with the fewest sends to; as many send to it.
    pub(super) fn fewest_partners(&self) -> u32 {
        match self.shape {
            Shape::PairsOneWay | Shape::PairsBoth => self.kept_turns() - self.rests_of_a_node(),
            Shape::Shift => self.kept_turns(),
            Shape::AllToAll | Shape::Incast | Shape::Outcast => self.nodes - 1,
            Shape::Loopback => 0,
        }
    }

    /// Seats on the circle, which is also the number of matchings.
    fn circle(&self) -> u32 {
        self.nodes - 1 + self.rests_of_a_node()
    }

    /// Matchings in which a node has no partner: one if the number of nodes is odd.
    fn rests_of_a_node(&self) -> u32 {
        self.nodes % 2
    }

    /// The pair at `position` in `matching`.
    fn pair(&self, matching: u32, position: u32) -> (u32, u32) {
        let circle = self.circle();
        let apart = position + self.rests_of_a_node();
        if apart == 0 {
            (circle, matching)
        } else {
            ((matching + apart) % circle, (matching + circle - apart) % circle)
        }
    }
}

/// The pair as it is for way 0, the other way round for way 1.
fn turned((a, b): (u32, u32), way: u32) -> (u32, u32) {
    if way == 0 { (a, b) } else { (b, a) }
}

/// The node at `position` among all nodes but `left_out`.
fn skipping(left_out: u32, position: u32) -> u32 {
    position + u32::from(position >= left_out)
}

fn index(node: u32) -> NodeIndex {
    NodeIndex(u16::try_from(node).expect("every node is below the number of nodes, which has 16 bits"))
}

/// Partners that every node meets on every rail whatever the budget: blame needs two proven partners for a suspect,
/// and four leave two where one of them is bad itself and one is lost.
pub(super) const LEAST_PARTNERS: u32 = 4;
