//! openraft's network over the mesh: each call is one request to the elector, and fails by its deadline.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use openraft::EmptyNode;
use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Timeout, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RPCTypes, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};

use super::types::{ElectorId, TypeConfig};
use super::wire::{Answer, Ask, RaftCall, Wire, WireFault, encode};

/// Makes the way to each elector; connects to none.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) me: ElectorId,
    pub(super) wire: Arc<dyn Wire>,
}

/// The way to one elector.
#[derive(Debug)]
pub(super) struct Path {
    me: ElectorId,
    to: ElectorId,
    wire: Arc<dyn Wire>,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Path;

    async fn new_client(&mut self, target: ElectorId, _node: &EmptyNode) -> Path {
        Path { me: self.me, to: target, wire: Arc::clone(&self.wire) }
    }
}

type Fault<E> = RPCError<ElectorId, EmptyNode, E>;

impl Path {
    async fn ask<E: std::error::Error>(
        &self,
        call: RaftCall,
        kind: RPCTypes,
        limit: Duration,
    ) -> Result<Answer, Fault<E>> {
        let payload = encode(&Ask::Raft { to: self.to, call });
        let bytes = match self.wire.call(self.to.node(), payload, limit).await {
            Ok(bytes) => bytes,
            Err(WireFault::Timeout) => {
                return Err(RPCError::Timeout(Timeout {
                    action: kind,
                    id: self.me,
                    target: self.to,
                    timeout: limit,
                }));
            }
            Err(fault @ WireFault::Unreachable { .. }) => {
                return Err(RPCError::Unreachable(Unreachable::new(&fault)));
            }
        };
        match postcard::from_bytes(&bytes) {
            Ok(Answer::Declined { reason }) => {
                Err(RPCError::Unreachable(Unreachable::new(&NoAnswer(reason))))
            }
            Ok(answer) => Ok(answer),
            Err(error) => Err(RPCError::Network(NetworkError::new(&error))),
        }
    }

    #[expect(clippy::result_large_err, reason = "the error type is that of the consensus library's trait")]
    fn remote<T, E: std::error::Error>(&self, result: Result<T, E>) -> Result<T, Fault<E>> {
        result.map_err(|error| RPCError::RemoteError(RemoteError::new(self.to, error)))
    }
}

impl RaftNetwork<TypeConfig> for Path {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<ElectorId>, Fault<RaftError<ElectorId>>> {
        let limit = option.hard_ttl();
        match self.ask(RaftCall::Append(rpc), RPCTypes::AppendEntries, limit).await? {
            Answer::Append(result) => self.remote(result),
            other => Err(strange(&other)),
        }
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<ElectorId>,
        option: RPCOption,
    ) -> Result<VoteResponse<ElectorId>, Fault<RaftError<ElectorId>>> {
        let limit = option.hard_ttl();
        match self.ask(RaftCall::Vote(rpc), RPCTypes::Vote, limit).await? {
            Answer::Vote(result) => self.remote(result),
            other => Err(strange(&other)),
        }
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<ElectorId>, Fault<RaftError<ElectorId, InstallSnapshotError>>> {
        let limit = option.hard_ttl();
        match self.ask(RaftCall::Snapshot(rpc), RPCTypes::InstallSnapshot, limit).await? {
            Answer::Snapshot(result) => self.remote(result),
            other => Err(strange(&other)),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(UNREACHABLE_PAUSE))
    }
}

fn strange<E: std::error::Error>(answer: &Answer) -> Fault<E> {
    RPCError::Network(NetworkError::new(&NoAnswer(format!("an answer to another question: {answer:?}"))))
}

/// The asked elector answered with no answer.
#[derive(Debug)]
struct NoAnswer(String);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoAnswer {}

/// How long a way that is not there is left alone: one heartbeat, so that an elector that comes back is not longer
/// without a leader than any other.
const UNREACHABLE_PAUSE: Duration = super::HEARTBEAT;
