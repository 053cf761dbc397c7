//! What a one-shot agent and the coordinator tell each other, from its coming to its leaving.
//!
//! One question serves the whole life of a batch job: the agent says how far it is, the answer says how far the run is.
//! An answer that calls for the same as the one before is held back for as long as the question allows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{NodeId, RunId};
use crate::plan::Plan;

/// A one-shot agent is here, or about to leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attend {
    /// Who asks.
    pub node: NodeId,
    /// The run that it wants played.
    pub run: RunId,
    /// What that run measures.
    pub plan: Box<Plan>,
    /// How far it is.
    pub attending: Attending,
    /// Who has printed the report, as far as it knows.
    pub printed_by: Option<NodeId>,
    /// The answer before this one.
    pub last: Option<AttendReply>,
    /// How long to hold back an answer that calls for the same as `last`.
    pub wait: Duration,
}

/// How far a one-shot agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attending {
    /// It takes part and waits for the end.
    Present,
    /// It knows how the run ended, has done its part of it, and needs nobody any more.
    Done,
}

/// How far the run of a one-shot agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttendReply {
    /// Not everybody has come.
    Gathering {
        /// Who has not, in roster order; the first few.
        missing: Vec<NodeId>,
    },
    /// It goes on.
    Playing {
        /// Who shows it; `None` if that is not known yet.
        printer: Option<NodeId>,
    },
    /// It is over.
    Over {
        /// How it ended.
        outcome: Outcome,
        /// Who prints the report; `None` if that is not known yet.
        printer: Option<NodeId>,
        /// Who has printed it.
        printed_by: Option<NodeId>,
        /// Who else is still here.
        company: Company,
    },
    /// It will not be played.
    Refused {
        /// Who is at odds, and what to do.
        reason: String,
        /// Who else is still here.
        company: Company,
    },
}

/// How a run ended, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The verdict's exit code.
    pub exit_code: u8,
    /// The verdict and its first reason.
    pub words: String,
}

/// Who is here besides the asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Company {
    /// Agents that still need to be told how it ended.
    Uninformed,
    /// Agents that are about to leave.
    Leaving,
    /// Nobody.
    Nobody,
}

impl AttendReply {
    /// Whether an agent that has heard `last` has nothing new to do.
    pub fn calls_for_the_same_as(&self, last: &Self) -> bool {
        match (self, last) {
            // Who is missing changes with every comer, and nobody does anything about it.
            (Self::Gathering { .. }, Self::Gathering { .. }) => true,
            (Self::Gathering { .. } | Self::Playing { .. } | Self::Over { .. } | Self::Refused { .. }, _) => {
                self == last
            }
        }
    }
}
