//! Judging: from the records of a run to words, findings and the run's verdict.
//!
//! A pure function of the records, so a run can be judged again from what a client kept of it.
//!
//! ```text
//!  records ──view──▶ figure of each cell ──gates──▶ word ──retests──▶ final word ──blame──▶ findings ──▶ verdict
//! ```
//! [`retests`] gives the cells that should be measured again before the final word; packing them into rounds is
//! [`pack`], and running them is the coordinator's.

mod blame;
mod cells;
mod concurrency;
mod figure;
mod finding;
mod gate;
mod population;
mod repeated;
mod retest;
mod settle;
mod source;
mod status;
mod verdict;
mod view;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use blame::{Direction, Part, Rails, Side};
pub use cells::{CellVerdict, Symptom};
pub use concurrency::{Concurrency, NotCounted};
pub use figure::{BandwidthFigure, Figure, LatencyFigure};
pub use finding::{Certainty, Finding, FindingKind};
pub use gate::{Limit, LimitOutcome, LimitSource};
pub(crate) use population::median;
pub use population::{NoPopulation, Population};
pub use retest::{pack, retests};
pub use source::{CellSource, Coverage, NoCells};
pub use status::{CellStatus, RunVerdict};
pub use view::{JudgeError, Load, PlacedLoss, RunView};

/// The judgement of a run. Borrows the records.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<'a> {
    /// The word of the run.
    pub verdict: RunVerdict,
    /// Why this word: for every word, what was and was not measured.
    pub reasons: Vec<String>,
    /// Every cell with its final word: planned ones in order, then added ones.
    pub cells: Vec<CellVerdict<'a>>,
    /// What a reader should know, most serious first.
    pub findings: Vec<Finding>,
}

/// Judges a run, or as much of it as the records hold.
pub fn judge<'a>(view: &'a RunView<'_>) -> Judgement<'a> {
    let mut cells = cells::judge(view);
    let mut findings = settle::settle(view, &mut cells);
    findings.extend(blame::findings(view, &cells));
    findings.extend(repeated::findings(view, &cells));
    findings.extend(verdict::findings(view, &cells));
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.kind));
    let (verdict, reasons) = verdict::verdict(view, &cells);
    Judgement { verdict, reasons, cells, findings }
}
