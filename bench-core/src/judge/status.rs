//! The words of a cell and the word of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The word of a cell. Only [`CellStatus::Pass`] says that it is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellStatus {
    /// Measured, and every limit is met.
    Pass,
    /// Measured, and a limit is not met or the data is wrong.
    Fail,
    /// A process or node died during it.
    Crash,
    /// A deadline passed during it.
    Timeout,
    /// The plan or a missing capability leaves it out.
    Skip,
    /// It was never begun.
    NotTested,
    /// Measured, but no limit is known.
    NotJudged,
    /// Measured, but the figure cannot be used.
    Invalid,
}

/// The word of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// Every planned cell passes and the run ended.
    Pass,
    /// A cell fails. Beats every other word.
    Fail,
    /// No cell fails, but something planned has no usable measurement.
    Incomplete,
    /// Everything planned was measured, but for some of it no limit is known.
    NotJudged,
}

impl CellStatus {
    /// Every word, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Pass,
        Self::Fail,
        Self::Crash,
        Self::Timeout,
        Self::Skip,
        Self::NotTested,
        Self::NotJudged,
        Self::Invalid,
    ];

    /// The word in results and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Crash => "crash",
            Self::Timeout => "timeout",
            Self::Skip => "skip",
            Self::NotTested => "not_tested",
            Self::NotJudged => "not_judged",
            Self::Invalid => "invalid",
        }
    }
}

impl RunVerdict {
    /// The word in results and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Incomplete => "incomplete",
            Self::NotJudged => "not_judged",
        }
    }

    /// The exit code of the process: 0 pass, 1 fail, 3 could not measure or judge (DESIGN section 8; 2 is usage).
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Incomplete | Self::NotJudged => 3,
        }
    }
}

impl fmt::Display for CellStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
