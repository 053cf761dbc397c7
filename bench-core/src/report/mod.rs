//! The report of a run: one versioned JSON document, and the forms that are drawn from it.
//!
//! [`RunReport`] is the contract, described field by field in docs/result-format.md. Its structs are its own, so that
//! an internal type can change without changing the contract. It is made from the records of a run
//! ([`RunReport::from_records`]) or read back from its JSON ([`RunReport::from_json`]); [`text`], [`markdown`] and
//! [`csv`] know nothing else. Writing files is the agent's.

mod build;
pub mod csv;
mod layout;
pub mod markdown;
mod model;
pub mod text;

#[cfg(test)]
mod tests;

use serde::Deserialize;
use thiserror::Error;

pub use model::{
    AttemptReport, BandwidthReport, CaseReport, CellReport, ConcurrencyReport, ConcurrencyWord,
    CoverageReport, DataCheckReport, DataCheckWord, EndReport, EndWord, EvidenceReport, FactReport,
    FailureReport, FindingReport, GapReport, GatesReport, HistogramReport, LatencyReport, LimitReport,
    LimitWord, MatrixReport, NodeRailReport, NodeReport, PartReport, PartWord, PlanReport,
    PopulationGateReport, PopulationReport, PurposeWord, RailReport, RttWord, RunReport, SCHEMA,
    ScheduleReport, WorstReport,
};

use crate::judge::{CellSource, JudgeError, NoCells, RunView, judge};
use crate::record::RunRecord;
use crate::schedule::Schedule;

impl RunReport {
    /// Judges a run, or as much of it as the records hold, and reports it. The planned cells are those of the schedule
    /// that the run's start allows; none, if it allows none.
    ///
    /// # Errors
    /// [`ReportError::Judge`] if the records hold no start.
    pub fn from_records(records: &[RunRecord]) -> Result<Self, ReportError> {
        let start = records.iter().find_map(|record| match record {
            RunRecord::Started(start) => Some(start),
            RunRecord::Round(_)
            | RunRecord::Observed(_)
            | RunRecord::Lost(_)
            | RunRecord::Added(_)
            | RunRecord::Note(_)
            | RunRecord::Ended(_) => None,
        });
        match start.map(|start| Schedule::of_run(start)) {
            Some(Ok(schedule)) => Self::from_cells(records, &schedule),
            Some(Err(_)) | None => Self::from_cells(records, &NoCells),
        }
    }

    /// The same with the planned cells given.
    ///
    /// # Errors
    /// [`ReportError::Judge`] if the records hold no start or do not belong to these cells.
    pub fn from_cells(records: &[RunRecord], cells: &dyn CellSource) -> Result<Self, ReportError> {
        let view = RunView::new(records, cells)?;
        Ok(build::report(&view, &judge(&view)))
    }

    /// Reads a report back.
    ///
    /// # Errors
    /// [`ReportError::Schema`] for another version of the contract, [`ReportError::Json`] for anything that is not a
    /// report.
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        /// What every version of the contract has.
        #[derive(Deserialize)]
        struct Envelope {
            schema: String,
        }
        let envelope: Envelope = serde_json::from_str(text).map_err(json_error)?;
        if envelope.schema != SCHEMA {
            return Err(ReportError::Schema { found: envelope.schema });
        }
        serde_json::from_str(text).map_err(json_error)
    }

    /// The report as JSON, indented, with a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a report has text keys and finite numbers, so it is JSON");
        text.push('\n');
        text
    }
}

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReportError {
    /// The records cannot be judged.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The JSON follows another version of the contract.
    #[error("result has schema {found:?}, this build reads {SCHEMA:?}; use the railmesh that wrote it")]
    Schema {
        /// The schema that it names.
        found: String,
    },
    /// The text is no report.
    #[error("not a railmesh result: {reason}")]
    Json {
        /// What the parser met, with line and column.
        reason: String,
    },
}

fn json_error(error: serde_json::Error) -> ReportError {
    ReportError::Json { reason: error.to_string() }
}
