//! Limits: what a figure is held against, and where the limit comes from.

use std::fmt;

use super::population::{NoPopulation, Population};
use crate::plan::{Gates, Spread};
use crate::units::BitsPerSecond;

/// One limit that a figure was held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Which way is better, and with that the unit: Gb/s or microseconds.
    pub spread: Spread,
    /// The figure.
    pub value: f64,
    /// The limit, in the same unit.
    pub limit: f64,
    /// Where the limit comes from.
    pub source: LimitSource,
    /// Whether the figure is on the good side of it.
    pub outcome: LimitOutcome,
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LimitSource {
    /// The plan.
    Absolute,
    /// A share of the slower end's line rate.
    LineRate {
        /// The share, 0 to 1.
        share: f64,
        /// The line rate.
        line_rate: BitsPerSecond,
    },
    /// The comparable cells of the run.
    Population(Population),
}

/// Whether a figure is on the good side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOutcome {
    /// It is.
    Met,
    /// It is not.
    Missed,
}

/// What is known to hold one figure against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norms<'a> {
    pub(super) gates: &'a Gates,
    pub(super) line_rate: Option<BitsPerSecond>,
    pub(super) population: Option<Result<Population, NoPopulation>>,
}

/// The limits of a figure, and the gates of the plan that could not be applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assessment {
    pub(super) limits: Vec<Limit>,
    /// Gates whose absence forbids a pass: the plan demands them.
    pub(super) unmet: Vec<String>,
    /// Gates that give no limit here, which other limits make up for.
    pub(super) without: Vec<String>,
}

/// Holds a figure against every gate of the plan that is about its kind.
pub(super) fn assess(spread: Spread, value: f64, norms: &Norms<'_>) -> Assessment {
    let mut assessment = Assessment::default();
    let mut hold = |limit, source| assessment.limits.push(Limit::hold(spread, value, limit, source));
    match spread {
        Spread::Bandwidth => {
            if let Some(lowest) = norms.gates.min_bandwidth {
                hold(lowest.gbps(), LimitSource::Absolute);
            }
            if let (Some(share), Some(line_rate)) = (norms.gates.min_line_rate_share, norms.line_rate) {
                hold(line_rate.gbps() * share, LimitSource::LineRate { share, line_rate });
            }
        }
        Spread::Latency => {
            if let Some(highest) = norms.gates.max_latency {
                hold(highest.as_secs_f64() * 1e6, LimitSource::Absolute);
            }
        }
    }
    if let Some(Ok(population)) = norms.population {
        hold(population.limit, LimitSource::Population(population));
    }
    if let Some(Err(none)) = norms.population {
        assessment.without.push(none.to_string());
    }
    let demands_line_rate = spread == Spread::Bandwidth && norms.gates.min_line_rate_share.is_some();
    if demands_line_rate && norms.line_rate.is_none() {
        assessment.unmet.push(UNKNOWN_LINE_RATE.to_owned());
    }
    assessment
}

impl Limit {
    fn hold(spread: Spread, value: f64, limit: f64, source: LimitSource) -> Self {
        let met = match spread {
            Spread::Bandwidth => value >= limit,
            Spread::Latency => value <= limit,
        };
        Self {
            spread,
            value,
            limit,
            source,
            outcome: if met { LimitOutcome::Met } else { LimitOutcome::Missed },
        }
    }

    fn unit(&self) -> &'static str {
        match self.spread {
            Spread::Bandwidth => "Gb/s",
            Spread::Latency => "us",
        }
    }
}

impl fmt::Display for Limit {
    /// Value, limit and where the limit comes from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit();
        let side = match self.spread {
            Spread::Bandwidth => "below",
            Spread::Latency => "above",
        };
        write!(f, "{:.2} {unit}, limit {:.2} {unit} (", self.value, self.limit)?;
        match self.source {
            LimitSource::Absolute => write!(f, "the plan's gate)"),
            LimitSource::LineRate { share, line_rate } => {
                write!(f, "{:.0}% of the line rate {line_rate})", share * 100.0)
            }
            LimitSource::Population(p) => write!(
                f,
                "{:.0}% {side} the median {:.2} {unit} of {} cells)",
                p.width * 100.0,
                p.median,
                p.cells
            ),
        }
    }
}

/// Why a line-rate gate gives no limit, with the remedy.
const UNKNOWN_LINE_RATE: &str =
    "the plan asks for a share of the line rate, which is unknown; set a minimum bandwidth";
