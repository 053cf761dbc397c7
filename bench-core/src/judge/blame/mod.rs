//! Blame: the names of the parts that explain what is wrong.
//!
//! For each symptom and test case, every rail's matrix is explained by the smallest set of its parts
//! ([`cover`]), parts that recur on every rail are joined, and each part becomes one finding with the figures that
//! speak for it ([`sentence`]) and how sure it is ([`certainty`]). Losses whose node is known need no matrix ([`lost`]).

mod certainty;
mod cover;
mod lost;
mod matrix;
mod part;
mod sentence;

use std::collections::BTreeMap;

pub use part::{Direction, Part, Rails, Side};

use super::cells::{CellVerdict, Symptom};
use super::finding::{Certainty, Finding, FindingKind};
use super::view::RunView;
use crate::ids::{CaseIndex, CellId};
use crate::record::Severity;
use matrix::Point;

/// The findings that name parts.
pub(super) fn findings(view: &RunView<'_>, cells: &[CellVerdict<'_>]) -> Vec<Finding> {
    let mut findings = lost::by_node(view, cells);
    for symptom in [Symptom::Corrupt, Symptom::Slow, Symptom::Lost] {
        for (part, cases) in suspects(view, cells, symptom) {
            findings.push(finding(view, cells, symptom, part, &cases));
        }
    }
    findings
}

/// The parts that explain a symptom, each with the test cases and points in which it shows.
pub(super) fn suspects(
    view: &RunView<'_>,
    cells: &[CellVerdict<'_>],
    symptom: Symptom,
) -> BTreeMap<Part, Vec<(CaseIndex, Vec<Point>)>> {
    let mut parts: BTreeMap<Part, Vec<(CaseIndex, Vec<Point>)>> = BTreeMap::new();
    for (case, points) in matrix::points(view, cells, symptom) {
        for part in matrix::explain(&points) {
            parts.entry(part).or_default().push((case, points.clone()));
        }
    }
    parts
}

fn finding(
    view: &RunView<'_>,
    cells: &[CellVerdict<'_>],
    symptom: Symptom,
    part: Part,
    cases: &[(CaseIndex, Vec<Point>)],
) -> Finding {
    let name = |node| view.name(node).to_string();
    let certainty = certainty::of(view, cells, symptom, part, cases);
    let what = sentence::of(view, symptom, part, cases);
    let mut evidence = certainty::repeats(view, cells, part);
    if let Part::Pair { .. } = part {
        evidence.extend(sentence::ends(view, cells, part));
    }
    let explained: Vec<CellId> = cells
        .iter()
        .filter(|cell| {
            cell.symptom == Some(symptom) && part.covers(cell.cell.src, cell.cell.dst, cell.cell.rail)
        })
        .map(CellVerdict::id)
        .collect();
    Finding {
        kind: match symptom {
            Symptom::Corrupt => FindingKind::Corrupt,
            Symptom::Slow => FindingKind::Slow,
            Symptom::Lost => FindingKind::Lost,
        },
        severity: Severity::Error,
        certainty: Some(certainty),
        part: Some(part),
        text: format!("{}: {what}", part.title(&name)),
        evidence,
        remedy: remedy(certainty, part),
        cells: explained,
    }
}

fn remedy(certainty: Certainty, part: Part) -> Option<String> {
    let text = match (part, certainty) {
        (Part::Everything, _) => "check the plan's gate against what this fabric can reach",
        (Part::Rail(_), _) => "check the rail's switch, its uplinks and its settings",
        (Part::Node { .. }, Certainty::Bad) => {
            "check the node's adapter, cable and switch port, then sweep it again"
        }
        (Part::Node { .. }, Certainty::Suspected) => {
            "measure the node with two other partners before taking it out of service"
        }
        (Part::Pair { .. }, _) => "measure both ends with a third node, and check the paths between them",
    };
    Some(text.to_owned())
}
