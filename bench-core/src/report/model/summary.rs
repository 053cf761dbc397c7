//! What cells add up to: matrices, histograms, findings.

use serde::{Deserialize, Serialize};

use crate::judge::{Certainty, FindingKind};
use crate::plan::TestKind;
use crate::record::Severity;

/// The figures of one test and size on one rail: row = source, column = destination, in the order of `names`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixReport {
    /// What was measured.
    pub test: TestKind,
    /// Message size, bytes.
    pub size_bytes: u64,
    /// The rail.
    pub rail: u16,
    /// The nodes of rows and columns.
    pub names: Vec<String>,
    /// Average rates, Gb/s; null for a latency test.
    pub bw_avg_gbps: Option<Vec<Vec<Option<f64>>>>,
    /// p50, microseconds; null for a bandwidth test.
    pub lat_p50_us: Option<Vec<Vec<Option<f64>>>>,
    /// p99, microseconds; null for a bandwidth test.
    pub lat_p99_us: Option<Vec<Vec<Option<f64>>>>,
    /// Median of the rates, Gb/s.
    pub bw_median_gbps: Option<f64>,
    /// Median of the p50, microseconds.
    pub lat_median_p50_us: Option<f64>,
    /// The worst cell; null without a figure.
    pub worst: Option<WorstReport>,
}

/// The worst cell of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstReport {
    /// The cell.
    pub cell: u32,
    /// Its source.
    pub src: String,
    /// Its destination.
    pub dst: String,
    /// Its rate, Gb/s.
    pub bw_avg_gbps: Option<f64>,
    /// Its p50, microseconds.
    pub lat_p50_us: Option<f64>,
}

/// The merged latency histogram of one test and size on one rail, over the planned cells with a usable figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistogramReport {
    /// What was measured.
    pub test: TestKind,
    /// Message size, bytes.
    pub size_bytes: u64,
    /// The rail.
    pub rail: u16,
    /// Cells in it.
    pub cells: u32,
    /// Exchanges in it: the sum of the cells' counts.
    pub count: u64,
    /// Exchanges outside 1 ns to 60 s.
    pub clipped: u64,
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
    /// Recorded buckets as [highest value in nanoseconds, count], ascending.
    pub buckets_le_ns: Vec<(u64, u64)>,
    /// HdrHistogram V2 encoding, base64.
    pub hdr_v2_base64: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingReport {
    /// What kind.
    pub kind: FindingKind,
    /// How serious.
    pub severity: Severity,
    /// How sure, where it names a part.
    pub certainty: Option<Certainty>,
    /// The part that it names.
    pub part: Option<PartReport>,
    /// What, in one sentence.
    pub text: String,
    /// What it rests on.
    pub evidence: Vec<String>,
    /// What to do about it.
    pub remedy: Option<String>,
    /// Numbers of the cells that it explains.
    pub cells: Vec<u32>,
}

/// A part of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReport {
    /// What kind of part, with its direction.
    pub word: PartWord,
    /// The node, or source and destination of a pair; empty for rails.
    pub nodes: Vec<String>,
    /// The rail; null means all.
    pub rail: Option<u16>,
}

/// Kinds of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartWord {
    /// Every rail as a whole.
    Everything,
    /// One rail as a whole.
    Rail,
    /// A node, both directions.
    Node,
    /// A node's sending.
    NodeSend,
    /// A node's receiving.
    NodeReceive,
    /// A pair, both directions.
    Pair,
    /// A pair, from the first to the second.
    PairForward,
}
