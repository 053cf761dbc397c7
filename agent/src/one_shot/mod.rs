//! One-shot agents for batch systems: every node starts the same command, one run is played, everybody exits alike.
//!
//! ```text
//!  state      heard                                   next       what it does
//!  attending  Gathering, Playing                      attending  asks on; the printer shows the run meanwhile
//!  attending  Over, nobody known to print             attending  asks on
//!  attending  Over, printed here                      printing   prints
//!  attending  Over, printed elsewhere                 leaving    says that it is done
//!  attending  Refused                                 leaving    says that it is done
//!  attending  no coordinator for longer than patience ended      exit 3
//!  printing   printed                                 leaving    says that it is done
//!  leaving    Over, this node is to print after all   printing   prints
//!  leaving    answered, nobody needs this node        ended      exit code of the verdict, 2 if refused
//!  leaving    no coordinator, or too long             ended      the same
//!  any        interrupted                             ended      the same if it is known, else 3
//! ```
//! Who needs a node: a plain member, nobody once its word was heard; an elector, the others until all are done and the
//! report is printed; the coordinator, until the others are gone. The machine is pure; the shell that asks, shows and
//! prints is `cli::commands::one_shot`.

mod folder;
mod memory;

use std::time::Duration;

use bench_core::ids::NodeId;
use bench_core::message::{AttendReply, Attending, Company, Outcome};
use bench_core::time::Mono;

pub use folder::{KEPT_RUNS, folder_of};
pub use memory::{Memory, MemoryError};

/// The life of one one-shot agent.
#[derive(Debug)]
pub struct OneShot {
    me: NodeId,
    patience: Duration,
    state: State,
    /// When a coordinator answered last; at the beginning, when the agent started.
    heard: Mono,
    last: Option<AttendReply>,
    printed_by: Option<NodeId>,
}

/// What an agent is to the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It takes part.
    Member,
    /// It elects.
    Elector,
    /// It commands.
    Coordinator,
}

/// Whether a node shows the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Showing {
    /// It does not.
    Not,
    /// While it goes on, also if showing broke off.
    Live,
    /// What is shown is followed to its end.
    ToTheEnd,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the coordinator.
    Ask(Attending),
    /// Print the report of the run.
    Print,
    /// Exit.
    End(Ending),
}

/// How it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The run is over.
    Over {
        /// How.
        outcome: Outcome,
        /// Who printed the report, as far as is known here.
        printed_by: Option<NodeId>,
    },
    /// The nodes do not mean the same run.
    Refused {
        /// Who is at odds, and what to do.
        reason: String,
    },
    /// There is no mesh that could tell.
    Alone {
        /// What is missing.
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Attending,
    Printing { outcome: Outcome },
    Leaving { ending: Ending, since: Mono, may_go: bool },
    Ended(Ending),
}

impl OneShot {
    /// An agent that starts now and bears to be without a coordinator for `patience`.
    pub fn new(me: NodeId, patience: Duration, now: Mono) -> Self {
        Self { me, patience, state: State::Attending, heard: now, last: None, printed_by: None }
    }

    /// The coordinator answered an agent that is `part` to the mesh.
    pub fn hear(&mut self, reply: AttendReply, part: Part, now: Mono) {
        self.heard = now;
        if let AttendReply::Over { printed_by: Some(by), .. } = &reply {
            self.printed_by.get_or_insert_with(|| by.clone());
        }
        let was_leaving = match &self.state {
            State::Leaving { .. } => true,
            State::Attending => false,
            State::Printing { .. } | State::Ended(_) => return,
        };
        self.last = Some(reply.clone());
        match reply {
            AttendReply::Gathering { .. } | AttendReply::Playing { .. } => {}
            AttendReply::Over { outcome, printer, company, .. } => match (printer, &self.printed_by) {
                (Some(printer), None) if printer == self.me => self.state = State::Printing { outcome },
                (None, None) if !was_leaving => {}
                (printer, printed_by) => {
                    let printed = printed_by.is_some();
                    let ending = Ending::Over { outcome, printed_by: printed_by.clone().or(printer) };
                    let may_go = was_leaving && is_needless(part, company, printed);
                    self.leave(ending, may_go, now);
                }
            },
            AttendReply::Refused { reason, company } => {
                let may_go = was_leaving && is_needless(part, company, true);
                self.leave(Ending::Refused { reason }, may_go, now);
            }
        }
    }

    /// No coordinator answered, for this reason.
    pub fn hear_nothing(&mut self, reason: String, now: Mono) {
        self.last = None;
        let silent = now.since(self.heard);
        match &self.state {
            State::Attending if silent >= self.patience => {
                self.state = State::Ended(Ending::Alone { reason });
            }
            State::Leaving { ending, .. } if silent >= LONGEST_SILENCE => {
                self.state = State::Ended(ending.clone());
            }
            State::Attending | State::Printing { .. } | State::Leaving { .. } | State::Ended(_) => {}
        }
    }

    /// The report is printed.
    pub fn printed(&mut self, now: Mono) {
        if let State::Printing { outcome } = &self.state {
            let (outcome, me) = (outcome.clone(), self.me.clone());
            self.printed_by = Some(me.clone());
            self.leave(Ending::Over { outcome, printed_by: Some(me) }, false, now);
        }
    }

    /// The process is told to stop.
    pub fn interrupt(&mut self) {
        let ending = match &self.state {
            State::Attending => Ending::Alone { reason: "told to stop before the run was over".to_owned() },
            State::Printing { outcome } => Ending::Over { outcome: outcome.clone(), printed_by: None },
            State::Leaving { ending, .. } | State::Ended(ending) => ending.clone(),
        };
        self.state = State::Ended(ending);
    }

    /// What to do next.
    pub fn next(&self, now: Mono) -> Step {
        match &self.state {
            State::Attending => Step::Ask(Attending::Present),
            State::Printing { .. } => Step::Print,
            State::Leaving { ending, since, may_go } if *may_go || now.since(*since) >= LONGEST_LINGER => {
                Step::End(ending.clone())
            }
            State::Leaving { .. } => Step::Ask(Attending::Done),
            State::Ended(ending) => Step::End(ending.clone()),
        }
    }

    /// Whether this node shows the run.
    pub fn showing(&self) -> Showing {
        match (&self.state, &self.last) {
            (State::Printing { .. }, _) => Showing::ToTheEnd,
            (State::Attending, Some(AttendReply::Playing { printer: Some(printer) }))
                if *printer == self.me =>
            {
                Showing::Live
            }
            // For a moment without a coordinator, what is shown is kept.
            (State::Attending, None) => Showing::ToTheEnd,
            (State::Attending | State::Leaving { .. } | State::Ended(_), _) => Showing::Not,
        }
    }

    /// How the run ended, once this node knows and has done its part.
    pub fn over(&self) -> Option<(&Outcome, Option<&NodeId>)> {
        match &self.state {
            State::Leaving { ending: Ending::Over { outcome, printed_by }, .. } => {
                Some((outcome, printed_by.as_ref()))
            }
            State::Leaving { .. } | State::Attending | State::Printing { .. } | State::Ended(_) => None,
        }
    }

    /// The answer that the coordinator gave last.
    pub fn last(&self) -> Option<&AttendReply> {
        self.last.as_ref()
    }

    /// Who has printed the report, as far as is known here.
    pub fn printed_by(&self) -> Option<&NodeId> {
        self.printed_by.as_ref()
    }

    fn leave(&mut self, ending: Ending, may_go: bool, now: Mono) {
        let since = match &self.state {
            State::Leaving { since, .. } => *since,
            State::Attending | State::Printing { .. } | State::Ended(_) => {
                // The first word that it is done is answered at once.
                self.last = None;
                now
            }
        };
        self.state = State::Leaving { ending, since, may_go };
    }
}

/// Whether nobody needs an agent that has said that it is done.
fn is_needless(part: Part, company: Company, printed: bool) -> bool {
    match (part, company) {
        (Part::Member, _) | (_, Company::Nobody) => true,
        (Part::Elector, Company::Leaving) => printed,
        (Part::Elector, Company::Uninformed)
        | (Part::Coordinator, Company::Leaving | Company::Uninformed) => false,
    }
}

/// How long an agent that is done lingers for others: four times the 15 s after which a silent node counts as gone.
const LONGEST_LINGER: Duration = Duration::from_secs(60);

/// How long it lingers without a coordinator: several elections on a busy machine.
const LONGEST_SILENCE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests;
