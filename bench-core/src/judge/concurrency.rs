//! Whether cells that should run at the same time did.
//!
//! The windows of a round's counted cells are taken to the coordinator's clock and shrunk by each clock's error on
//! both sides; their intersection is the common window, and only what a cell measured inside it counts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::view::{Load, RunView};
use crate::cell::{Cell, End};
use crate::ids::{CellId, RoundId};
use crate::journal::{AttemptKey, Standing};
use crate::measure::{Measurement, Window};
use crate::record::{Observation, Outcome};

/// Whether a cell ran at the same time as the others of its round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Concurrency {
    /// It shares its nodes with no other cell: its own window counts.
    Alone,
    /// It did: only the common window counts.
    Counted {
        /// The common window on the coordinator's clock.
        window: Window,
        /// Share of the cell's own window that the common one covers, 0 to 1.
        overlap: f64,
        /// Error of the clock that timed the cell, nanoseconds.
        clock_error_ns: u64,
    },
    /// It did not, or nobody can tell: not counted as concurrent.
    NotCounted {
        /// The common window on the coordinator's clock; `None` if there is none.
        window: Option<Window>,
        /// Share of the cell's own window that the common one covers, 0 to 1.
        overlap: f64,
        /// Error of the clock that timed the cell, nanoseconds.
        clock_error_ns: u64,
        /// Why.
        reason: NotCounted,
    },
}

/// Why a cell is not counted as concurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCounted {
    /// The clock error is above 5 % of the window.
    ClockError,
    /// The common window covers less than 80 % of the cell's own.
    Overlap,
}

/// The concurrency of every counted planned cell; empty where planned cells run alone.
pub(super) fn assess(view: &RunView<'_>) -> BTreeMap<CellId, Concurrency> {
    match view.load() {
        Load::Alone => BTreeMap::new(),
        Load::Concurrent => {
            let mut groups: BTreeMap<(AttemptKey, RoundId), Vec<Timed>> = BTreeMap::new();
            for cell in &view.planned {
                if let Some((group, timed)) = timed(view, cell) {
                    groups.entry(group).or_default().push(timed);
                }
            }
            groups.values().flat_map(|group| judge_round(group)).collect()
        }
    }
}

struct Timed {
    cell: CellId,
    length: Duration,
    clock_error_ns: u64,
    /// On the reference clock, shrunk by the clock error; `None` if nothing is left.
    certain: Option<Window>,
}

fn timed(view: &RunView<'_>, cell: &Cell) -> Option<((AttemptKey, RoundId), Timed)> {
    let Standing::Complete { key, source, destination } =
        view.merged.cell(view.start.run, cell.id)?.standing()
    else {
        return None;
    };
    let observer = match view.case(cell).kind.observer() {
        End::Source => source,
        End::Destination => destination,
    };
    let own = window(observer)?;
    let error = Duration::from_nanos(observer.clock.error_ns);
    let there = own.to_reference(observer.clock);
    let shrunk = Window { start: there.start.after(error), end: there.end.before(error) };
    let timed = Timed {
        cell: cell.id,
        length: own.length(),
        clock_error_ns: observer.clock.error_ns,
        certain: (shrunk.start < shrunk.end).then_some(shrunk),
    };
    Some(((key, observer.round), timed))
}

fn judge_round(group: &[Timed]) -> Vec<(CellId, Concurrency)> {
    let trusted = |timed: &&Timed| share(timed.clock_error_ns, timed.length) <= MAX_CLOCK_ERROR_SHARE;
    let common =
        group.iter().filter(trusted).map(|timed| timed.certain).reduce(|a, b| a?.intersection(&b?)).flatten();
    let judged = group.iter().map(|timed| {
        let inside = common.filter(|_| trusted(&timed));
        let overlap = inside.map_or(0.0, |window| share(window.length().as_nanos() as u64, timed.length));
        let clock_error_ns = timed.clock_error_ns;
        let not_counted =
            |reason| Concurrency::NotCounted { window: common, overlap, clock_error_ns, reason };
        let concurrency = match inside {
            _ if !trusted(&timed) => not_counted(NotCounted::ClockError),
            Some(window) if overlap >= MIN_OVERLAP => {
                Concurrency::Counted { window, overlap, clock_error_ns }
            }
            Some(_) | None => not_counted(NotCounted::Overlap),
        };
        (timed.cell, concurrency)
    });
    judged.collect()
}

fn window(observation: &Observation) -> Option<Window> {
    match &observation.outcome {
        Outcome::Measured(Measurement::Bandwidth(sample)) => Some(sample.window),
        Outcome::Measured(Measurement::Latency(sample)) => Some(sample.window),
        Outcome::Measured(Measurement::Responder { .. } | Measurement::Passive { .. })
        | Outcome::Failed(_) => None,
    }
}

fn share(nanos: u64, of: Duration) -> f64 {
    let whole = of.as_nanos() as f64;
    if whole > 0.0 { nanos as f64 / whole } else { f64::INFINITY }
}

/// Least share of a cell's window that the common window must cover (DESIGN section 6, rule 3).
const MIN_OVERLAP: f64 = 0.80;
/// Largest clock error as a share of the window (DESIGN section 6, rule 3).
const MAX_CLOCK_ERROR_SHARE: f64 = 0.05;
