//! What an elector needs of the mesh, and what electors say to each other over it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bench_core::ids::{Epoch, NodeIndex};
use bench_core::message::CommandView;
use openraft::error::{InstallSnapshotError, RaftError};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::types::{ElectorId, TypeConfig};

/// What an elector needs of the mesh.
pub trait Wire: Debug + Send + Sync + 'static {
    /// Asks the elector at a position; the bytes come to its [`super::Electors::serve`].
    fn call(&self, elector: NodeIndex, payload: Vec<u8>, deadline: Duration) -> Answered<'_>;

    /// What the other electors say of who commands, and what everybody present has seen.
    fn look_around(&self) -> Pin<Box<dyn Future<Output = Surroundings> + Send + '_>>;
}

/// An answer to come.
pub type Answered<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, WireFault>> + Send + 'a>>;

/// What others say.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Each elector that answered.
    pub electors: BTreeMap<NodeIndex, CommandView>,
    /// The highest epoch that any node present has seen.
    pub seen: Option<Epoch>,
    /// Whether every node of the roster is connected with this one.
    pub attendance: Attendance,
}

/// Who of the roster is connected with this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attendance {
    /// Somebody is missing.
    #[default]
    Partial,
    /// Nobody is missing.
    Full,
}

/// Why an elector gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireFault {
    /// Not in time; it may have heard the question.
    #[error("no answer within the deadline")]
    Timeout,
    /// There is no connection with it.
    #[error("not connected: {reason}")]
    Unreachable {
        /// Why.
        reason: String,
    },
}

/// What electors ask each other.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are questions of the consensus: a box each would only allocate"
)]
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// A question of the consensus, for one life of the asked elector only: a vote that an earlier life gave is not
    /// given again.
    Raft {
        /// Whom it is for.
        to: ElectorId,
        /// The question.
        call: RaftCall,
    },
    /// Take the asking elector in under this id, in place of the one that it has lost. Only a leader does.
    Admit {
        /// The new id.
        id: ElectorId,
    },
}

/// A question of the consensus.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RaftCall {
    /// Entries, or a sign of life.
    Append(AppendEntriesRequest<TypeConfig>),
    /// A vote is wanted.
    Vote(VoteRequest<ElectorId>),
    /// A part of a snapshot.
    Snapshot(InstallSnapshotRequest<TypeConfig>),
}

/// Answers to [`Ask`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// To [`RaftCall::Append`].
    Append(Result<AppendEntriesResponse<ElectorId>, RaftError<ElectorId>>),
    /// To [`RaftCall::Vote`].
    Vote(Result<VoteResponse<ElectorId>, RaftError<ElectorId>>),
    /// To [`RaftCall::Snapshot`].
    Snapshot(Result<InstallSnapshotResponse<ElectorId>, RaftError<ElectorId, InstallSnapshotError>>),
    /// To [`Ask::Admit`]: it is a voter now.
    Admitted,
    /// The question was not carried out.
    Declined {
        /// Why.
        reason: String,
    },
}

pub(super) fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_stdvec(message).expect("what electors say has an encoding")
}
