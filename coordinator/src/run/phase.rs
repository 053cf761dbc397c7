//! How far a run is.

use std::fmt;

/// How far a run is. The table of transitions is in the module above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunPhase {
    /// The electors decide whether it is accepted.
    Accepting,
    /// A new coordinator gathers what the journals hold.
    Recovering,
    /// It waits for members.
    Joining,
    /// Members tell their inventories.
    Probing,
    /// The schedule is played.
    Measuring,
    /// Cells under which infrastructure failed are tried again.
    Retrying,
    /// Suspects are measured again.
    Retesting,
    /// The result goes to the electors.
    Storing,
    /// The electors decide that it is over.
    Ending,
    /// The last record is out.
    Ended,
}

impl RunPhase {
    /// Whether no round will start any more.
    pub fn is_over(self) -> bool {
        match self {
            Self::Storing | Self::Ending | Self::Ended => true,
            Self::Accepting
            | Self::Recovering
            | Self::Joining
            | Self::Probing
            | Self::Measuring
            | Self::Retrying
            | Self::Retesting => false,
        }
    }
}

impl fmt::Display for RunPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepting => "accept",
            Self::Recovering => "recover",
            Self::Joining => "join",
            Self::Probing => "probe",
            Self::Measuring => "measure",
            Self::Retrying => "retry",
            Self::Retesting => "retest",
            Self::Storing => "store",
            Self::Ending => "end",
            Self::Ended => "ended",
        })
    }
}
