//! Exit codes: a contract with scripts and batch systems.

use std::process::ExitCode;

use thiserror::Error;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: the fabric passed, or the command did what it was asked.
    Pass,
    /// 1: the fabric failed.
    Fail,
    /// 2: wrong usage or configuration.
    Usage,
    /// 3: could not measure.
    NotMeasured,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Usage => 2,
            Self::NotMeasured => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error with the exit code that it means.
#[derive(Debug, Error)]
#[error("{}", told_once(source))]
pub struct ExitError {
    /// The code.
    pub exit: Exit,
    /// What went wrong.
    pub source: anyhow::Error,
}

impl ExitError {
    /// Wrong usage or configuration: exit code 2.
    pub fn usage(source: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, source: source.into() }
    }

    /// Could not measure: exit code 3.
    pub fn not_measured(source: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::NotMeasured, source: source.into() }
    }
}

impl From<std::io::Error> for ExitError {
    fn from(error: std::io::Error) -> Self {
        Self::not_measured(error)
    }
}

/// The error and its causes, without those that the text before them quotes already.
fn told_once(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Error)]
    #[error("nobody answers")]
    struct Cause;

    #[derive(Debug, Error)]
    #[error("no agent at n1: {source}")]
    struct Quoting {
        source: Cause,
    }

    #[test]
    fn a_cause_that_is_quoted_is_not_told_again() {
        let quoted = ExitError::not_measured(Quoting { source: Cause });
        assert_eq!(quoted.to_string(), "no agent at n1: nobody answers");
        let added = ExitError::usage(anyhow::Error::from(Cause).context("the demo cannot start"));
        assert_eq!(added.to_string(), "the demo cannot start: nobody answers");
    }
}
