//! The limits that cells are judged against.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::BitsPerSecond;

/// The limits of a plan. With none of them a cell is `not_judged`, never `pass`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gates {
    /// Lowest average rate of a bandwidth cell.
    pub min_bandwidth: Option<BitsPerSecond>,
    /// Highest p50 of a latency cell.
    pub max_latency: Option<Duration>,
    /// Lowest average rate as a share of the slower end's line rate, 0 to 1.
    pub min_line_rate_share: Option<f64>,
    /// Comparison with the other cells of the same case.
    pub population: Option<PopulationGate>,
}

/// How far a cell may lie from the median of its comparable cells (same test case, same concurrency).
///
/// The limit is `median × (1 ∓ max(floor, deviations × 1.4826 × MAD / median))`: never tighter than the floor,
/// wider where sound cells scatter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationGate {
    /// Share of the median that a bandwidth cell may always be below it, 0 to 1.
    pub bandwidth_floor: f64,
    /// Share of the median that a latency p50 may always be above it; 1 means twice the median.
    pub latency_floor: f64,
    /// Robust standard deviations that a cell may be off.
    pub deviations: f64,
    /// Fewest comparable cells that make a population; with fewer there is no gate.
    pub min_cells: u32,
}

impl Default for PopulationGate {
    fn default() -> Self {
        Self { bandwidth_floor: 0.20, latency_floor: 1.0, deviations: 6.0, min_cells: 6 }
    }
}

impl Gates {
    /// The population gate alone: the only one that needs no table of platforms.
    pub fn population_only() -> Self {
        Self {
            min_bandwidth: None,
            max_latency: None,
            min_line_rate_share: None,
            population: Some(PopulationGate::default()),
        }
    }
}
