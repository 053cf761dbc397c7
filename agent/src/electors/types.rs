//! The types that openraft is built over: an entry is a decision of the coordinator, a node is one life of an elector.

use std::fmt;
use std::io::Cursor;

use bench_core::ids::{Epoch, NodeIndex};
use serde::{Deserialize, Serialize};

/// One life of an elector's state: an elector that lost its state comes back as another one, so that no vote is ever
/// counted twice.
///
/// Ordered by elector first, so that the leader ids of openraft and the epochs of the mesh have the same order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ElectorId {
    /// Its position in the roster.
    pub elector: u16,
    /// 0 for a founder; random for one that came later.
    pub incarnation: u64,
}

impl ElectorId {
    /// The id of an elector that founds the mesh.
    pub(crate) fn founder(elector: NodeIndex) -> Self {
        Self { elector: elector.0, incarnation: 0 }
    }

    /// Its position in the roster.
    pub(crate) fn node(self) -> NodeIndex {
        NodeIndex(self.elector)
    }
}

impl fmt::Display for ElectorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.incarnation {
            0 => write!(f, "{}", self.elector),
            incarnation => write!(f, "{}/{incarnation:012x}", self.elector),
        }
    }
}

openraft::declare_raft_types!(
    /// The types of the electors' log.
    pub(crate) TypeConfig:
        D = coordinator::Entry,
        R = (),
        NodeId = ElectorId,
        Node = openraft::EmptyNode,
);

/// A record of the log.
pub(crate) type LogEntry = openraft::Entry<TypeConfig>;
/// The place of a record in the log, with the leader that put it there.
pub(crate) type LogId = openraft::LogId<ElectorId>;
/// Whom an elector follows or votes for.
pub(crate) type Vote = openraft::Vote<ElectorId>;
/// Who votes.
pub(crate) type StoredMembership = openraft::StoredMembership<ElectorId, openraft::EmptyNode>;
/// What an operation of the store may end with.
pub(crate) type StorageError = openraft::StorageError<ElectorId>;

/// The epoch in which the holder of this vote commands.
pub(crate) fn epoch_of(vote: &Vote) -> Epoch {
    Epoch { term: vote.leader_id.term, elector: vote.leader_id.node_id.elector }
}
