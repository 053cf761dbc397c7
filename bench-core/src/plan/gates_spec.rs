//! The text form of the gates, with everything optional.

use std::fmt;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::forms;
use crate::units::BitsPerSecond;

/// The `[gates]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatesSpec {
    /// Lowest average rate of a bandwidth cell. Default: no such gate.
    #[serde(with = "forms")]
    pub min_bandwidth: Option<BitsPerSecond>,
    /// Highest p50 of a latency cell. Default: no such gate.
    #[serde(with = "forms")]
    pub max_latency: Option<Duration>,
    /// Lowest share of the line rate, 0.001 to 1. Default: no such gate.
    pub min_line_rate_share: Option<f64>,
    /// Comparison with the other cells. Default: on.
    pub population: Option<PopulationSpec>,
}

/// `population = "off"`, or a table with the limits that differ from the default.
#[derive(Clone, Debug, PartialEq)]
pub enum PopulationSpec {
    /// Cells are not compared with one another.
    Off,
    /// They are, with these limits.
    On(PopulationLimits),
}

/// The `[gates.population]` table; see [`super::PopulationGate`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PopulationLimits {
    /// 0.001 to 1.
    pub bandwidth_floor: Option<f64>,
    /// 0.001 to 100.
    pub latency_floor: Option<f64>,
    /// 1 to 1000.
    pub deviations: Option<f64>,
    /// 3 to 1,000,000.
    pub min_cells: Option<u32>,
}

impl GatesSpec {
    /// These gates with every field that `above` sets replaced by that of `above`.
    #[must_use]
    pub(super) fn overridden_by(self, above: Self) -> Self {
        Self {
            min_bandwidth: above.min_bandwidth.or(self.min_bandwidth),
            max_latency: above.max_latency.or(self.max_latency),
            min_line_rate_share: above.min_line_rate_share.or(self.min_line_rate_share),
            population: match (self.population, above.population) {
                (Some(PopulationSpec::On(below)), Some(PopulationSpec::On(above))) => {
                    Some(PopulationSpec::On(below.overridden_by(above)))
                }
                (below, above) => above.or(below),
            },
        }
    }
}

impl PopulationLimits {
    fn overridden_by(self, above: Self) -> Self {
        Self {
            bandwidth_floor: above.bandwidth_floor.or(self.bandwidth_floor),
            latency_floor: above.latency_floor.or(self.latency_floor),
            deviations: above.deviations.or(self.deviations),
            min_cells: above.min_cells.or(self.min_cells),
        }
    }
}

impl Serialize for PopulationSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => to.serialize_str(OFF),
            Self::On(limits) => limits.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for PopulationSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PopulationVisitor)
    }
}

struct PopulationVisitor;

impl<'de> Visitor<'de> for PopulationVisitor {
    type Value = PopulationSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"off\" or a table of bandwidth_floor, latency_floor, deviations and min_cells")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PopulationSpec, E> {
        match text {
            OFF => Ok(PopulationSpec::Off),
            other => Err(E::custom(format!("{other:?} is neither \"off\" nor a table of limits"))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PopulationSpec, A::Error> {
        PopulationLimits::deserialize(MapAccessDeserializer::new(map)).map(PopulationSpec::On)
    }
}

/// The word that turns the comparison off.
const OFF: &str = "off";
