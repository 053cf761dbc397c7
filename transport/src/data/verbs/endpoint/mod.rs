//! One end of one RDMA cell.
//!
//! | state | by | next |
//! |---|---|---|
//! | prepared: queue pairs have numbers, memory is registered | `connect` | armed |
//! | armed: queue pairs are ready to send, receives are posted | `run` | spent |
//! | spent: everything is given back | | |
//!
//! One thread drives all queue pairs of the end, over one completion queue, and never sleeps while data moves.

mod facts;
mod failure;
mod ids;
mod initiate;
mod job;
mod layout;
mod link;
mod passive;
mod pingpong;
mod receive;
mod role;
mod setup;

use bench_core::measure::Measurement;
use bench_core::message::{CellTask, EndpointInfo, Peer};
use bench_core::plan::{Means, Spread, TestCase};
use bench_core::record::{Evidence, Failure, FailureKind, Phase};
use bench_core::verbs::{Operation, RdmaOptions, VerbsInfo};

use self::job::Job;
use self::link::{Armed, Link};
use self::pingpong::Line;
use self::receive::Inlet;
use self::role::Role;
use crate::clock;
use crate::data::{Endpoint, Stop, Timing, out_of_order, refuse_late_start, unless_stopped};

/// One end of one RDMA cell.
pub(super) struct VerbsEndpoint {
    task: CellTask,
    options: RdmaOptions,
    operation: Operation,
    role: Role,
    state: State,
    evidence: Evidence,
}

/// How far an end has come.
enum State {
    Prepared(Box<Link>),
    Armed(Box<Armed>, Posted),
    Spent,
}

/// What an armed end has posted for what will arrive.
enum Posted {
    /// Receives for the peer's words only.
    Words,
    /// Receives for messages.
    Inlets(Vec<Inlet>),
    /// Receives of a latency cell.
    Line(Box<Line>),
}

impl VerbsEndpoint {
    /// Sets up an end.
    ///
    /// # Errors
    /// [`Failure`] in phase `Prepare`.
    pub(super) fn prepare(task: &CellTask) -> Result<Self, Failure> {
        let (Means::Rdma(operation), Some(options)) = (task.case.kind.means(), task.case.rdma) else {
            return Err(not_rdma(task));
        };
        let role = Role::of(operation, task.case.kind.spread(), task.end);
        let link = setup::set_up(task, &options, role)?;
        let evidence = facts::of_link(task, &options, &link);
        let state = State::Prepared(Box::new(link));
        Ok(Self { task: task.clone(), options, operation, role, state, evidence })
    }

    fn arm(&mut self, link: Link, peer: &VerbsInfo) -> Result<State, Failure> {
        let mut armed = link.connect(&self.task, &self.options, peer)?;
        armed.fill_out();
        let posted = match self.role {
            Role::Initiator => Posted::Words,
            Role::Passive => {
                armed.listen_for_words()?;
                Posted::Words
            }
            Role::Receiver => Posted::Inlets(receive::open(&mut armed)?),
            Role::Timer | Role::Responder => {
                Posted::Line(Box::new(pingpong::open(&mut armed, self.operation)?))
            }
        };
        self.evidence = facts::of_armed(&self.task, &self.options, &armed);
        Ok(State::Armed(Box::new(armed), posted))
    }

    fn measure(
        &self,
        armed: &mut Armed,
        posted: Posted,
        timing: &Timing,
        stop: &Stop,
    ) -> Result<Measurement, Failure> {
        let job = Job {
            case: &self.task.case,
            options: &self.options,
            operation: self.operation,
            end: self.task.end,
            timing,
            stop,
        };
        match (self.role, posted) {
            (Role::Initiator, Posted::Words) => initiate::initiate(armed, &job),
            (Role::Passive, Posted::Words) => passive::lend(armed, &job),
            (Role::Receiver, Posted::Inlets(mut inlets)) => receive::receive(armed, &mut inlets, &job),
            (Role::Timer, Posted::Line(mut line)) => pingpong::time(armed, &mut line, &job),
            (Role::Responder, Posted::Line(mut line)) => pingpong::respond(armed, &mut line, &job),
            (
                Role::Initiator | Role::Passive | Role::Receiver | Role::Timer | Role::Responder,
                Posted::Words | Posted::Inlets(_) | Posted::Line(_),
            ) => Err(out_of_order(Phase::Armed)),
        }
    }
}

impl Endpoint for VerbsEndpoint {
    fn info(&self) -> Option<EndpointInfo> {
        match &self.state {
            State::Prepared(link) => Some(EndpointInfo::Verbs(Box::new(link.info.clone()))),
            State::Armed(..) | State::Spent => None,
        }
    }

    fn connect(&mut self, peer: &Peer, stop: &Stop) -> Result<(), Failure> {
        let state = std::mem::replace(&mut self.state, State::Spent);
        let (State::Prepared(link), Some(EndpointInfo::Verbs(peer))) = (state, &peer.endpoint) else {
            return Err(out_of_order(Phase::Connect));
        };
        self.state = self.arm(*link, peer).map_err(|failure| unless_stopped(failure, stop))?;
        Ok(())
    }

    fn run(&mut self, timing: &Timing, stop: &Stop) -> Result<Measurement, Failure> {
        let State::Armed(mut armed, posted) = std::mem::replace(&mut self.state, State::Spent) else {
            return Err(out_of_order(Phase::Armed));
        };
        refuse_late_start(timing, clock::now())?;
        self.measure(&mut armed, posted, timing, stop).map_err(|failure| unless_stopped(failure, stop))
    }

    fn evidence(&self) -> Evidence {
        self.evidence.clone()
    }
}

/// How many queue pairs a case has: one exchange at a time needs one.
fn lanes(case: &TestCase) -> usize {
    match case.kind.spread() {
        Spread::Bandwidth => usize::from(case.streams.max(1)),
        Spread::Latency => 1,
    }
}

fn not_rdma(task: &CellTask) -> Failure {
    Failure {
        kind: FailureKind::Unsupported,
        phase: Phase::Prepare,
        detail: format!("{} is no RDMA test, or comes without its parameters", task.case.kind),
        remedy: Some("report this: plan and backend disagree".to_owned()),
    }
}
