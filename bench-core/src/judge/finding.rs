//! What a reader should know beyond the words of single cells.

use serde::{Deserialize, Serialize};

use super::blame::Part;
use crate::ids::CellId;
use crate::record::Severity;

/// One thing that a reader should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What kind.
    pub kind: FindingKind,
    /// How serious.
    pub severity: Severity,
    /// How sure, where it names a part.
    pub certainty: Option<Certainty>,
    /// The part that it names.
    pub part: Option<Part>,
    /// What, in one sentence without a full stop.
    pub text: String,
    /// What it rests on, a line each.
    pub evidence: Vec<String>,
    /// What to do about it, where known.
    pub remedy: Option<String>,
    /// The cells that it explains.
    pub cells: Vec<CellId>,
}

/// What kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A part whose data is wrong.
    Corrupt,
    /// A part that is slow.
    Slow,
    /// Cells that gave no measurement because something died or hung.
    Lost,
    /// Cells that were never begun or were left out.
    NotTested,
    /// Cells that were measured but whose figures cannot be used.
    Invalid,
    /// A cell that missed its limit once and met it when measured again.
    Unsteady,
    /// Cells for which no limit is known.
    NotJudged,
    /// Something that the run said of itself.
    Note,
}

/// How sure the name of a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Two different proven partners confirmed it.
    Bad,
    /// The plan's cells say so, and nothing has confirmed it.
    Suspected,
}

impl FindingKind {
    /// The word in results and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::Slow => "slow",
            Self::Lost => "lost",
            Self::NotTested => "not_tested",
            Self::Invalid => "invalid",
            Self::Unsteady => "unsteady",
            Self::NotJudged => "not_judged",
            Self::Note => "note",
        }
    }
}

impl Certainty {
    /// The word in results and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Suspected => "suspected",
        }
    }
}
