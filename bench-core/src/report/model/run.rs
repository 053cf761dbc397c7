//! What was run, where, and how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::{Duplex, Pattern, RailMode, TestKind, Verify, WaitMode};
use crate::topology::{Confidence, LinkLayer};
use crate::verbs::RdmaOptions;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReport {
    /// The word.
    pub word: EndWord,
    /// Why, for an aborted run.
    pub reason: Option<String>,
}

/// The word of a run's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndWord {
    /// Every round was played or given up with a reason.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// It could not go on.
    Aborted,
    /// It had not ended when these records were taken.
    Open,
}

/// The plan as run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// The test cases.
    pub cases: Vec<CaseReport>,
    /// Which nodes measure with which.
    pub pattern: Pattern,
    /// One direction of a pair at a time, or both.
    pub duplex: Duplex,
    /// Rails one after the other or all at once.
    pub rail_mode: RailMode,
    /// Only these rails; null means all.
    pub rails: Option<Vec<u16>>,
    /// The devices that the plan takes as rails, by node or `*`; null where it leaves that to the nodes.
    pub rails_of: Option<BTreeMap<String, Vec<String>>>,
    /// Upper bound on the measuring time, seconds.
    pub budget_s: Option<f64>,
    /// The seed as text, because JSON readers round large numbers.
    pub seed: String,
    /// The limits.
    pub gates: GatesReport,
    /// Whether suspects are measured again.
    pub retest_suspects: bool,
    /// How long a node may take to arm a round, milliseconds.
    pub prepare_timeout_ms: f64,
}

/// One test case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseReport {
    /// What is measured.
    pub test: TestKind,
    /// Message size, bytes.
    pub size_bytes: u64,
    /// Parallel connections, or queue pairs.
    pub streams: u16,
    /// How a thread waits for data.
    pub wait: WaitMode,
    /// The measured window, milliseconds.
    pub window_ms: f64,
    /// Traffic before the window, milliseconds.
    pub warmup_ms: f64,
    /// Whether data is verified.
    pub verify: Verify,
    /// Upper bound on the rate of a cell, Gb/s.
    pub rate_limit_gbps: Option<f64>,
    /// Parameters of an RDMA test; null for every other.
    pub rdma: Option<RdmaOptions>,
}

/// The limits of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatesReport {
    /// Lowest average rate, Gb/s.
    pub min_bandwidth_gbps: Option<f64>,
    /// Highest p50, microseconds.
    pub max_latency_us: Option<f64>,
    /// Lowest average rate as a share of the slower end's line rate.
    pub min_line_rate_share: Option<f64>,
    /// Comparison with the other cells of the case.
    pub population: Option<PopulationGateReport>,
}

/// The population gate of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationGateReport {
    /// Share of the median that a rate may always be below it.
    pub bandwidth_floor_share: f64,
    /// Share of the median that a p50 may always be above it.
    pub latency_floor_share: f64,
    /// Robust standard deviations that a cell may be off.
    pub deviations: f64,
    /// Fewest comparable cells.
    pub min_cells: u32,
}

/// Rounds, coverage and the time between rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleReport {
    /// Which nodes measure with which.
    pub pattern: Pattern,
    /// Rounds of the schedule.
    pub rounds_planned: u32,
    /// Rounds of the schedule that were started.
    pub rounds_played: u32,
    /// Rounds that were started beside the schedule: retries and retests.
    pub rounds_added: u32,
    /// Cells of the schedule.
    pub cells_planned: u32,
    /// Retests and repairs.
    pub cells_added: u32,
    /// How much of what could be measured was.
    pub coverage: CoverageReport,
    /// From the end of one round's last window to the start of the next one's first; null with fewer than two rounds.
    pub gaps: Option<GapReport>,
}

/// Directed pairs of nodes, each rail of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoverageReport {
    /// Pairs that the plan measures.
    pub planned_pairs: u64,
    /// All pairs.
    pub possible_pairs: u64,
    /// Pairs with a figure.
    pub measured_pairs: u64,
    /// Measured of possible, 0 to 1; null without a possible pair.
    pub measured_share: Option<f64>,
}

/// Times between rounds. Only rounds of one epoch are compared, because another coordinator has another clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapReport {
    /// How many gaps.
    pub count: u32,
    /// Median, milliseconds, nearest rank.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds, nearest rank.
    pub p99_ms: f64,
    /// Largest, milliseconds.
    pub max_ms: f64,
}

/// One node of the roster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its name.
    pub node: String,
    /// Why it did not take part; null if it did.
    pub absent: Option<String>,
    /// The kernel's host name.
    pub hostname: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Processors that its agent may use.
    pub cpus: Option<u32>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Its rails, in order.
    pub rails: Vec<NodeRailReport>,
    /// What it can measure: name, and why not where it cannot.
    pub capabilities: Vec<(String, Option<String>)>,
    /// What a user should know about it.
    pub notes: Vec<String>,
}

/// One rail of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeRailReport {
    /// The rail.
    pub rail: u16,
    /// The device.
    pub device: String,
    /// The RDMA device, `mlx5_4` or `mlx5_4:2` with another port than the first.
    pub hca: Option<String>,
    /// What runs on its wire.
    pub link_layer: Option<LinkLayer>,
    /// The GPU whose rank uses this rail, as the driver's tools number it.
    pub gpu: Option<u16>,
    /// The PCI address of that GPU.
    pub gpu_bus: Option<String>,
    /// How sure it is that this GPU belongs to this rail.
    pub pairing: Option<Confidence>,
    /// The address that data sockets bind to.
    pub address: Option<String>,
    /// The network of that address.
    pub network: Option<String>,
    /// The NUMA node of the device.
    pub numa: Option<u32>,
    /// Line rate, Gb/s.
    pub line_rate_gbps: Option<f64>,
    /// MTU, bytes.
    pub mtu_bytes: Option<u32>,
    /// Why this device was taken as this rail.
    pub reason: String,
}
