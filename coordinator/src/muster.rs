//! Who has come for a one-shot run, whether all of them mean the same one, and who is told how it ended.
//!
//! ```text
//!  stage      event                                next       answer to the comer
//!  gathering  comes, meaning the others' run       gathering  Gathering
//!  gathering  comes for a run that is on or over   agreed     Playing or Over: it comes again, or the coordinator is new
//!  gathering  comes, meaning another run           refused    Refused, and so to everybody
//!  gathering  the last one has come                agreed     Playing
//!  gathering  join time-out, somebody has come     agreed     Playing; cells of the others are not tested
//!  gathering  leaves                               gathering  (has not come)
//!  agreed     comes, meaning the agreed run        agreed     Playing or Over
//!  agreed     comes, meaning another run           agreed     Refused, to this one alone
//!  agreed     its plan does not fit the mesh           refused    Refused
//!  refused    comes                                refused    Refused
//!  any        is done                              the same   the others' company has one less to inform
//!  any        elected, deposed                     gathering  (everybody comes anew)
//! ```
//! Nothing of this is decided by the electors: whoever commands next hears it again from the agents themselves.

use std::collections::{BTreeMap, BTreeSet};

use bench_core::ids::{NodeId, NodeIndex, PlanHash, RunId};
use bench_core::message::Company;
use bench_core::plan::Plan;

use crate::members::Members;

/// How far the run of a one-shot agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// Not everybody has come.
    Gathering {
        /// Who has not, in roster order.
        missing: Vec<NodeIndex>,
    },
    /// It goes on.
    Playing {
        /// Who shows it.
        printer: Option<NodeIndex>,
    },
    /// It is over.
    Over {
        /// Who prints the report.
        printer: Option<NodeIndex>,
        /// Who has printed it.
        printed_by: Option<NodeIndex>,
        /// Who else is here.
        company: Company,
    },
    /// It will not be played.
    Refused {
        /// Who is at odds, and what to do.
        reason: String,
        /// Who else is here.
        company: Company,
    },
}

/// What the coordinator knows of a run that an agent comes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    Not,
    /// It is on.
    On,
    /// It is over.
    Over,
}

/// An agent that has come.
#[derive(Clone, Debug)]
pub(crate) struct Comer {
    /// The agent.
    pub(crate) node: NodeIndex,
    /// The run that it means.
    pub(crate) run: RunId,
    /// What that measures.
    pub(crate) plan: Box<Plan>,
    /// Its clock, seconds since 1970: a label.
    pub(crate) wall_seconds: u64,
}

/// A run that everybody who came means.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    /// The run.
    pub(crate) run: RunId,
    /// What it measures.
    pub(crate) plan: Box<Plan>,
    /// When its first agent came.
    pub(crate) wall_seconds: u64,
}

/// Who has come, and what they agree on.
#[derive(Debug, Default)]
pub(crate) struct Muster {
    stage: Stage,
    /// Who has come, with what it means.
    come: BTreeMap<NodeIndex, (RunId, PlanHash)>,
    /// Who knows how the run ended and needs nobody any more.
    done: BTreeSet<NodeIndex>,
    printed_by: Option<NodeIndex>,
}

#[derive(Debug)]
enum Stage {
    /// What the first comer means, once there is one.
    Gathering(Option<Agreed>),
    Agreed(Agreed),
    Refused {
        reason: String,
    },
}

impl Default for Stage {
    fn default() -> Self {
        Self::Gathering(None)
    }
}

impl Muster {
    /// An agent comes, or comes again.
    pub(crate) fn come(&mut self, comer: Comer, known: Known, roster: &[NodeId]) {
        let Comer { node, run, plan, wall_seconds } = comer;
        self.done.remove(&node);
        let means = (run, plan.hash());
        let rival = self.come.iter().find(|(other, theirs)| **other != node && **theirs != means);
        let rival = rival.map(|(other, theirs)| (*other, *theirs));
        self.come.insert(node, means);
        let Stage::Gathering(first) = &mut self.stage else {
            return;
        };
        let meant = Agreed { run, plan, wall_seconds };
        match (rival, known) {
            (Some(rival), _) => self.stage = Stage::Refused { reason: at_odds(roster, rival, (node, means)) },
            (None, Known::On | Known::Over) => self.stage = Stage::Agreed(meant),
            (None, Known::Not) => {
                *first = Some(meant);
                if self.come.len() == roster.len() {
                    self.close();
                }
            }
        }
    }

    /// An agent knows how its run ended and is about to leave.
    pub(crate) fn done(&mut self, node: NodeIndex) {
        self.done.insert(node);
    }

    /// Somebody has printed the report: told by whoever knows.
    pub(crate) fn printed(&mut self, by: NodeIndex) {
        self.printed_by.get_or_insert(by);
    }

    /// A node is no member any more.
    pub(crate) fn left(&mut self, node: NodeIndex) {
        self.come.remove(&node);
        self.done.remove(&node);
        if let (Stage::Gathering(first), true) = (&mut self.stage, self.come.is_empty()) {
            *first = None;
        }
    }

    /// Nobody else is waited for: whoever has come plays.
    pub(crate) fn close(&mut self) {
        if let Stage::Gathering(first) = &mut self.stage
            && let Some(first) = first.take()
        {
            self.stage = Stage::Agreed(first);
        }
    }

    /// What everybody means cannot be played.
    pub(crate) fn refuse(&mut self, reason: String) {
        self.stage = Stage::Refused { reason };
    }

    /// Whether [`Muster::close`] would change anything.
    pub(crate) fn is_open(&self) -> bool {
        match &self.stage {
            Stage::Gathering(first) => first.is_some(),
            Stage::Agreed(_) | Stage::Refused { .. } => false,
        }
    }

    /// The run that everybody means.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        match &self.stage {
            Stage::Agreed(agreed) => Some(agreed),
            Stage::Gathering(_) | Stage::Refused { .. } => None,
        }
    }

    /// What `node` is told. With `settled`, whoever is present and has not come will not come any more.
    pub(crate) fn attendance(
        &self,
        node: NodeIndex,
        known: Known,
        settled: bool,
        members: &Members,
        roster: &[NodeId],
    ) -> Attendance {
        let company = self.company(node, members);
        let refused = |reason: String| Attendance::Refused { reason, company };
        match (&self.stage, self.come.get(&node)) {
            (Stage::Refused { reason }, _) => refused(reason.clone()),
            (Stage::Agreed(agreed), Some(means)) if means.0 != agreed.run => {
                let rival = self.come.iter().find(|(_, theirs)| theirs.0 == agreed.run);
                refused(match rival {
                    Some((other, theirs)) => at_odds(roster, (*other, *theirs), (node, *means)),
                    None => format!("another run is on: {}", agreed.run),
                })
            }
            (Stage::Agreed(_) | Stage::Gathering(_), _) => match (known, &self.stage) {
                (Known::Over, _) => {
                    let printer = self.printer(settled, members);
                    Attendance::Over { printer, printed_by: self.printed_by, company }
                }
                (Known::On, _) | (Known::Not, Stage::Agreed(_)) => {
                    Attendance::Playing { printer: self.printer(settled, members) }
                }
                (Known::Not, Stage::Gathering(_) | Stage::Refused { .. }) => {
                    let all = (0..roster.len()).map(|index| NodeIndex(index as u16));
                    Attendance::Gathering {
                        missing: all.filter(|node| !self.come.contains_key(node)).collect(),
                    }
                }
            },
        }
    }

    /// The first node of the roster that is here. A node that is here and has not come may still come, until `settled`.
    fn printer(&self, settled: bool, members: &Members) -> Option<NodeIndex> {
        let mut present = members.present();
        match settled {
            true => present.find(|node| self.come.contains_key(node)),
            false => present.next().filter(|node| self.come.contains_key(node)),
        }
    }

    fn company(&self, node: NodeIndex, members: &Members) -> Company {
        let others: Vec<NodeIndex> = members.present().filter(|other| *other != node).collect();
        if others.is_empty() {
            Company::Nobody
        } else if others.iter().all(|other| self.done.contains(other)) {
            Company::Leaving
        } else {
            Company::Uninformed
        }
    }
}

/// Two agents that do not mean the same run.
fn at_odds(
    roster: &[NodeId],
    (one, means): (NodeIndex, (RunId, PlanHash)),
    (other, otherwise): (NodeIndex, (RunId, PlanHash)),
) -> String {
    let (one, other) = (&roster[one.usize()], &roster[other.usize()]);
    if means.1 == otherwise.1 {
        format!(
            "{other} means run {} and {one} means run {}, of the same plan: start every node with the same --job",
            otherwise.0, means.0
        )
    } else {
        format!(
            "{other} has another plan (hash {}) than {one} (hash {}): start every node with the same --run file",
            otherwise.1, means.1
        )
    }
}

#[cfg(test)]
mod tests;
