//! What can be wrong with a modelled fabric, and where.

use std::fmt;
use std::time::Duration;

use super::FabricError;
use crate::ids::{NodeIndex, RailId};

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Sends only a share of the line rate.
    SlowSend {
        /// Where.
        place: Place,
        /// The share that is left, above 0 to 1.
        share: f64,
    },
    /// Receives only a share of the line rate.
    SlowReceive {
        /// Where.
        place: Place,
        /// The share that is left, above 0 to 1.
        share: f64,
    },
    /// Adds to the one-way time of every message, in both directions.
    ExtraLatency {
        /// Where.
        place: Place,
        /// How much.
        extra: Duration,
    },
    /// Passes nothing.
    Dead {
        /// Where.
        place: Place,
    },
}

/// A part of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One port: an HCA, its cable or its switch port.
    Port {
        /// The node.
        node: NodeIndex,
        /// The rail.
        rail: RailId,
    },
    /// Every port of a node.
    Node {
        /// The node.
        node: NodeIndex,
    },
    /// Every port of a rail: its leaf switch.
    Rail {
        /// The rail.
        rail: RailId,
    },
    /// One directed path, such as a bad spine link that the routing gives to this pair.
    Pair {
        /// The rail.
        rail: RailId,
        /// The sender.
        src: NodeIndex,
        /// The receiver.
        dst: NodeIndex,
    },
}

impl Fault {
    /// Where it is.
    pub fn place(&self) -> Place {
        match *self {
            Self::SlowSend { place, .. }
            | Self::SlowReceive { place, .. }
            | Self::ExtraLatency { place, .. }
            | Self::Dead { place } => place,
        }
    }

    pub(super) fn check(&self) -> Result<(), FabricError> {
        match *self {
            Self::SlowSend { place, share } | Self::SlowReceive { place, share } => {
                if share > 0.0 && share <= 1.0 { Ok(()) } else { Err(FabricError::Share { place, share }) }
            }
            Self::ExtraLatency { .. } | Self::Dead { .. } => Ok(()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { node, rail } => write!(f, "node {node} rail {rail}"),
            Self::Node { node } => write!(f, "node {node}"),
            Self::Rail { rail } => write!(f, "rail {rail}"),
            Self::Pair { rail, src, dst } => write!(f, "rail {rail} from {src} to {dst}"),
        }
    }
}
