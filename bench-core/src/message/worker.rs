//! The framed pipe between an agent and its worker.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cell::End;
use crate::ids::{BuildHash, CellId};
use crate::node::{Capability, RailHca};
use crate::plan::TestCase;
use crate::record::{Evidence, Failure, FailureKind, Outcome, Phase};
use crate::time::Mono;
use crate::units::BitsPerSecond;
use crate::verbs::VerbsInfo;

/// One end of one attempt of a cell inside a worker; unique within the worker's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

/// One end to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellTask {
    /// The task.
    pub id: TaskId,
    /// The cell, for messages.
    pub cell: CellId,
    /// Which end this is.
    pub end: End,
    /// The test.
    pub case: TestCase,
    /// The rail's address here: sockets bind to it. `None` where the rail has none.
    pub bind: Option<IpAddr>,
    /// The rail's network device here, for evidence; the RDMA device's name where it has none.
    pub device: String,
    /// The rail's RDMA device here, where it has one.
    pub hca: Option<RailHca>,
    /// How long a connect or accept may take.
    pub connect_timeout: Duration,
}

impl CellTask {
    /// The rail's address, for a test that needs one.
    ///
    /// # Errors
    /// [`Failure`] in phase `Prepare` that names the device.
    pub fn address(&self) -> Result<IpAddr, Failure> {
        self.bind.ok_or_else(|| Failure {
            kind: FailureKind::Unsupported,
            phase: Phase::Prepare,
            detail: format!("{} has no IP address here, which {} needs", self.device, self.case.kind),
            remedy: Some(
                "give the rail's device an address (IPoIB on InfiniBand), or measure the rail with RDMA tests only"
                    .to_owned(),
            ),
        })
    }
}

/// Where an end is found. Travels over the authenticated mesh only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndpointInfo {
    /// A TCP listener. Every stream begins with the token, so a stranger's connection is dropped.
    Tcp {
        /// Where it listens.
        addr: SocketAddr,
        /// 128 random bits of this attempt.
        token: [u8; 16],
    },
    /// Queue pairs and memory of an RDMA device.
    Verbs(Box<VerbsInfo>),
    /// An endpoint of the modelled fabric.
    Sim {
        /// Its number in the model.
        port: u64,
    },
}

/// What an end learns of the other one before it arms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Where it is found; `None` for an end that is not looked for, as the source of a TCP test.
    pub endpoint: Option<EndpointInfo>,
    /// The highest rate at which it takes data, where it has one: the source sends no faster.
    pub pace: Option<BitsPerSecond>,
}

impl Peer {
    /// A peer that takes data as fast as it comes.
    pub fn at(endpoint: EndpointInfo) -> Self {
        Self { endpoint: Some(endpoint), pace: None }
    }

    /// The case as an end runs it against this peer: a source keeps the lower of both rates.
    #[must_use]
    pub fn paced(&self, case: TestCase, end: End) -> TestCase {
        match end {
            End::Source => case.held_at(self.pace),
            End::Destination => case,
        }
    }
}

/// Agent to worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// Set up this end. Answered by [`FromWorker::Prepared`].
    Prepare(CellTask),
    /// Go on to armed: the source connects, the destination accepts. Answered by [`FromWorker::Armed`].
    Connect {
        /// The task.
        task: TaskId,
        /// The other end.
        peer: Peer,
    },
    /// Traffic begins at `at`. Answered by [`FromWorker::Finished`].
    Run {
        /// The task.
        task: TaskId,
        /// When traffic begins, on this node's clock.
        at: Mono,
        /// How long after the window to keep sending.
        tail: Duration,
    },
    /// Drop this task, whatever it does. Not answered.
    Abort {
        /// The task.
        task: TaskId,
    },
    /// Are you alive? Answered by [`FromWorker::Pong`] with the same number.
    Ping {
        /// A number.
        number: u64,
    },
}

/// Worker to agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The first message.
    Ready {
        /// The worker's build: the agent refuses another one.
        build: BuildHash,
        /// What it can measure.
        capabilities: Vec<Capability>,
    },
    /// To [`ToWorker::Prepare`].
    Prepared {
        /// The task.
        task: TaskId,
        /// Where its peer finds it; `None` for an end that is not looked for.
        endpoint: Result<Option<EndpointInfo>, Failure>,
    },
    /// To [`ToWorker::Connect`].
    Armed {
        /// The task.
        task: TaskId,
        /// Whether it is.
        outcome: Result<(), Failure>,
    },
    /// To [`ToWorker::Run`].
    Finished {
        /// The task.
        task: TaskId,
        /// What came out.
        outcome: Outcome,
        /// What this end knows of its path.
        evidence: Evidence,
    },
    /// To [`ToWorker::Ping`].
    Pong {
        /// The number.
        number: u64,
    },
}
