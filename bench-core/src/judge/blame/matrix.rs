//! The matrices of a case: what each cell says of the parts that it passes through.

use std::collections::{BTreeMap, BTreeSet};

use super::cover::{Entry, Local, Mark, smallest_cover};
use super::part::{Direction, Part, Rails, Side};
use crate::cell::{Cell, Purpose};
use crate::ids::{CaseIndex, NodeIndex, RailId};
use crate::judge::cells::{CellVerdict, Symptom};
use crate::judge::gate::LimitSource;
use crate::judge::population::median;
use crate::judge::status::CellStatus;
use crate::judge::view::{Load, RunView};
use crate::plan::Spread;

/// One measured cell of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::judge) struct Point {
    pub(in crate::judge) cell: Cell,
    pub(in crate::judge) mark: Mark,
    /// Figure against the median of the case: 1 is the median and less is worse, also for latency. `None` without a
    /// figure.
    pub(in crate::judge) goodness: Option<f64>,
}

/// The points of every case that shows the symptom.
pub(super) fn points(
    view: &RunView<'_>,
    cells: &[CellVerdict<'_>],
    symptom: Symptom,
) -> BTreeMap<CaseIndex, Vec<Point>> {
    let mut by_case: BTreeMap<CaseIndex, Vec<&CellVerdict<'_>>> = BTreeMap::new();
    for cell in cells {
        by_case.entry(cell.cell.case).or_default().push(cell);
    }
    by_case
        .into_iter()
        .map(|(case, cells)| {
            let spread = view.start.plan.cases[case.usize()].kind.spread();
            let middle = middle(&cells, spread);
            let points = cells.iter().filter_map(|cell| point(view, cell, symptom, middle, spread));
            (case, points.collect::<Vec<Point>>())
        })
        .filter(|(_, points)| points.iter().any(|point| point.mark == Mark::Faulty))
        .collect()
}

/// The median that figures are compared with: the population's, else that of the planned cells.
fn middle(cells: &[&CellVerdict<'_>], spread: Spread) -> Option<f64> {
    let of_population = cells.iter().flat_map(|cell| &cell.limits).find_map(|limit| match limit.source {
        LimitSource::Population(population) => Some(population.median),
        LimitSource::Absolute | LimitSource::LineRate { .. } => None,
    });
    of_population.or_else(|| {
        let mut values: Vec<f64> = cells
            .iter()
            .filter(|cell| cell.cell.purpose == Purpose::Plan && cell.status != CellStatus::Invalid)
            .filter_map(|cell| Some(cell.figure?.value()))
            .collect();
        values.sort_by(f64::total_cmp);
        median(&values, spread)
    })
}

fn point(
    view: &RunView<'_>,
    cell: &CellVerdict<'_>,
    symptom: Symptom,
    middle: Option<f64>,
    spread: Spread,
) -> Option<Point> {
    let goodness = cell.figure.zip(middle).map(|(figure, middle)| match spread {
        Spread::Bandwidth => figure.value() / middle,
        Spread::Latency => middle / figure.value(),
    });
    let mark = match symptom {
        Symptom::Slow => slow_mark(cell, goodness, spread)?,
        Symptom::Corrupt | Symptom::Lost => other_mark(view, cell, symptom)?,
    };
    let counts = match cell.cell.purpose {
        Purpose::Plan => true,
        // A retest speaks through the final word of its planned cell.
        Purpose::Retest { .. } => false,
        // Sound when alone says nothing about the load under which the planned cells ran.
        Purpose::Repair { .. } => mark == Mark::Faulty || view.load() == Load::Alone,
    };
    counts.then_some(Point { cell: cell.cell, mark, goodness })
}

fn slow_mark(cell: &CellVerdict<'_>, goodness: Option<f64>, spread: Spread) -> Option<Mark> {
    match cell.status {
        CellStatus::Fail if cell.symptom == Some(Symptom::Slow) => Some(Mark::Faulty),
        CellStatus::Pass | CellStatus::NotJudged => {
            let sound = goodness? >= sound_from(cell, spread);
            Some(if sound { Mark::Sound } else { Mark::Grey })
        }
        CellStatus::Fail
        | CellStatus::Crash
        | CellStatus::Timeout
        | CellStatus::Skip
        | CellStatus::NotTested
        | CellStatus::Invalid => None,
    }
}

/// Goodness from which a cell is sound: half of the way, in ratios, from the median to the population's limit.
fn sound_from(cell: &CellVerdict<'_>, spread: Spread) -> f64 {
    let width = cell.limits.iter().find_map(|limit| match limit.source {
        LimitSource::Population(population) => Some(population.width),
        LimitSource::Absolute | LimitSource::LineRate { .. } => None,
    });
    match (width, spread) {
        (Some(width), Spread::Bandwidth) => (1.0 - width).sqrt(),
        (Some(width), Spread::Latency) => (1.0 + width).sqrt().recip(),
        (None, Spread::Bandwidth | Spread::Latency) => SOUND_WITHOUT_POPULATION,
    }
}

fn other_mark(view: &RunView<'_>, cell: &CellVerdict<'_>, symptom: Symptom) -> Option<Mark> {
    if cell.symptom == Some(symptom) {
        let node_known = symptom == Symptom::Lost && super::lost::node_of(view, cell).is_some();
        return (!node_known).then_some(Mark::Faulty);
    }
    cell.figure.map(|_| Mark::Sound)
}

/// The smallest set of parts that explains the faulty points of a case, over all rails.
pub(super) fn explain(points: &[Point]) -> Vec<Part> {
    let mut rails: BTreeMap<RailId, Vec<Entry>> = BTreeMap::new();
    for point in points {
        rails.entry(point.cell.rail).or_default().push(Entry {
            src: point.cell.src,
            dst: point.cell.dst,
            mark: point.mark,
        });
    }
    let mut found: BTreeMap<Local, BTreeSet<RailId>> = BTreeMap::new();
    for (rail, entries) in &rails {
        for part in smallest_cover(entries) {
            found.entry(part).or_default().insert(*rail);
        }
    }
    let mut parts: Vec<Part> =
        found.into_iter().flat_map(|(local, on)| join(local, &on, rails.len())).collect();
    parts.sort();
    parts
}

/// One part where it is found on every measured rail, else one for each rail.
fn join(local: Local, on: &BTreeSet<RailId>, measured: usize) -> Vec<Part> {
    if on.len() == measured && (measured > 1 || local == Local::Rail) {
        return vec![place(local, Rails::All)];
    }
    on.iter().map(|rail| place(local, Rails::One(*rail))).collect()
}

fn place(local: Local, rails: Rails) -> Part {
    let node = |node: NodeIndex, side| Part::Node { node, rails, side };
    let pair = |a, b, direction| Part::Pair { a, b, rails, direction };
    match (local, rails) {
        (Local::Rail, Rails::All) => Part::Everything,
        (Local::Rail, Rails::One(rail)) => Part::Rail(rail),
        (Local::Both(n), _) => node(n, Side::Both),
        (Local::Send(n), _) => node(n, Side::Send),
        (Local::Receive(n), _) => node(n, Side::Receive),
        // A loopback cell has one node at both ends.
        (Local::Pair(a, b) | Local::Directed(a, b), _) if a == b => node(a, Side::Both),
        (Local::Pair(a, b), _) => pair(a, b, Direction::Both),
        (Local::Directed(a, b), _) => pair(a, b, Direction::Forward),
    }
}

/// Goodness from which a cell is sound where no population says how far sound cells scatter.
const SOUND_WITHOUT_POPULATION: f64 = 0.9;
