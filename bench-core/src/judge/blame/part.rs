//! The parts of a fabric that can be at fault.

use crate::ids::{NodeIndex, RailId};

/// A part of the fabric, the subject of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Every rail as a whole.
    Everything,
    /// One rail as a whole: its switch or its settings.
    Rail(RailId),
    /// A node on some rails, in some direction.
    Node {
        /// The node.
        node: NodeIndex,
        /// Its rails that are meant.
        rails: Rails,
        /// The direction that is meant.
        side: Side,
    },
    /// Two nodes with each other and with nobody else.
    Pair {
        /// The node that sends, or the lower one where both directions are meant.
        a: NodeIndex,
        /// The node that receives, or the higher one.
        b: NodeIndex,
        /// Their rails that are meant.
        rails: Rails,
        /// The directions that are meant.
        direction: Direction,
    },
}

/// Which rails of a node or pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rails {
    /// Every rail that was measured; there are at least two.
    All,
    /// This one.
    One(RailId),
}

/// Which direction of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Sending and receiving.
    Both,
    /// Sending alone.
    Send,
    /// Receiving alone.
    Receive,
}

/// Which directions of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Both.
    Both,
    /// From the first to the second alone.
    Forward,
}

impl Part {
    /// Whether a cell between these nodes on this rail passes through the part.
    pub fn covers(&self, src: NodeIndex, dst: NodeIndex, rail: RailId) -> bool {
        match *self {
            Self::Everything => true,
            Self::Rail(own) => own == rail,
            Self::Node { node, rails, side } => {
                let touched = match side {
                    Side::Both => src == node || dst == node,
                    Side::Send => src == node,
                    Side::Receive => dst == node,
                };
                touched && rails.contain(rail)
            }
            Self::Pair { a, b, rails, direction } => {
                let joined = match direction {
                    Direction::Both => (src, dst) == (a, b) || (src, dst) == (b, a),
                    Direction::Forward => (src, dst) == (a, b),
                };
                joined && rails.contain(rail)
            }
        }
    }

    /// What a reader calls it, with the nodes' names from `name`.
    pub fn title(&self, name: &dyn Fn(NodeIndex) -> String) -> String {
        match *self {
            Self::Everything => "the whole fabric".to_owned(),
            Self::Rail(rail) => format!("rail {}", rail.0),
            Self::Node { node, rails, side } => match (rails, side) {
                (Rails::All, Side::Both) => format!("node {}", name(node)),
                (Rails::All, Side::Send | Side::Receive) => {
                    format!("node {}, all rails, {}", name(node), side.phrase())
                }
                (Rails::One(rail), _) => format!("node {}, rail {}, {}", name(node), rail.0, side.phrase()),
            },
            Self::Pair { a, b, rails, direction } => {
                let pair = match direction {
                    Direction::Both => format!("pair {} and {}", name(a), name(b)),
                    Direction::Forward => format!("pair {} -> {}", name(a), name(b)),
                };
                match rails {
                    Rails::All => format!("{pair}, all rails"),
                    Rails::One(rail) => format!("{pair}, rail {}", rail.0),
                }
            }
        }
    }
}

impl Rails {
    /// Whether `rail` is one of them.
    pub fn contain(self, rail: RailId) -> bool {
        match self {
            Self::All => true,
            Self::One(own) => own == rail,
        }
    }
}

impl Side {
    fn phrase(self) -> &'static str {
        match self {
            Self::Both => "both directions",
            Self::Send => "send side",
            Self::Receive => "receive side",
        }
    }
}
