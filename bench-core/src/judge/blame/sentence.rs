//! What is said of a part: figures against its rail's median, with how many peers, and what about its other rails.

use std::collections::BTreeSet;

use super::cover::Mark;
use super::matrix::Point;
use super::part::{Part, Rails};
use crate::ids::{CaseIndex, NodeIndex, RailId};
use crate::judge::cells::{CellVerdict, Symptom};
use crate::judge::population::median;
use crate::judge::verdict::counted;
use crate::judge::view::RunView;
use crate::plan::Spread;
use crate::record::Evidence;

/// The sentence about a part, without its name.
pub(super) fn of(
    view: &RunView<'_>,
    symptom: Symptom,
    part: Part,
    cases: &[(CaseIndex, Vec<Point>)],
) -> String {
    let several = view.start.plan.cases.len() > 1;
    let mut clauses: Vec<String> = cases
        .iter()
        .map(|(case, points)| {
            let case = &view.start.plan.cases[case.usize()];
            let clause = match symptom {
                Symptom::Slow => slow(part, points, case.kind.spread()),
                Symptom::Corrupt => format!("wrong data in {}", share(part, points)),
                Symptom::Lost => format!("no measurement in {}", share(part, points)),
            };
            if several { format!("{} {clause}", case.title()) } else { clause }
        })
        .collect();
    clauses.extend(rest(view, part, cases));
    clauses.join("; ")
}

/// What both ends of a pair know of their path, a line each.
pub(super) fn ends(view: &RunView<'_>, cells: &[CellVerdict<'_>], part: Part) -> Vec<String> {
    let Some(cell) = cells
        .iter()
        .find(|cell| cell.symptom.is_some() && part.covers(cell.cell.src, cell.cell.dst, cell.cell.rail))
    else {
        return Vec::new();
    };
    [(cell.cell.src, cell.source), (cell.cell.dst, cell.destination)]
        .into_iter()
        .filter_map(|(node, seen)| Some(format!("{}: {}", view.name(node), evidence_line(&seen?.evidence))))
        .collect()
}

fn evidence_line(evidence: &Evidence) -> String {
    let named = [("device", &evidence.device), ("local", &evidence.local), ("peer", &evidence.peer)];
    let known = named.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
    let facts = evidence.facts.iter().map(|(name, value)| format!("{name} {value}"));
    known.chain(facts).collect::<Vec<_>>().join(", ")
}

fn inside(part: Part, points: &[Point]) -> impl Iterator<Item = &Point> {
    points.iter().filter(move |point| part.covers(point.cell.src, point.cell.dst, point.cell.rail))
}

fn share(part: Part, points: &[Point]) -> String {
    let faulty = inside(part, points).filter(|point| point.mark == Mark::Faulty).count();
    format!("{faulty} of {}", counted(inside(part, points).count(), "cell"))
}

fn slow(part: Part, points: &[Point], spread: Spread) -> String {
    let ratio = middle(inside(part, points).filter(|point| point.mark == Mark::Faulty));
    let (whose, reference) = match part {
        Part::Everything => return format!("{} miss their limit", share(part, points)),
        Part::Rail(_) => ("the other rails'", 1.0),
        Part::Node { rails: Rails::All, .. } | Part::Pair { rails: Rails::All, .. } => {
            ("the rails'", sound_middle(part, points))
        }
        Part::Node { .. } | Part::Pair { .. } => ("the rail's", sound_middle(part, points)),
    };
    let ratio = ratio.unwrap_or(0.0) / reference;
    let figure = match spread {
        Spread::Bandwidth => format!("{:.0}% of {whose} median", ratio * 100.0),
        Spread::Latency => format!("{:.1} times {whose} median p50", ratio.recip()),
    };
    match part {
        Part::Everything | Part::Rail(_) => format!("{figure} in {}", share(part, points)),
        Part::Node { node, .. } => format!("{figure} {}", peers(part, points, node)),
        Part::Pair { .. } => figure,
    }
}

/// The median goodness, which grows with soundness for both kinds like a rate.
fn middle<'p>(points: impl Iterator<Item = &'p Point>) -> Option<f64> {
    let mut values: Vec<f64> = points.filter_map(|point| point.goodness).collect();
    values.sort_by(f64::total_cmp);
    median(&values, Spread::Bandwidth)
}

/// The median of the sound cells outside the part, on its rails.
fn sound_middle(part: Part, points: &[Point]) -> f64 {
    let rails: BTreeSet<RailId> = inside(part, points).map(|point| point.cell.rail).collect();
    let sound = points.iter().filter(|point| {
        point.mark == Mark::Sound
            && rails.contains(&point.cell.rail)
            && !part.covers(point.cell.src, point.cell.dst, point.cell.rail)
    });
    middle(sound).unwrap_or(1.0)
}

fn peers(part: Part, points: &[Point], node: NodeIndex) -> String {
    let partner = |point: &Point| {
        if point.cell.src == node { point.cell.dst } else { point.cell.src }
    };
    let all: BTreeSet<NodeIndex> = inside(part, points).map(partner).collect();
    let sound: BTreeSet<NodeIndex> =
        inside(part, points).filter(|point| point.mark == Mark::Faulty).map(partner).collect();
    if sound.len() == all.len() {
        format!("with all {}", counted(all.len(), "peer"))
    } else {
        format!("with {} of {}", sound.len(), counted(all.len(), "peer"))
    }
}

/// What a reader asks next: is it only this rail, and which end of a pair is it?
fn rest(view: &RunView<'_>, part: Part, cases: &[(CaseIndex, Vec<Point>)]) -> Option<String> {
    match part {
        Part::Everything | Part::Rail(_) => None,
        Part::Node { rails: Rails::All, .. } => None,
        Part::Node { node, rails: Rails::One(rail), .. } => other_rails(cases, node, rail),
        Part::Pair { a, b, .. } => {
            let others = |node: NodeIndex| {
                cases.iter().flat_map(|(_, points)| points).any(|point| {
                    let ends = [point.cell.src, point.cell.dst];
                    point.mark == Mark::Sound
                        && ends.contains(&node)
                        && ends.iter().any(|n| *n != a && *n != b)
                })
            };
            Some(match (others(a), others(b)) {
                (true, true) => "both ends are normal with others".to_owned(),
                (true, false) => {
                    format!("{} is normal with others, {} met nobody else", view.name(a), view.name(b))
                }
                (false, true) => {
                    format!("{} is normal with others, {} met nobody else", view.name(b), view.name(a))
                }
                (false, false) => {
                    "which end is at fault cannot be told, because neither met a third node that is sound"
                        .to_owned()
                }
            })
        }
    }
}

fn other_rails(cases: &[(CaseIndex, Vec<Point>)], node: NodeIndex, rail: RailId) -> Option<String> {
    let mut measured: BTreeSet<RailId> = BTreeSet::new();
    let mut faulty: BTreeSet<RailId> = BTreeSet::new();
    for point in cases.iter().flat_map(|(_, points)| points) {
        if point.cell.rail != rail && [point.cell.src, point.cell.dst].contains(&node) {
            measured.insert(point.cell.rail);
            if point.mark == Mark::Faulty {
                faulty.insert(point.cell.rail);
            }
        }
    }
    let list: Vec<String> = faulty.iter().map(|rail| rail.0.to_string()).collect();
    match (measured.len(), list.len()) {
        (0, _) => None,
        (1, 0) => Some("its other rail is normal".to_owned()),
        (_, 0) => Some("its other rails are normal".to_owned()),
        (_, _) => Some(format!("it has slow cells on rail {} too", list.join(", "))),
    }
}
