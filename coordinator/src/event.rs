//! What happens to the machine.

use bench_core::ids::{BootId, Epoch, NodeIndex, RunId};
use bench_core::message::{Attending, Response, RoundKey};
use bench_core::plan::Plan;
use thiserror::Error;

use crate::decision::{Decisions, Entry};

/// What happens to the machine.
#[derive(Clone, Debug)]
pub enum Event {
    /// This elector commands the mesh in this epoch.
    Elected {
        /// The fence of all that it will command.
        epoch: Epoch,
        /// What was committed before this epoch began.
        decisions: Box<Decisions>,
    },
    /// It no longer does.
    Deposed {
        /// Who or what said so.
        reason: String,
    },
    /// An entry is decided. In the order of the log, also entries that another epoch proposed.
    Committed(Entry),
    /// A node is a member.
    Joined {
        /// The node.
        node: NodeIndex,
        /// Its process.
        boot: BootId,
    },
    /// A node is no member any more.
    Left {
        /// The node.
        node: NodeIndex,
        /// Why.
        reason: String,
    },
    /// A client wants a run.
    Submit {
        /// Names the client's question in the reply.
        ticket: Ticket,
        /// The client's id of the run.
        run: RunId,
        /// What it wants.
        plan: Box<Plan>,
        /// Seconds since 1970: a label.
        wall_seconds: u64,
    },
    /// A one-shot agent is here, or about to leave.
    Attended {
        /// The agent.
        node: NodeIndex,
        /// The run that it means.
        run: RunId,
        /// What that measures.
        plan: Box<Plan>,
        /// How far it is.
        attending: Attending,
        /// Who has printed the report, as far as it knows.
        printed_by: Option<NodeIndex>,
        /// Seconds since 1970: a label.
        wall_seconds: u64,
    },
    /// A client wants a run stopped.
    Cancel {
        /// The run; `None` means the one that is on.
        run: Option<RunId>,
    },
    /// An agent answered, or a call to it failed.
    Answered {
        /// The agent.
        node: NodeIndex,
        /// Which call.
        tag: CallTag,
        /// What came back.
        result: Result<Response, CallFault>,
    },
}

/// Names a client's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names a call to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallTag {
    /// The inventory.
    Probe,
    /// Arm a round.
    Prepare(RoundKey),
    /// Run a round.
    Start(RoundKey),
    /// Forget a round.
    Abort(RoundKey),
    /// Send what the journal holds.
    Collect(RunId),
    /// Keep the result.
    Store(RunId),
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallFault {
    /// The deadline passed.
    #[error("no answer within the deadline")]
    Timeout,
    /// The connection broke or could not be had.
    #[error("connection lost: {reason}")]
    Lost {
        /// Why.
        reason: String,
    },
}
