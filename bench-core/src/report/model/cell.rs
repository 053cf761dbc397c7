//! One cell of the report.

use serde::{Deserialize, Serialize};

use crate::judge::CellStatus;
use crate::plan::TestKind;
use crate::record::{FailureKind, Phase};

/// One cell: its word, figure and evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellReport {
    /// Its number in the run.
    pub id: u32,
    /// What was measured.
    pub test: TestKind,
    /// Message size, bytes.
    pub size_bytes: u64,
    /// The rail.
    pub rail: u16,
    /// The sender or initiator.
    pub src: String,
    /// The receiver or responder.
    pub dst: String,
    /// Why it was measured.
    pub purpose: PurposeWord,
    /// The planned cell that a retest or repair is about.
    pub of: Option<u32>,
    /// Its word.
    pub status: CellStatus,
    /// Why this word.
    pub reason: String,
    /// The round of the attempt.
    pub round: Option<u32>,
    /// The attempt that counts, or the highest where none is complete.
    pub attempt: Option<AttemptReport>,
    /// Attempts that do not count.
    pub superseded: Vec<AttemptReport>,
    /// What a bandwidth cell reached.
    pub bandwidth: Option<BandwidthReport>,
    /// What a latency cell reached.
    pub latency: Option<LatencyReport>,
    /// Whether it ran at the same time as the others of its round.
    pub concurrency: ConcurrencyReport,
    /// Result of the data check; null without a measurement.
    pub data_check: Option<DataCheckReport>,
    /// What the figure was held against.
    pub limits: Vec<LimitReport>,
    /// What the source knows of its path.
    pub source: Option<EvidenceReport>,
    /// What the destination knows of its path.
    pub destination: Option<EvidenceReport>,
    /// Different observations under one key, as text; empty where there is no conflict.
    pub conflicts: Vec<String>,
}

/// Why a cell was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurposeWord {
    /// Part of the plan.
    Plan,
    /// The same pair again, alone.
    Retest,
    /// A suspect part with a partner that has proven sound.
    Repair,
}

/// One try at a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptReport {
    /// The epoch as `term.elector`.
    pub epoch: String,
    /// The number of the try within the epoch, from 1.
    pub attempt: u16,
}

/// What a bandwidth cell reached. The figure is what the receiver counted, or the sender where the receiver of an RDMA
/// write is not told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandwidthReport {
    /// The figure: the counting end's rate inside the counted window, Gb/s.
    pub bw_avg_gbps: f64,
    /// Rate of the slowest slice; null with too few slices.
    pub bw_min_slice_gbps: Option<f64>,
    /// Rate of the fastest slice; null with too few slices.
    pub bw_max_slice_gbps: Option<f64>,
    /// Slices of max(10 ms, 64 completions); null with fewer than four.
    pub slices: Option<u32>,
    /// Standard deviation of the slices' rates over their mean; null with too few slices.
    pub variation: Option<f64>,
    /// The sender's rate over its own window, Gb/s; null where it cannot count, as the end that is read from.
    pub sender_gbps: Option<f64>,
    /// The receiver's rate over its own window, Gb/s; null where it cannot count, as the end that is written to.
    pub receiver_gbps: Option<f64>,
    /// Messages a second, in millions; null for TCP, a stream of bytes.
    pub message_rate_mpps: Option<f64>,
    /// Segments sent again over the cell's life.
    pub retransmits: Option<u64>,
    /// Length of the counted window, milliseconds.
    pub window_ms: f64,
}

/// What a latency cell reached, from the initiator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Counted exchanges.
    pub count: u64,
    /// Smallest, microseconds.
    pub lat_min_us: f64,
    /// Median, microseconds.
    pub lat_p50_us: f64,
    /// 90th percentile, microseconds.
    pub lat_p90_us: f64,
    /// 99th percentile, microseconds.
    pub lat_p99_us: f64,
    /// 99.9th percentile, microseconds.
    pub lat_p999_us: f64,
    /// Largest, microseconds.
    pub lat_max_us: f64,
    /// Which part of the round trip the figures are.
    pub share: RttWord,
    /// Exchanges outside 1 ns to 60 s, counted at the ends of the range.
    pub clipped: u64,
    /// Length of the initiator's window, milliseconds.
    pub window_ms: f64,
}

/// Which part of a round trip a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RttWord {
    /// Half of it.
    HalfRtt,
    /// All of it.
    FullRtt,
}

/// Whether a cell ran at the same time as the others of its round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyReport {
    /// The word.
    pub word: ConcurrencyWord,
    /// Length of the round's common window, milliseconds.
    pub common_window_ms: Option<f64>,
    /// Share of the cell's own window that the common one covers, 0 to 1.
    pub overlap_share: Option<f64>,
    /// Error of the clock that timed the cell, microseconds.
    pub clock_error_us: Option<f64>,
}

/// Whether a cell is counted as concurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyWord {
    /// It shares its nodes with no other cell.
    Alone,
    /// It counts, inside the common window.
    Counted,
    /// It does not: overlap below 80 % or clock error above 5 % of the window.
    NotCounted,
}

/// Result of the data check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataCheckReport {
    /// The word.
    pub word: DataCheckWord,
    /// Bytes compared, where equal.
    pub bytes: Option<u64>,
    /// Position of the first wrong byte in the stream, bytes.
    pub offset_bytes: Option<u64>,
    /// The byte that was sent.
    pub expected: Option<u8>,
    /// The byte that arrived.
    pub got: Option<u8>,
}

/// The word of a data check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataCheckWord {
    /// Not asked for.
    Unchecked,
    /// Compared and equal.
    Equal,
    /// A byte differed.
    Different,
}

/// One limit that a figure was held against. Rates are in Gb/s, times in microseconds; only one kind is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitReport {
    /// Where the limit comes from.
    pub word: LimitWord,
    /// Whether it is met.
    pub met: bool,
    /// The rate, Gb/s.
    pub value_gbps: Option<f64>,
    /// Lowest rate, Gb/s.
    pub limit_gbps: Option<f64>,
    /// The p50, microseconds.
    pub value_us: Option<f64>,
    /// Highest p50, microseconds.
    pub limit_us: Option<f64>,
    /// The comparable cells, for a population limit.
    pub population: Option<PopulationReport>,
    /// Value, limit and where the limit comes from, as a sentence.
    pub text: String,
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitWord {
    /// The plan.
    Absolute,
    /// The slower end's line rate.
    LineRate,
    /// The comparable cells.
    Population,
}

/// The comparable cells of a case. The unit of median and deviation is that of the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationReport {
    /// How many.
    pub cells: u32,
    /// Median of the bulk, Gb/s.
    pub median_gbps: Option<f64>,
    /// Median absolute deviation of the bulk, Gb/s.
    pub mad_gbps: Option<f64>,
    /// Median of the bulk, microseconds.
    pub median_us: Option<f64>,
    /// Median absolute deviation of the bulk, microseconds.
    pub mad_us: Option<f64>,
    /// Share of the median that a cell may be worse.
    pub width_share: f64,
}

/// What one end knows of its path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceReport {
    /// The node.
    pub node: String,
    /// The network device.
    pub device: Option<String>,
    /// Local address and port of the first stream.
    pub local: Option<String>,
    /// The peer's address and port of the first stream.
    pub peer: Option<String>,
    /// Further facts.
    pub facts: Vec<FactReport>,
    /// Processor time of the cell's threads over the window, milliseconds.
    pub cpu_ms: Option<f64>,
    /// Error of this end's clock against the coordinator's, microseconds.
    pub clock_error_us: f64,
    /// Why this end has no measurement.
    pub failure: Option<FailureReport>,
}

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactReport {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Why an end has no measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureReport {
    /// What kind.
    pub kind: FailureKind,
    /// How far it had come.
    pub phase: Phase,
    /// What happened.
    pub detail: String,
    /// What to do about it.
    pub remedy: Option<String>,
}
