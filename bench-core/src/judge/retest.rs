//! Which cells to measure again before anything is named, and how to pack them into rounds.

use std::collections::{BTreeMap, BTreeSet};

use super::Judgement;
use super::blame::{self, Direction, Part, Rails, Side};
use super::cells::{CellVerdict, Symptom};
use super::figure::Figure;
use super::status::CellStatus;
use super::view::RunView;
use crate::cell::{Cell, Purpose};
use crate::ids::{CaseIndex, CellId, NodeIndex, RailId};
use crate::plan::{Pattern, Retest};

/// The cells to measure again, numbered from `next` on: none if the plan wants none, or once there are some.
///
/// * Each suspect part is measured with two different partners that are sound on that rail, so that blame can be
///   decided: at most 4 cells a part, 32 in all.
/// * Each planned cell that misses a limit is measured again: twice if that fits under 64 added cells, else once, the
///   worst first.
///
/// Cells that were lost are not measured again here; that is the coordinator's retry.
pub fn retests(view: &RunView<'_>, judgement: &Judgement<'_>, next: CellId) -> Vec<Cell> {
    match view.start.plan.retest {
        Retest::Never => return Vec::new(),
        Retest::Suspects if !view.added.is_empty() => return Vec::new(),
        Retest::Suspects => {}
    }
    let failing = worst_first(&judgement.cells);
    let mut added = repairs(view, &judgement.cells, &failing);
    added.truncate(MAX_ADDED / 2);
    let room = MAX_ADDED - added.len();
    let times = if failing.len() * 2 <= room { 2 } else { 1 };
    let again = failing.iter().take(room / times).flat_map(|verdict| {
        let retest = Cell { purpose: Purpose::Retest { of: verdict.id() }, ..verdict.cell };
        std::iter::repeat_n(retest, times)
    });
    let mut cells: Vec<Cell> = again.collect();
    cells.append(&mut added);
    for (cell, id) in cells.iter_mut().zip(next.0..) {
        cell.id = CellId(id);
    }
    cells
}

/// Packs cells into rounds, in order, so that no node is in two cells of a round.
pub fn pack(cells: Vec<Cell>) -> Vec<Vec<Cell>> {
    let mut rounds: Vec<(BTreeSet<NodeIndex>, Vec<Cell>)> = Vec::new();
    for cell in cells {
        let free = rounds.iter_mut().find(|(busy, _)| !busy.contains(&cell.src) && !busy.contains(&cell.dst));
        match free {
            Some((busy, round)) => {
                busy.extend([cell.src, cell.dst]);
                round.push(cell);
            }
            None => rounds.push((BTreeSet::from([cell.src, cell.dst]), vec![cell])),
        }
    }
    rounds.into_iter().map(|(_, round)| round).collect()
}

/// Planned cells that miss a limit, the one that is farthest from it first.
fn worst_first<'v, 'a>(cells: &'v [CellVerdict<'a>]) -> Vec<&'v CellVerdict<'a>> {
    let mut failing: Vec<&CellVerdict<'_>> = cells
        .iter()
        .filter(|cell| cell.symptom == Some(Symptom::Slow) && cell.cell.purpose == Purpose::Plan)
        .collect();
    failing.sort_by(|a, b| badness(b).total_cmp(&badness(a)).then(a.id().cmp(&b.id())));
    failing
}

/// How many times worse than its limit a cell is.
fn badness(verdict: &CellVerdict<'_>) -> f64 {
    let worst = verdict.limits.iter().map(|limit| match verdict.figure {
        Some(Figure::Bandwidth(_)) => limit.limit / limit.value.max(f64::MIN_POSITIVE),
        Some(Figure::Latency(_)) | None => limit.value / limit.limit,
    });
    worst.fold(0.0, f64::max)
}

/// A side of a node on a rail that should meet other partners.
struct Suspect {
    node: NodeIndex,
    rail: RailId,
    side: Side,
    case: CaseIndex,
    of: CellId,
}

fn repairs(view: &RunView<'_>, cells: &[CellVerdict<'_>], failing: &[&CellVerdict<'_>]) -> Vec<Cell> {
    // A loopback cell has no partner, and one with a partner is not comparable with it.
    if view.start.plan.pattern == Pattern::Loopback {
        return Vec::new();
    }
    let parts = blame::suspects(view, cells, Symptom::Slow);
    let mut ranked: Vec<(usize, Part)> = parts
        .keys()
        .filter_map(|part| {
            let covers = |v: &&&CellVerdict<'_>| part.covers(v.cell.src, v.cell.dst, v.cell.rail);
            Some((failing.iter().position(|verdict| covers(&verdict))?, *part))
        })
        .collect();
    ranked.sort();
    let sound = Sound::new(cells, parts.keys());
    ranked
        .into_iter()
        .flat_map(|(worst, part)| {
            let suspects = suspects(part, failing[worst], failing);
            let cells = suspects
                .iter()
                .enumerate()
                .flat_map(|(i, suspect)| sound.partners(suspect, i, suspects.len()));
            cells.take(MAX_REPAIRS_PER_PART).collect::<Vec<Cell>>()
        })
        .collect()
}

/// The sides of a part that should meet other partners. A rail as a whole has no sound partner.
fn suspects(part: Part, worst: &CellVerdict<'_>, failing: &[&CellVerdict<'_>]) -> Vec<Suspect> {
    let suspect = |node, rail, side| Suspect { node, rail, side, case: worst.cell.case, of: worst.id() };
    match part {
        Part::Everything | Part::Rail(_) => Vec::new(),
        Part::Node { node, rails, side } => {
            let mut on: Vec<RailId> = failing
                .iter()
                .map(|verdict| &verdict.cell)
                .filter(|cell| rails.contain(cell.rail) && part.covers(cell.src, cell.dst, cell.rail))
                .map(|cell| cell.rail)
                .collect();
            let mut seen = BTreeSet::new();
            on.retain(|rail| seen.insert(*rail));
            on.truncate(match rails {
                Rails::All => PARTNERS,
                Rails::One(_) => 1,
            });
            on.into_iter().map(|rail| suspect(node, rail, side)).collect()
        }
        Part::Pair { a, b, direction, .. } => {
            let rail = worst.cell.rail;
            match direction {
                Direction::Forward => vec![suspect(a, rail, Side::Send), suspect(b, rail, Side::Receive)],
                Direction::Both => vec![
                    suspect(worst.cell.src, rail, Side::Send),
                    suspect(worst.cell.dst, rail, Side::Receive),
                ],
            }
        }
    }
}

/// Which nodes have proven sound, by rail: they pass there and no part that is named covers them as a node.
struct Sound {
    /// Passing cells of each node by rail.
    passes: BTreeMap<(RailId, NodeIndex), usize>,
}

impl Sound {
    fn new<'p>(cells: &[CellVerdict<'_>], parts: impl Iterator<Item = &'p Part>) -> Self {
        let mut passes: BTreeMap<(RailId, NodeIndex), usize> = BTreeMap::new();
        for verdict in cells.iter().filter(|verdict| verdict.status == CellStatus::Pass) {
            for node in [verdict.cell.src, verdict.cell.dst] {
                *passes.entry((verdict.cell.rail, node)).or_insert(0) += 1;
            }
        }
        for part in parts {
            match *part {
                Part::Everything => passes.clear(),
                Part::Rail(rail) => passes.retain(|(on, _), _| *on != rail),
                Part::Node { node, rails, .. } => {
                    passes.retain(|(on, of), _| *of != node || !rails.contain(*on))
                }
                Part::Pair { a, b, rails, .. } => {
                    passes.retain(|(on, of), _| (*of != a && *of != b) || !rails.contain(*on));
                }
            }
        }
        Self { passes }
    }

    /// The repairs of a suspect: with two partners, or with one of them where the part has several suspects on
    /// different rails, so that the rails meet different ones.
    fn partners(&self, suspect: &Suspect, position: usize, suspects: usize) -> Vec<Cell> {
        let mut partners: Vec<(usize, NodeIndex)> = self
            .passes
            .iter()
            .filter(|((rail, node), _)| *rail == suspect.rail && *node != suspect.node)
            .map(|((_, node), passes)| (*passes, *node))
            .collect();
        partners.sort_by_key(|(passes, node)| (std::cmp::Reverse(*passes), *node));
        let spread = suspects > 1 && suspect.side == Side::Both;
        let (skip, take) = if spread { (position, 1) } else { (0, PARTNERS) };
        partners.into_iter().skip(skip).take(take).flat_map(|(_, partner)| suspect.with(partner)).collect()
    }
}

impl Suspect {
    fn with(&self, partner: NodeIndex) -> Vec<Cell> {
        let cell = |src, dst| Cell {
            id: self.of,
            case: self.case,
            rail: self.rail,
            src,
            dst,
            purpose: Purpose::Repair { of: self.of },
        };
        match self.side {
            Side::Both => vec![cell(self.node, partner), cell(partner, self.node)],
            Side::Send => vec![cell(self.node, partner)],
            Side::Receive => vec![cell(partner, self.node)],
        }
    }
}

/// Most cells that one suspect part is measured with: two partners, both directions.
const MAX_REPAIRS_PER_PART: usize = 4;
/// Most cells that a run measures again: at 2 s a cell and one cell a round, two minutes and a half.
const MAX_ADDED: usize = 64;
/// Different proven partners for each suspect (DESIGN section 8).
const PARTNERS: usize = 2;
