//! The word of each cell, with its reason.

use std::collections::BTreeMap;

use super::concurrency::{self, Concurrency, NotCounted};
use super::figure::{self, Doubt, Figure};
use super::gate::{self, Limit, LimitOutcome, Norms};
use super::population::{NoPopulation, Population};
use super::status::CellStatus;
use super::view::RunView;
use crate::cell::{Cell, End};
use crate::ids::{CaseIndex, CellId, RailId, RoundId};
use crate::journal::{AttemptKey, Standing};
use crate::record::{Failure, FailureKind, LossWord, NodePresence, Observation, Outcome, RunEnd};
use crate::units::BitsPerSecond;

/// A cell with its word and what the word rests on. Borrows the records.
#[derive(Clone, Debug, PartialEq)]
pub struct CellVerdict<'a> {
    /// The cell.
    pub cell: Cell,
    /// The word.
    pub status: CellStatus,
    /// Why this word, in one clause.
    pub reason: String,
    /// What it reached; also shown where it cannot be used.
    pub figure: Option<Figure<'a>>,
    /// Whether it ran at the same time as the others of its round.
    pub concurrency: Concurrency,
    /// What the figure was held against.
    pub limits: Vec<Limit>,
    /// What kind of fault a failing cell has.
    pub symptom: Option<Symptom>,
    /// The attempt that counts, or the highest where none is complete.
    pub attempt: Option<AttemptKey>,
    /// The round of that attempt.
    pub round: Option<RoundId>,
    /// Attempts that do not count.
    pub superseded: Vec<AttemptKey>,
    /// The source's observation of the attempt.
    pub source: Option<&'a Observation>,
    /// The destination's observation of the attempt.
    pub destination: Option<&'a Observation>,
    /// Different observations under one key, where there are any.
    pub conflicts: Vec<&'a Observation>,
}

/// What kind of fault a cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symptom {
    /// A limit is missed.
    Slow,
    /// The data is wrong.
    Corrupt,
    /// It gave no measurement because something died or hung.
    Lost,
}

/// The populations of a run by test case.
type Populations = BTreeMap<CaseIndex, Result<Population, NoPopulation>>;

/// Every cell with its word, planned ones first.
pub(super) fn judge<'a>(view: &'a RunView<'_>) -> Vec<CellVerdict<'a>> {
    let concurrency = concurrency::assess(view);
    let mut verdicts: Vec<CellVerdict<'a>> = view
        .cells()
        .map(|cell| {
            let concurrency = concurrency.get(&cell.id).copied().unwrap_or(Concurrency::Alone);
            measured(view, cell, concurrency)
        })
        .collect();
    let populations = populations(view, &verdicts[..view.planned.len()]);
    for verdict in &mut verdicts {
        hold(view, verdict, &populations);
    }
    verdicts
}

/// The cell before its figure is held against limits: `not_judged` where there is a figure to judge.
fn measured<'a>(view: &'a RunView<'_>, cell: &Cell, concurrency: Concurrency) -> CellVerdict<'a> {
    let mut verdict = CellVerdict {
        cell: *cell,
        status: CellStatus::NotTested,
        reason: String::new(),
        figure: None,
        concurrency,
        limits: Vec::new(),
        symptom: None,
        attempt: None,
        round: None,
        superseded: Vec::new(),
        source: None,
        destination: None,
        conflicts: Vec::new(),
    };
    let merged = view.merged.cell(view.start.run, cell.id);
    let key = match merged.map(|merged| merged.standing()) {
        None => {
            lost(view, &mut verdict);
            return verdict;
        }
        Some(Standing::Conflict { key, end }) => {
            verdict.status = CellStatus::Invalid;
            verdict.reason =
                format!("conflict: {} is on record twice with different contents", view.name(cell.node(end)));
            key
        }
        Some(Standing::Complete { key, source, destination }) => {
            (verdict.source, verdict.destination) = (Some(source), Some(destination));
            read(view, &mut verdict, source, destination);
            key
        }
        Some(Standing::Incomplete { key, source, destination }) => {
            (verdict.source, verdict.destination) = (source, destination);
            lost(view, &mut verdict);
            key
        }
    };
    verdict.attempt = Some(key);
    verdict.round = verdict.source.or(verdict.destination).map(|seen| seen.round);
    if let Some(merged) = merged {
        verdict.superseded = merged.superseded(key).collect();
        verdict.conflicts = merged.conflicts().flat_map(|(_, _, seen)| seen.iter().copied()).collect();
    }
    verdict
}

fn read<'a>(
    view: &RunView<'_>,
    verdict: &mut CellVerdict<'a>,
    source: &'a Observation,
    destination: &'a Observation,
) {
    let reading = figure::read(view.case(&verdict.cell), source, destination, verdict.concurrency);
    verdict.figure = reading.figure;
    match reading.doubt {
        None => verdict.status = CellStatus::NotJudged,
        Some(doubt) => {
            verdict.status = match doubt {
                Doubt::Corrupt { .. } => CellStatus::Fail,
                Doubt::EndsDisagree { .. } | Doubt::NotConcurrent { .. } | Doubt::NoFigure(_) => {
                    CellStatus::Invalid
                }
            };
            verdict.symptom = (verdict.status == CellStatus::Fail).then_some(Symptom::Corrupt);
            verdict.reason = doubt_text(&doubt);
        }
    }
}

fn doubt_text(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Corrupt { offset, expected, got } => {
            format!("corrupt: byte {offset} was sent as {expected:#04x} and arrived as {got:#04x}")
        }
        Doubt::EndsDisagree { source, destination, unit, allowed } => format!(
            "ends disagree: the source counted {source} {unit}, the destination {destination}, {allowed} may differ"
        ),
        Doubt::NotConcurrent { reason: NotCounted::ClockError, clock_error_ns, .. } => format!(
            "not counted as concurrent: the clock error of {} us is above 5% of the window",
            clock_error_ns / 1_000
        ),
        Doubt::NotConcurrent { reason: NotCounted::Overlap, overlap, .. } => format!(
            "not counted as concurrent: the round's common window covers {:.0}% of the cell's, 80% are needed",
            overlap * 100.0
        ),
        Doubt::NoFigure(text) => (*text).to_owned(),
    }
}

/// The word of a cell without a complete attempt: the coordinator's loss, else the failure that an end reported, else
/// that nobody ever began it.
fn lost(view: &RunView<'_>, verdict: &mut CellVerdict<'_>) {
    let failures = failures(view, verdict);
    if let Some((_, failure)) = failures.iter().find(|(_, f)| f.kind == FailureKind::Corrupt) {
        verdict.status = CellStatus::Fail;
        verdict.symptom = Some(Symptom::Corrupt);
        verdict.reason = format!("corrupt: {}", failure.detail);
        return;
    }
    let said: Vec<String> = failures.iter().map(|(node, failure)| said(node, failure)).collect();
    let loss = view.losses.get(&verdict.cell.id).and_then(|losses| losses.last());
    if let Some(placed) = loss {
        verdict.status = match placed.loss.word {
            LossWord::Crash => CellStatus::Crash,
            LossWord::Timeout => CellStatus::Timeout,
            LossWord::Skip => CellStatus::Skip,
            LossWord::NotTested => CellStatus::NotTested,
        };
        let reason = std::iter::once(placed.loss.reason.clone());
        verdict.reason = reason.chain(said).collect::<Vec<_>>().join("; ");
    } else if let Some((_, failure)) = failures.first() {
        verdict.status = match failure.kind {
            FailureKind::Crash => CellStatus::Crash,
            FailureKind::Timeout | FailureKind::Late => CellStatus::Timeout,
            FailureKind::Unsupported => CellStatus::Skip,
            FailureKind::Cancelled => CellStatus::NotTested,
            FailureKind::Corrupt => CellStatus::Fail,
        };
        verdict.reason = said.join("; ");
    } else if verdict.source.is_some() || verdict.destination.is_some() {
        let silent = if verdict.source.is_some() { End::Destination } else { End::Source };
        verdict.status = CellStatus::Invalid;
        verdict.reason = format!("no observation of {}", view.name(verdict.cell.node(silent)));
    } else {
        verdict.reason = never_begun(view, &verdict.cell);
    }
    if matches!(verdict.status, CellStatus::Crash | CellStatus::Timeout) {
        verdict.symptom = Some(Symptom::Lost);
    }
}

/// What the ends say of their failure, the one that says most about the cause first.
fn failures<'a>(view: &RunView<'_>, verdict: &CellVerdict<'a>) -> Vec<(String, &'a Failure)> {
    let ends = [(End::Source, verdict.source), (End::Destination, verdict.destination)];
    let mut failures: Vec<(String, &Failure)> = ends
        .into_iter()
        .filter_map(|(end, seen)| match &seen?.outcome {
            Outcome::Measured(_) => None,
            Outcome::Failed(failure) => Some((view.name(verdict.cell.node(end)).to_string(), failure)),
        })
        .collect();
    failures.sort_by_key(|(_, failure)| match failure.kind {
        FailureKind::Corrupt => 0,
        // An end that does not begin is what the other one sees as a peer that went away.
        FailureKind::Late => 1,
        FailureKind::Crash => 2,
        FailureKind::Unsupported => 3,
        FailureKind::Timeout => 4,
        FailureKind::Cancelled => 5,
    });
    failures
}

/// What an end says of its failure, with its name.
pub(super) fn said(node: &str, failure: &Failure) -> String {
    let phase = format!("{:?}", failure.phase).to_lowercase();
    match &failure.remedy {
        None => format!("{node} in {phase}: {}", failure.detail),
        Some(remedy) => format!("{node} in {phase}: {} ({remedy})", failure.detail),
    }
}

fn never_begun(view: &RunView<'_>, cell: &Cell) -> String {
    let absent =
        [cell.src, cell.dst].into_iter().find_map(|node| match view.start.nodes.get(node.usize())? {
            NodePresence::Present(_) => None,
            NodePresence::Absent { reason } => Some(format!("{} is absent: {reason}", view.name(node))),
        });
    absent.unwrap_or_else(|| match view.end {
        None => "the records stop before it was begun".to_owned(),
        Some(RunEnd::Completed) => "no record says what became of it".to_owned(),
        Some(RunEnd::Cancelled) => "the run was cancelled before".to_owned(),
        Some(RunEnd::Aborted { reason }) => format!("the run was aborted before: {reason}"),
    })
}

fn populations(view: &RunView<'_>, planned: &[CellVerdict<'_>]) -> Populations {
    let Some(gate) = view.start.plan.gates.population else {
        return Populations::new();
    };
    let mut values: BTreeMap<CaseIndex, Vec<f64>> = BTreeMap::new();
    for verdict in planned.iter().filter(|verdict| verdict.status == CellStatus::NotJudged) {
        let value = verdict.figure.map(|figure| figure.value());
        values.entry(verdict.cell.case).or_default().extend(value);
    }
    values
        .into_iter()
        .map(|(case, values)| {
            let spread = view.start.plan.cases[case.usize()].kind.spread();
            (case, Population::new(&values, spread, &gate))
        })
        .collect()
}

/// Holds the figure of a cell that is so far `not_judged` against the limits.
fn hold(view: &RunView<'_>, verdict: &mut CellVerdict<'_>, populations: &Populations) {
    let (CellStatus::NotJudged, Some(figure)) = (verdict.status, verdict.figure) else {
        return;
    };
    let norms = Norms {
        gates: &view.start.plan.gates,
        line_rate: line_rate(view, &verdict.cell),
        population: populations.get(&verdict.cell.case).copied(),
    };
    let assessment = gate::assess(view.case(&verdict.cell).kind.spread(), figure.value(), &norms);
    let missed = assessment.limits.iter().find(|limit| limit.outcome == LimitOutcome::Missed);
    (verdict.status, verdict.reason) = match (missed, assessment.limits.last(), assessment.unmet.first()) {
        (Some(missed), _, _) => (CellStatus::Fail, missed.to_string()),
        (None, _, Some(unmet)) => (CellStatus::NotJudged, unmet.clone()),
        (None, Some(met), None) => (CellStatus::Pass, met.to_string()),
        (None, None, None) => (
            CellStatus::NotJudged,
            assessment
                .without
                .first()
                .cloned()
                .unwrap_or_else(|| "the plan has no gate for this test".to_owned()),
        ),
    };
    verdict.symptom = (verdict.status == CellStatus::Fail).then_some(Symptom::Slow);
    verdict.limits = assessment.limits;
}

/// The slower end's line rate; `None` unless both are known.
fn line_rate(view: &RunView<'_>, cell: &Cell) -> Option<BitsPerSecond> {
    let of = |node, rail: RailId| view.endpoint(node, rail)?.line_rate_bps;
    let slower = of(cell.src, cell.rail)?.min(of(cell.dst, cell.rail)?);
    Some(BitsPerSecond(slower as f64))
}

impl CellVerdict<'_> {
    /// The number of the cell.
    pub fn id(&self) -> CellId {
        self.cell.id
    }
}
