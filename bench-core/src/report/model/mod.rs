//! The structs of the contract. Units are in the names of the fields; a value that does not exist is `null`.

mod cell;
mod run;
mod summary;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use cell::{
    AttemptReport, BandwidthReport, CellReport, ConcurrencyReport, ConcurrencyWord, DataCheckReport,
    DataCheckWord, EvidenceReport, FactReport, FailureReport, LatencyReport, LimitReport, LimitWord,
    PopulationReport, PurposeWord, RttWord,
};
pub use run::{
    CaseReport, CoverageReport, EndReport, EndWord, GapReport, GatesReport, NodeRailReport, NodeReport,
    PlanReport, PopulationGateReport, ScheduleReport,
};
pub use summary::{FindingReport, HistogramReport, MatrixReport, PartReport, PartWord, WorstReport};

use crate::judge::{CellStatus, RunVerdict};

/// The report of a run: the top level of the JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Name and version of this contract: [`SCHEMA`].
    pub schema: String,
    /// The run: 32 hexadecimal digits.
    pub run_id: String,
    /// The word of the run.
    pub verdict: RunVerdict,
    /// Why this word, and what the plan covered.
    pub reasons: Vec<String>,
    /// When the coordinator says that it began, ISO 8601 in UTC: a label.
    pub started_wall: String,
    /// How it ended.
    pub end: EndReport,
    /// The plan as run.
    pub plan: PlanReport,
    /// Rounds, coverage and the time between rounds.
    pub schedule: ScheduleReport,
    /// Every node of the roster, in order.
    pub nodes: Vec<NodeReport>,
    /// Every rail that the plan measures.
    pub rails: Vec<RailReport>,
    /// Every cell: planned ones in order, then those that were added.
    pub cells: Vec<CellReport>,
    /// One matrix per test, size and rail.
    pub matrices: Vec<MatrixReport>,
    /// One merged latency histogram per test, size and rail.
    pub histograms: Vec<HistogramReport>,
    /// What a reader should know, most serious first.
    pub findings: Vec<FindingReport>,
}

/// One rail over all nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RailReport {
    /// The rail.
    pub rail: u16,
    /// Nodes that have it.
    pub nodes: u32,
    /// Its devices, each name once.
    pub devices: Vec<String>,
    /// Planned cells by word.
    pub cells: BTreeMap<CellStatus, u32>,
}

/// Name and version of the contract. The number changes when a field is removed or its meaning changes; fields may be
/// added without.
pub const SCHEMA: &str = "railmesh/result/1";
