//! The median and scatter of comparable cells, and the limit that follows.
//!
//! Median and MAD (median absolute deviation; Leys et al. 2013, doi:10.1016/j.jesp.2013.03.013) are taken over the
//! bulk: the cells within the gate's floor of the median. Without that, a fault of a third of the cells widens its own
//! limit until it passes. With an even number of cells the better of the two middle values is the median, so that a
//! fault of just half of the cells is one. Where no bulk holds half of the cells, all of them are taken.

use std::fmt;

use crate::plan::{PopulationGate, Spread};

/// The comparable cells of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Population {
    /// How many there are.
    pub cells: u32,
    /// The median of the bulk, in the unit of the figures.
    pub median: f64,
    /// The median absolute deviation of the bulk, in the unit of the figures.
    pub mad: f64,
    /// Share of the median that a cell may be worse.
    pub width: f64,
    /// The limit, in the unit of the figures.
    pub limit: f64,
}

/// Why comparable cells give no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPopulation {
    /// Too few of them.
    TooFew {
        /// How many there are.
        cells: u32,
        /// How many it takes.
        needed: u32,
    },
    /// They scatter so far that no figure would be outside the limit.
    Scattered {
        /// How many there are.
        cells: u32,
    },
    /// So many are far better than the median that the median itself may be the fault.
    Split {
        /// How many there are.
        cells: u32,
        /// How many are better than sound cells of this median can be.
        better: u32,
    },
}

impl Population {
    /// The limit that `values` set for each of themselves.
    ///
    /// # Errors
    /// [`NoPopulation`] if there are too few, or they are no one population.
    pub fn new(values: &[f64], spread: Spread, gate: &PopulationGate) -> Result<Self, NoPopulation> {
        let cells = values.len() as u32;
        if cells < gate.min_cells.max(1) {
            return Err(NoPopulation::TooFew { cells, needed: gate.min_cells.max(1) });
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let floor = match spread {
            Spread::Bandwidth => gate.bandwidth_floor,
            Spread::Latency => gate.latency_floor,
        };
        let bulk = bulk(&sorted, spread, floor);
        let median = median(bulk, spread).unwrap_or(0.0);
        let mad = mad(bulk, median);
        let width = floor.max(gate.deviations * MAD_TO_SIGMA * mad / median);
        let limit = match spread {
            Spread::Bandwidth => median * (1.0 - width),
            Spread::Latency => median * (1.0 + width),
        };
        let usable = limit.is_finite() && limit > 0.0;
        if !usable {
            return Err(NoPopulation::Scattered { cells });
        }
        let better = sorted.iter().filter(|value| better(**value, median, width, spread)).count() as u32;
        if f64::from(better) > f64::from(cells) * SPLIT_SHARE {
            return Err(NoPopulation::Split { cells, better });
        }
        Ok(Self { cells, median, mad, width, limit })
    }
}

impl fmt::Display for NoPopulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { cells, needed } => {
                write!(
                    f,
                    "{cells} comparable cells, a population takes {needed}; set an absolute or line-rate gate"
                )
            }
            Self::Scattered { cells } => write!(
                f,
                "the {cells} comparable cells scatter too widely for a limit; set an absolute or line-rate gate"
            ),
            Self::Split { cells, better } => write!(
                f,
                "{better} of {cells} comparable cells are far better than the median, which may itself be the fault; \
                 set an absolute or line-rate gate"
            ),
        }
    }
}

/// The middle of sorted values; of two middle values the better one. `None` without a value.
pub(crate) fn median(sorted: &[f64], spread: Spread) -> Option<f64> {
    let middle = match spread {
        Spread::Bandwidth => sorted.len() / 2,
        Spread::Latency => sorted.len().saturating_sub(1) / 2,
    };
    sorted.get(middle).copied()
}

fn bulk(sorted: &[f64], spread: Spread, floor: f64) -> &[f64] {
    let mut part = sorted;
    for _ in 0..BULK_STEPS {
        let Some(middle) = median(part, spread) else {
            return sorted;
        };
        let factor = match spread {
            Spread::Bandwidth => (1.0 - floor).max(f64::EPSILON),
            Spread::Latency => 1.0 / (1.0 + floor),
        };
        let from = sorted.partition_point(|value| *value < middle * factor);
        let to = sorted.partition_point(|value| *value <= middle / factor);
        part = &sorted[from..to];
    }
    if part.len() * 2 < sorted.len() { sorted } else { part }
}

fn mad(values: &[f64], median: f64) -> f64 {
    let mut off: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    off.sort_by(f64::total_cmp);
    off.get(off.len() / 2).copied().unwrap_or(0.0)
}

fn better(value: f64, median: f64, width: f64, spread: Spread) -> bool {
    match spread {
        Spread::Bandwidth => value > median / (1.0 - width),
        Spread::Latency => value < median / (1.0 + width),
    }
}

/// A normal distribution's standard deviation over its MAD: 1 / Φ⁻¹(3/4).
const MAD_TO_SIGMA: f64 = 1.4826;
/// Times the bulk is centred again on its own median; it settles after two.
const BULK_STEPS: usize = 3;
/// Share of far better cells above which the median is not trusted: one node of four that is better both ways is a
/// half, and sound populations with 5 % noise have none.
const SPLIT_SHARE: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], spread: Spread) -> Result<Population, NoPopulation> {
        Population::new(values, spread, &PopulationGate::default())
    }

    #[test]
    fn cells_without_scatter_are_held_to_the_floor() {
        let same = of(&[10.0; 8], Spread::Bandwidth).expect("eight cells");
        assert_eq!((same.mad, same.width, same.limit), (0.0, 0.20, 8.0));
        let latency = of(&[10.0; 8], Spread::Latency).expect("eight cells");
        assert_eq!(latency.limit, 20.0);
    }

    #[test]
    fn scatter_of_sound_cells_widens_the_limit() {
        let values: Vec<f64> = (0..20).map(|i| 9.0 + 0.1 * f64::from(i)).collect();
        let wide = of(&values, Spread::Bandwidth).expect("twenty cells");
        assert!(wide.width > 0.4, "{wide:?}");
    }

    #[test]
    fn few_cells_are_no_population() {
        assert_eq!(of(&[10.0; 5], Spread::Bandwidth), Err(NoPopulation::TooFew { cells: 5, needed: 6 }));
        assert!(of(&[10.0; 6], Spread::Bandwidth).is_ok());
        assert!(of(&[], Spread::Latency).is_err());
    }

    #[test]
    fn a_fault_of_half_of_the_cells_does_not_hide_itself() {
        let values: Vec<f64> = (0..12).map(|i| if i % 2 == 0 { 10.0 } else { 5.0 }).collect();
        assert_eq!(of(&values, Spread::Bandwidth).map(|p| p.limit), Ok(8.0));
        let times: Vec<f64> = (0..12).map(|i| if i % 2 == 0 { 10.0 } else { 40.0 }).collect();
        assert_eq!(of(&times, Spread::Latency).map(|p| p.limit), Ok(20.0));
    }

    #[test]
    fn a_fault_of_most_cells_is_not_taken_for_the_norm() {
        let values: Vec<f64> = (0..12).map(|i| if i % 3 == 0 { 10.0 } else { 5.0 }).collect();
        assert_eq!(of(&values, Spread::Bandwidth), Err(NoPopulation::Split { cells: 12, better: 4 }));
    }

    #[test]
    fn figures_without_a_middle_give_no_limit() {
        let values: Vec<f64> = (0..10).map(|i| f64::from(1 << i)).collect();
        assert_eq!(of(&values, Spread::Bandwidth), Err(NoPopulation::Scattered { cells: 10 }));
        assert_eq!(of(&[0.0; 8], Spread::Bandwidth), Err(NoPopulation::Scattered { cells: 8 }));
    }
}
