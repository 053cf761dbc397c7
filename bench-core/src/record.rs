//! The records of a run: what the coordinator publishes and a report is made from.
//!
//! The list of records, in order, is the whole run: [`RunRecord::Started`] first, [`RunRecord::Ended`] last if the
//! run ended. A node that joins late brings another `Started`; the last one holds. Verdict, blame and report are pure functions of it, so a client that kept the records of a killed run
//! can still report what it had.

use serde::{Deserialize, Serialize};

use crate::cell::{Cell, End};
use crate::ids::{Attempt, CellId, Epoch, NodeId, NodeIndex, RoundId, RunId};
use crate::measure::{Measurement, Window};
use crate::node::NodeInventory;
use crate::plan::Plan;
use crate::time::ClockOffset;

/// One record of a run.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all records are observations: a box each would only add an allocation"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunRecord {
    /// The run began, or a node that was absent joined it: the last one holds.
    Started(Box<RunStart>),
    /// A round was started at an agreed instant.
    Round(RoundRecord),
    /// One end's observation of a cell.
    Observed(Observation),
    /// A cell, or one attempt of it, gave no measurement, with the word and the reason.
    Lost(Loss),
    /// Cells added after the schedule: retests of suspects. They continue the numbering.
    Added(Vec<Cell>),
    /// Something a reader should know that belongs to no cell.
    Note(Note),
    /// The run ended.
    Ended(RunEnd),
}

impl RunRecord {
    /// An upper estimate of the encoded size in bytes.
    fn rough_bytes(&self) -> usize {
        match self {
            // A sample has at most 256 marks of 3 varints, a histogram a few KiB.
            Self::Observed(_) => 12 << 10,
            Self::Started(start) => 1024 + start.nodes.len() * 2048,
            Self::Added(cells) => 32 * cells.len(),
            Self::Round(_) | Self::Lost(_) | Self::Note(_) | Self::Ended(_) => 1024,
        }
    }
}

/// As many records from the front as fit a message; at least one if there is one.
pub fn batch(records: &[RunRecord]) -> &[RunRecord] {
    let mut left = BATCH_BYTES;
    let fitting = records.iter().take_while(|record| {
        let size = record.rough_bytes();
        let fits = left >= size;
        left = left.saturating_sub(size);
        fits
    });
    let count = fitting.count().max(1).min(records.len());
    &records[..count]
}

/// How a run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// The run.
    pub run: RunId,
    /// The plan as run.
    pub plan: Plan,
    /// The roster in order.
    pub roster: Vec<NodeId>,
    /// What each present node said of itself; an absent node has a reason instead. In roster order.
    pub nodes: Vec<NodePresence>,
    /// The epoch of the coordinator.
    pub epoch: Epoch,
    /// Wall clock of the coordinator, seconds since 1970: a label.
    pub wall_seconds: u64,
}

/// Whether a node took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NodePresence {
    /// It is a member and told its inventory.
    Present(Box<NodeInventory>),
    /// It is not, for this reason.
    Absent {
        /// Such as `never joined within 30s`.
        reason: String,
    },
}

/// One start of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// The round.
    pub round: RoundId,
    /// Which try.
    pub attempt: Attempt,
    /// The epoch whose mark was committed before the start.
    pub epoch: Epoch,
    /// Cells that started.
    pub cells: u32,
    /// The agreed window on the coordinator's clock.
    pub window: Window,
}

/// The key of an observation: two ends are two observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObservationKey {
    /// The run.
    pub run: RunId,
    /// The cell.
    pub cell: CellId,
    /// The epoch in which it was commanded.
    pub epoch: Epoch,
    /// Which try, within the epoch.
    pub attempt: Attempt,
    /// Which end.
    pub end: End,
}

/// What one end of a cell saw in one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Run, cell, attempt and end.
    pub key: ObservationKey,
    /// The round in which it was measured.
    pub round: RoundId,
    /// What came out.
    pub outcome: Outcome,
    /// What this end knows of its own path, such as device and addresses.
    pub evidence: Evidence,
    /// This node's clock against the coordinator's at that time.
    pub clock: ClockOffset,
}

/// What came out at one end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// A measurement.
    Measured(Measurement),
    /// None, for a reason.
    Failed(Failure),
}

/// Why an end has no measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// How far it had come.
    pub phase: Phase,
    /// What happened, with the thing that it happened to; lowercase, no full stop.
    pub detail: String,
    /// What to do about it, where known.
    pub remedy: Option<String>,
}

/// What kind of failure an end met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A process died or a connection broke.
    Crash,
    /// A deadline passed.
    Timeout,
    /// The start reached this end too late for its window.
    Late,
    /// This node cannot measure that: a missing capability, device or address.
    Unsupported,
    /// Data differed from what was sent.
    Corrupt,
    /// Somebody asked to stop.
    Cancelled,
}

impl FailureKind {
    /// Whether the infrastructure failed and the cell may be tried again; a poor or wrong figure never is.
    pub fn is_infrastructure(self) -> bool {
        match self {
            Self::Crash | Self::Timeout | Self::Late => true,
            Self::Unsupported | Self::Corrupt | Self::Cancelled => false,
        }
    }
}

/// The steps of a cell: a hang says which node, rail and phase stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The node told its inventory.
    Probe,
    /// The listener or queue is being set up.
    Prepare,
    /// Endpoint information is exchanged between the two agents.
    Handshake,
    /// The source connects to the destination.
    Connect,
    /// Both ends wait for the start.
    Armed,
    /// Traffic before the window.
    Warmup,
    /// The window.
    Measure,
    /// Observations travel to the coordinator.
    Collect,
}

/// What an end knows of its own path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The network device.
    pub device: Option<String>,
    /// The local address and port of the first stream.
    pub local: Option<String>,
    /// The peer's address and port of the first stream.
    pub peer: Option<String>,
    /// Further facts, such as the congestion control or the maximum segment size.
    pub facts: Vec<(String, String)>,
}

/// A cell that gave no measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The cell.
    pub cell: CellId,
    /// Which try; `None` if none was begun.
    pub attempt: Option<Attempt>,
    /// The word.
    pub word: LossWord,
    /// The node that the reason is about, where one is known.
    pub node: Option<NodeIndex>,
    /// How far it had come.
    pub phase: Option<Phase>,
    /// The reason, such as `n3 did not answer within 10s`.
    pub reason: String,
}

/// The words of the verdict vocabulary for a cell without a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossWord {
    /// A process or node died during the cell.
    Crash,
    /// A deadline passed during the cell.
    Timeout,
    /// The plan or a missing capability leaves it out.
    Skip,
    /// It was never begun.
    NotTested,
}

/// Something a reader should know that belongs to no cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// How serious.
    pub severity: Severity,
    /// The node it is about.
    pub node: Option<NodeIndex>,
    /// What, in one sentence.
    pub text: String,
    /// What to do about it, where known.
    pub remedy: Option<String>,
}

/// How serious a note or finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Casts doubt on figures.
    Warning,
    /// Something is broken.
    Error,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// Every round was played or given up with a reason.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// It could not go on.
    Aborted {
        /// Why.
        reason: String,
    },
}

/// Budget of a batch of records: half of the 16 MiB limit of a result batch, since sizes are estimates.
const BATCH_BYTES: usize = 8 << 20;
