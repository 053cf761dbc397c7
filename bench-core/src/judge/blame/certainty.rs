//! How sure the name of a part is.
//!
//! `bad` takes two different partners that are sound with others: for a node, two of them that found each blamed side
//! faulty again; for a pair, that its retest failed again while both ends are sound with two others; for a rail, that
//! two pairs without a common node failed again. Anything less is `suspected`.

use std::collections::{BTreeMap, BTreeSet};

use super::cover::Mark;
use super::matrix::Point;
use super::part::{Part, Side};
use crate::cell::{End, Purpose};
use crate::ids::{CaseIndex, NodeIndex};
use crate::judge::cells::{CellVerdict, Symptom};
use crate::judge::finding::Certainty;
use crate::judge::status::CellStatus;
use crate::judge::view::RunView;

/// How sure it is that the part is at fault.
pub(super) fn of(
    view: &RunView<'_>,
    cells: &[CellVerdict<'_>],
    symptom: Symptom,
    part: Part,
    cases: &[(CaseIndex, Vec<Point>)],
) -> Certainty {
    let again = Again::new(view, cells, symptom, part);
    let sure = match part {
        Part::Everything | Part::Rail(_) => again.two_apart(),
        Part::Node { node, side, .. } => match side {
            Side::Both => again.confirms(node, End::Source) && again.confirms(node, End::Destination),
            Side::Send => again.confirms(node, End::Source),
            Side::Receive => again.confirms(node, End::Destination),
        },
        Part::Pair { a, b, .. } => again.fails() && proven(cases, part, a) && proven(cases, part, b),
    };
    if sure { Certainty::Bad } else { Certainty::Suspected }
}

/// What was measured again in a part: a line for each pair and case, with every figure.
pub(super) fn repeats(view: &RunView<'_>, cells: &[CellVerdict<'_>], part: Part) -> Vec<String> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for cell in &cells[view.planned.len()..] {
        if !part.covers(cell.cell.src, cell.cell.dst, cell.cell.rail) {
            continue;
        }
        let how = match cell.cell.purpose {
            Purpose::Plan | Purpose::Retest { .. } => "measured again",
            Purpose::Repair { .. } => "with a proven partner",
        };
        let figure = cell.figure.map_or_else(|| cell.reason.clone(), |figure| figure.text());
        let head = format!("{how}: {}, {}", view.path(&cell.cell), view.case(&cell.cell).title());
        let figures = lines.entry(head.clone()).or_default();
        if figures.is_empty() {
            order.push(head);
        }
        figures.push(format!("{figure} {}", cell.status));
    }
    order.into_iter().map(|head| format!("{head}: {}", lines[&head].join(", "))).collect()
}

/// The cells of a part that were measured again.
struct Again<'a, 'b> {
    failed: Vec<&'a CellVerdict<'b>>,
    passed: Vec<&'a CellVerdict<'b>>,
    sound_partners: BTreeSet<NodeIndex>,
}

impl<'a, 'b> Again<'a, 'b> {
    fn new(view: &RunView<'_>, cells: &'a [CellVerdict<'b>], symptom: Symptom, part: Part) -> Self {
        let (planned, added) = cells.split_at(view.planned.len());
        let inside = |cell: &&CellVerdict<'_>| part.covers(cell.cell.src, cell.cell.dst, cell.cell.rail);
        let sound_partners = planned
            .iter()
            .filter(|cell| !inside(cell) && cell.status == CellStatus::Pass)
            .flat_map(|cell| [cell.cell.src, cell.cell.dst])
            .collect();
        Self {
            failed: added.iter().filter(inside).filter(|cell| cell.symptom == Some(symptom)).collect(),
            passed: added.iter().filter(inside).filter(|cell| cell.status == CellStatus::Pass).collect(),
            sound_partners,
        }
    }

    /// Whether something was measured again and all of it failed.
    fn fails(&self) -> bool {
        !self.failed.is_empty() && self.passed.is_empty()
    }

    /// Whether two different sound partners found this side of the node faulty and none found it sound.
    fn confirms(&self, node: NodeIndex, side: End) -> bool {
        let on_side = |cell: &&&CellVerdict<'_>| {
            cell.cell.node(side) == node && matches!(cell.cell.purpose, Purpose::Repair { .. })
        };
        let partners: BTreeSet<NodeIndex> = self
            .failed
            .iter()
            .filter(on_side)
            .map(|cell| cell.cell.node(side.other()))
            .filter(|partner| self.sound_partners.contains(partner))
            .collect();
        partners.len() >= PROOFS && self.passed.iter().find(on_side).is_none()
    }

    /// Whether two pairs without a common node failed again and none passed.
    fn two_apart(&self) -> bool {
        let apart = |one: &CellVerdict<'_>, other: &CellVerdict<'_>| {
            let ends = [one.cell.src, one.cell.dst];
            !ends.contains(&other.cell.src) && !ends.contains(&other.cell.dst)
        };
        self.fails() && self.failed.iter().any(|one| self.failed.iter().any(|other| apart(one, other)))
    }
}

/// Whether a node of a pair is sound with two others in every case, on the rails of the pair.
fn proven(cases: &[(CaseIndex, Vec<Point>)], part: Part, node: NodeIndex) -> bool {
    let Part::Pair { a, b, rails, .. } = part else {
        return false;
    };
    cases.iter().all(|(_, points)| {
        let partners: BTreeSet<NodeIndex> = points
            .iter()
            .filter(|point| point.mark == Mark::Sound && rails.contain(point.cell.rail))
            .filter(|point| point.cell.src == node || point.cell.dst == node)
            .flat_map(|point| [point.cell.src, point.cell.dst])
            .filter(|other| *other != a && *other != b)
            .collect();
        partners.len() >= PROOFS
    })
}

/// Different proven partners that it takes before the word `bad` (DESIGN section 8).
const PROOFS: usize = 2;
