//! Requests and responses of the control mesh: one bidirectional stream each.
//!
//! ```text
//! coordinator ──Probe, Prepare, Start, Abort, Collect──▶ agent      (fenced: each carries its epoch)
//! coordinator ──StoreResult──▶ elector                               (fenced too)
//! agent ──Clock──▶ coordinator                                       agent ──Handshake──▶ agent
//! elector ──Raft──▶ elector                                          anybody ──WhoCommands──▶ anybody
//! client ──Submit, Watch, Cancel, Status──▶ any agent ──the same──▶ coordinator
//! one-shot agent ──Attend──▶ coordinator                             coordinator ──Kept──▶ elector
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Attend, AttendReply, CommandView, Outcome, Peer, Refusal};
use crate::cell::{Cell, End};
use crate::ids::{Attempt, CellId, Epoch, NodeId, RoundId, RunId};
use crate::node::NodeInventory;
use crate::plan::{Plan, TestCase};
use crate::record::{Failure, Observation, RunRecord};
use crate::time::{ClockOffset, Mono};

/// One try of one round of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RoundKey {
    /// The run.
    pub run: RunId,
    /// The round.
    pub round: RoundId,
    /// The epoch that commands it.
    pub epoch: Epoch,
    /// The try, within the epoch.
    pub attempt: Attempt,
}

/// A question. Each kind has its own limits of size and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Are you alive?
    Ping,
    /// What does the coordinator's clock say?
    Clock,
    /// What is your inventory?
    Probe {
        /// The fence.
        epoch: Epoch,
        /// What the plan takes as the asked node's rails, where it does not leave that to the node.
        rails: Option<Vec<String>>,
    },
    /// Set up these cells; answer when all are armed or have failed.
    Prepare(Prepare),
    /// Run the prepared round; answer with its observations when it is over.
    Start(Start),
    /// Forget a round.
    Abort {
        /// Which.
        key: RoundKey,
    },
    /// Send what the journal holds of this run for these cells.
    Collect {
        /// The fence.
        epoch: Epoch,
        /// The run.
        run: RunId,
        /// The cells; none means all.
        cells: Vec<CellId>,
        /// How many of these observations to pass over: an answer may hold fewer than there are, an empty one is the
        /// last.
        skip: u64,
    },
    /// Keep these records of a run that is about to end. Answered when a kill no longer loses them.
    StoreResult {
        /// The fence. Records of a higher epoch replace those of a lower one.
        epoch: Epoch,
        /// The run.
        run: RunId,
        /// Number of the first record: what was kept of this epoch from there on is replaced.
        from: u64,
        /// Records in order; [`RunRecord::Ended`] is the last of the last batch.
        records: Vec<RunRecord>,
    },
    /// These are my ends of cells whose destination is the asked node: what of yours? Answered once they are set up.
    Handshake {
        /// The round.
        key: RoundKey,
        /// The asking node's ends.
        sources: Vec<CellEndpoint>,
    },
    /// Run this plan.
    Submit {
        /// Chosen by the client: the same id again starts nothing new.
        run: RunId,
        /// The plan.
        plan: Box<Plan>,
    },
    /// What happened in this run from record number `from` on? Waits up to `wait` for news.
    Watch {
        /// The run; `None` means the latest.
        run: Option<RunId>,
        /// First record wanted.
        from: u64,
        /// How long to wait for one.
        wait: Duration,
    },
    /// Stop this run.
    Cancel {
        /// The run; `None` means the one that is on.
        run: Option<RunId>,
    },
    /// How is the mesh?
    Status,
    /// A one-shot agent is here, or about to leave.
    Attend(Box<Attend>),
    /// Which records of this run's result did you keep, from number `from` on?
    Kept {
        /// The run.
        run: RunId,
        /// First record wanted.
        from: u64,
    },
    /// What do you know of who commands?
    WhoCommands,
    /// What electors ask each other: only they can read it.
    Raft {
        /// The question.
        payload: Vec<u8>,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Response {
    /// To [`Request::Ping`].
    Pong,
    /// To [`Request::Clock`].
    Clock {
        /// The coordinator's monotonic clock.
        now: Mono,
    },
    /// To [`Request::Probe`].
    Inventory(Box<NodeInventory>),
    /// To [`Request::Probe`], if what the plan takes as rails is not there.
    NoSuchRails {
        /// What is not, and what there is.
        reason: String,
    },
    /// To [`Request::Prepare`].
    Prepared(PrepareReply),
    /// To [`Request::Start`] and [`Request::Collect`].
    Observations(Vec<Observation>),
    /// To [`Request::Abort`], [`Request::StoreResult`] and [`Request::Cancel`].
    Done,
    /// To [`Request::Cancel`] of a run that is over.
    AlreadyOver {
        /// The run.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
    },
    /// To [`Request::Handshake`].
    Handshake(HandshakeReply),
    /// To [`Request::Submit`].
    Submitted(SubmitReply),
    /// To [`Request::Watch`] and [`Request::Kept`].
    Records(WatchReply),
    /// To [`Request::Status`].
    Status(Box<StatusReply>),
    /// To [`Request::Attend`].
    Attended(Box<AttendReply>),
    /// To [`Request::WhoCommands`].
    Commander(CommandView),
    /// To [`Request::Raft`].
    Raft {
        /// The answer.
        payload: Vec<u8>,
    },
    /// The command's epoch is lower than the highest seen.
    StaleEpoch {
        /// The highest seen.
        seen: Epoch,
    },
    /// The asked node is not the coordinator and reaches none.
    NoCoordinator {
        /// Why.
        reason: String,
    },
    /// No such run here.
    UnknownRun {
        /// The run that was asked for; `None` if the latest was.
        run: Option<RunId>,
    },
    /// The request makes no sense here; the text says why.
    Invalid {
        /// Why.
        reason: String,
    },
    /// Only before a hello: the connection is not a member's.
    Refused(Refusal),
}

/// Set up the cells of a round that have an end on this node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The round.
    pub key: RoundKey,
    /// The ends on this node.
    pub ends: Vec<Prepared>,
    /// How long setting up may take.
    pub timeout: Duration,
    /// As in [`Request::Probe`].
    pub rails: Option<Vec<String>>,
}

/// One end to set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// The cell.
    pub cell: Cell,
    /// Which end of it is here.
    pub end: End,
    /// The test.
    pub case: TestCase,
    /// The node at the other end.
    pub peer: NodeId,
}

/// What became of setting up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareReply {
    /// Cells whose end here could not be armed. All others are armed.
    pub failed: Vec<(CellId, End, Failure)>,
    /// This node's clock against the coordinator's; `None` if it could not be told.
    pub clock: Option<ClockOffset>,
}

/// Run a prepared round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The round.
    pub key: RoundKey,
    /// When traffic begins, on the coordinator's clock; the window begins `warmup` of each case later.
    pub at: Mono,
    /// How long after its window an end keeps sending, so that nobody's window closes on an idle fabric.
    pub tail: Duration,
    /// Cells that start: armed at both ends. Other prepared cells of the round are torn down.
    pub cells: Vec<CellId>,
}

/// What became of setting up one end of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellEndpoint {
    /// The cell.
    pub cell: CellId,
    /// What the other end has to know of it, or why it is not set up.
    pub end: Result<Peer, Failure>,
}

/// The answer of the asked side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandshakeReply {
    /// One entry for each cell that was asked for.
    pub destinations: Vec<CellEndpoint>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubmitReply {
    /// It runs, or the same id ran before.
    Accepted,
    /// The coordinator was replaced before the electors decided: submit the same id again.
    Undecided {
        /// Who or what replaced it.
        reason: String,
    },
    /// Another run is on.
    Busy {
        /// That run.
        run: RunId,
    },
    /// The plan does not fit this mesh.
    Rejected {
        /// Why, with the remedy.
        reason: String,
    },
}

/// News of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchReply {
    /// The run.
    pub run: RunId,
    /// The epoch of the coordinator that numbered the records: under another one the numbers begin anew.
    pub epoch: Epoch,
    /// Number of the first record in `records`.
    pub from: u64,
    /// Records in order; fewer than there are if they would not fit a message.
    pub records: Vec<RunRecord>,
    /// How far the run is.
    pub status: RunStatus,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// The run.
    pub run: RunId,
    /// The phase of the run machine, such as `measure`.
    pub phase: String,
    /// Rounds over so far.
    pub rounds_done: u32,
    /// Rounds known so far; grows when retests are added.
    pub rounds_total: u32,
    /// Nodes that the run waits for, with what for.
    pub waiting_for: Vec<(NodeId, String)>,
    /// Whether the last record is out.
    pub ended: bool,
}

/// How the mesh is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReply {
    /// Who answers.
    pub answered_by: NodeId,
    /// The coordinator and its epoch; `None` if there is none.
    pub coordinator: Option<(NodeId, Epoch)>,
    /// Why there is no coordinator, with the remedy; `None` if there is one.
    pub lack: Option<String>,
    /// Every node of the roster in order.
    pub members: Vec<MemberStatus>,
    /// The run that is on, or the latest.
    pub run: Option<RunStatus>,
}

/// How a node of the roster is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The node.
    pub node: NodeId,
    /// Its address.
    pub address: String,
    /// `None` if it is a member; else why not.
    pub absent: Option<String>,
}
