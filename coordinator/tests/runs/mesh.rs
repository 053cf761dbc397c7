//! A mesh on a virtual clock: one real coordinator, agents that answer by rule, no socket and no sleeping.
//!
//! Commands are answered after a fixed delay. `drive` jumps from event to event until nothing is left to happen, so a
//! test is the list of things that happen and a look at the records.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_core::cell::End;
use bench_core::ids::{BootId, CellId, Epoch, NodeId, NodeIndex, RailId, RunId};
use bench_core::measure::{
    BandwidthSample, DataCheck, Histogram, LatencySample, Measurement, RttShare, Window,
};
use bench_core::message::{Prepare, PrepareReply, Request, Response, Start, SubmitReply};
use bench_core::node::{Network, NodeInventory, RailEndpoint};
use bench_core::plan::{Plan, PlanSpec, Spread};
use bench_core::record::{
    Evidence, Failure, FailureKind, Loss, Observation, ObservationKey, Outcome, Phase, RunEnd, RunRecord,
};
use bench_core::time::{ClockOffset, Mono};
use coordinator::{CallFault, CallTag, Command, Config, Coordinator, Entry, Event, Ticket};

/// The run of every test.
pub(crate) const RUN: RunId = RunId([7; 16]);
/// The epoch of every test.
pub(crate) const EPOCH: Epoch = Epoch { term: 1, elector: 0 };

/// How an agent behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// It answers everything.
    Sound,
    /// It takes requests of this phase and never answers them.
    SilentAt(Phase),
    /// It cannot arm its ends.
    CannotArm(FailureKind),
    /// It answers the start of its first round with failures, and is sound after that.
    CrashesOnce,
    /// Its ends on rail 0 run at a tenth.
    SlowRail0,
    /// It has none of the devices that a plan takes as its rails.
    LacksRails,
    /// Its first two rails are in each other's network.
    CrossedRails,
    /// Its rail 0 has a quarter of the others' line rate.
    QuarterRate,
}

/// A mesh on a virtual clock.
pub(crate) struct TestMesh {
    pub(crate) machine: Coordinator,
    pub(crate) now: Mono,
    behaviours: BTreeMap<NodeIndex, Behaviour>,
    crashed: BTreeMap<NodeIndex, bool>,
    pending: BTreeMap<(Mono, u64), Event>,
    sequence: u64,
    names: Vec<NodeId>,
    rails: BTreeMap<NodeIndex, u16>,
    /// Every command that was sent, with its time.
    pub(crate) sent: Vec<(Mono, NodeIndex, Request)>,
    /// Answers to clients.
    pub(crate) replies: Vec<(Ticket, SubmitReply)>,
    /// Entries that were proposed, in order.
    pub(crate) proposed: Vec<Entry>,
    /// Whether proposals commit.
    pub(crate) commits: bool,
    cells: BTreeMap<CellId, bench_core::message::Prepared>,
}

impl TestMesh {
    /// `nodes` sound nodes with `rails` rails each, all of which have joined, and an elected coordinator.
    pub(crate) fn new(nodes: u16, rails: u16) -> Self {
        let mut mesh = Self::nobody(nodes, rails);
        mesh.feed(elected());
        (0..nodes).for_each(|node| mesh.join(node));
        mesh
    }

    /// The same, with nobody there and nobody elected.
    pub(crate) fn nobody(nodes: u16, rails: u16) -> Self {
        let names: Vec<NodeId> =
            (1..=nodes).map(|n| NodeId::new(&format!("n{n}")).expect("a name")).collect();
        let config = Config {
            roster: names.clone(),
            electors: vec![NodeIndex(0)],
            rails,
            join_timeout: Duration::from_secs(30),
        };
        Self {
            machine: Coordinator::new(config),
            now: Mono::from_nanos(1_000_000_000),
            behaviours: BTreeMap::new(),
            crashed: BTreeMap::new(),
            pending: BTreeMap::new(),
            sequence: 0,
            rails: (0..nodes).map(|n| (NodeIndex(n), rails)).collect(),
            names,
            sent: Vec::new(),
            replies: Vec::new(),
            proposed: Vec::new(),
            commits: true,
            cells: BTreeMap::new(),
        }
    }

    pub(crate) fn join(&mut self, node: u16) {
        self.feed(Event::Joined { node: NodeIndex(node), boot: BootId([node as u8; 16]) });
    }

    pub(crate) fn behave(&mut self, node: u16, behaviour: Behaviour) {
        self.behaviours.insert(NodeIndex(node), behaviour);
    }

    pub(crate) fn set_rails(&mut self, node: u16, rails: u16) {
        self.rails.insert(NodeIndex(node), rails);
    }

    /// Feeds one event and executes what it leads to.
    pub(crate) fn feed(&mut self, event: Event) {
        self.machine.handle(event, self.now);
        self.flush();
    }

    /// Lets something happen later.
    pub(crate) fn later(&mut self, wait: Duration, event: Event) {
        self.sequence += 1;
        self.pending.insert((self.now.after(wait), self.sequence), event);
    }

    pub(crate) fn submit(&mut self, plan: Plan) {
        self.submit_as(RUN, 1, plan);
    }

    pub(crate) fn submit_as(&mut self, run: RunId, ticket: u64, plan: Plan) {
        self.feed(Event::Submit { ticket: Ticket(ticket), run, plan: Box::new(plan), wall_seconds: 0 });
    }

    /// Jumps to the next thing that happens; `false` if nothing will.
    pub(crate) fn step(&mut self) -> bool {
        let event_at = self.pending.first_key_value().map(|((at, _), _)| *at);
        match (event_at, self.machine.next_deadline()) {
            (None, None) => false,
            (Some(at), deadline) if deadline.is_none_or(|deadline| at <= deadline) => {
                let (_, event) = self.pending.pop_first().expect("looked at above");
                self.now = self.now.max(at);
                self.feed(event);
                true
            }
            (_, Some(deadline)) => {
                self.now = self.now.max(deadline);
                self.machine.on_deadline(self.now);
                self.flush();
                true
            }
            (Some(_), None) => unreachable!("an event without a deadline is taken above"),
        }
    }

    /// Until nothing is left to happen.
    pub(crate) fn drive(&mut self) {
        for _ in 0..STEPS {
            if !self.step() {
                return;
            }
        }
        panic!("the run did not come to rest; last records {:?}", self.records().last());
    }

    /// Until `wanted` was sent to somebody.
    pub(crate) fn drive_until(&mut self, wanted: impl Fn(&Request) -> bool) {
        for _ in 0..STEPS {
            if self.sent.iter().any(|(_, _, request)| wanted(request)) {
                return;
            }
            assert!(self.step(), "the run came to rest before that");
        }
    }

    pub(crate) fn records(&self) -> &[RunRecord] {
        self.machine.run(Some(RUN)).map_or(&[], |run| run.records())
    }

    pub(crate) fn losses(&self) -> Vec<&Loss> {
        let mut losses = Vec::new();
        for record in self.records() {
            if let RunRecord::Lost(loss) = record {
                losses.push(loss);
            }
        }
        losses
    }

    pub(crate) fn observations(&self) -> Vec<&Observation> {
        let mut observations = Vec::new();
        for record in self.records() {
            if let RunRecord::Observed(observation) = record {
                observations.push(observation);
            }
        }
        observations
    }

    pub(crate) fn end(&self) -> Option<&RunEnd> {
        match self.records().last() {
            Some(RunRecord::Ended(end)) => Some(end),
            _ => None,
        }
    }

    fn flush(&mut self) {
        while let Some(command) = self.machine.poll_command() {
            match command {
                Command::Propose(entry) => {
                    self.proposed.push(entry.clone());
                    if self.commits {
                        self.later(Duration::from_micros(200), Event::Committed(entry));
                    }
                }
                Command::Reply { ticket, reply } => self.replies.push((ticket, reply)),
                Command::Send { node, tag, request, deadline } => self.answer(node, tag, *request, deadline),
            }
        }
    }

    fn answer(&mut self, node: NodeIndex, tag: CallTag, request: Request, deadline: Duration) {
        self.sent.push((self.now, node, request.clone()));
        let behaviour = self.behaviours.get(&node).copied().unwrap_or(Behaviour::Sound);
        let phase = match &request {
            Request::Probe { .. } => Phase::Probe,
            Request::Prepare(_) => Phase::Prepare,
            Request::Start(_) => Phase::Measure,
            _ => Phase::Collect,
        };
        if behaviour == Behaviour::SilentAt(phase) {
            self.later(deadline, Event::Answered { node, tag, result: Err(CallFault::Timeout) });
            return;
        }
        let (wait, response) = match request {
            Request::Probe { rails: Some(names), .. } if behaviour == Behaviour::LacksRails => {
                (DELAY, Response::NoSuchRails { reason: format!("{} is no device of this node", names[0]) })
            }
            Request::Probe { .. } => (DELAY, Response::Inventory(Box::new(self.inventory(node, behaviour)))),
            Request::Prepare(prepare) => (DELAY, Response::Prepared(self.prepare(prepare, behaviour))),
            Request::Start(start) => {
                let wait = start.at.since(self.now) + self.traffic_time(&start) + DELAY;
                (wait, Response::Observations(self.observe(node, &start, behaviour)))
            }
            Request::Collect { .. } => (DELAY, Response::Observations(Vec::new())),
            _ => (DELAY, Response::Done),
        };
        self.later(wait, Event::Answered { node, tag, result: Ok(response) });
    }

    /// Rail r has the network 10.r.0.0/24 and 400 Gb/s.
    fn inventory(&self, node: NodeIndex, behaviour: Behaviour) -> NodeInventory {
        let rail = |rail: u16| {
            let (network, rate_bps) = match behaviour {
                Behaviour::CrossedRails if rail < 2 => (1 - rail, LINE_RATE_BPS),
                Behaviour::QuarterRate if rail == 0 => (rail, LINE_RATE_BPS / 4),
                _ => (rail, LINE_RATE_BPS),
            };
            let addr = [10, network as u8, 0, node.0 as u8].into();
            RailEndpoint {
                network: Some(Network::of(addr, 24)),
                line_rate_bps: Some(rate_bps),
                ..RailEndpoint::plain(RailId(rail), format!("eth{rail}"), addr, "named".to_owned())
            }
        };
        NodeInventory {
            node: self.names[node.usize()].clone(),
            hostname: String::new(),
            kernel: String::new(),
            cpus: 2,
            clock_source: None,
            wall_seconds: 0,
            rails: (0..self.rails[&node]).map(rail).collect(),
            capabilities: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn prepare(&mut self, prepare: Prepare, behaviour: Behaviour) -> PrepareReply {
        for prepared in &prepare.ends {
            self.cells.insert(prepared.cell.id, prepared.clone());
        }
        let failed = match behaviour {
            Behaviour::CannotArm(kind) => {
                let failure = || Failure {
                    kind,
                    phase: Phase::Prepare,
                    detail: "no such device".to_owned(),
                    remedy: None,
                };
                prepare.ends.iter().map(|p| (p.cell.id, p.end, failure())).collect()
            }
            Behaviour::Sound
            | Behaviour::SilentAt(_)
            | Behaviour::CrashesOnce
            | Behaviour::SlowRail0
            | Behaviour::LacksRails
            | Behaviour::CrossedRails
            | Behaviour::QuarterRate => Vec::new(),
        };
        PrepareReply { failed, clock: Some(ClockOffset { offset_ns: 0, error_ns: 20_000 }) }
    }

    fn traffic_time(&self, start: &Start) -> Duration {
        let times = start.cells.iter().map(|cell| {
            let case = &self.cells[cell].case;
            case.warmup + case.window
        });
        times.max().unwrap_or_default() + start.tail
    }

    fn observe(&mut self, node: NodeIndex, start: &Start, behaviour: Behaviour) -> Vec<Observation> {
        let crash = behaviour == Behaviour::CrashesOnce
            && !std::mem::replace(self.crashed.entry(node).or_insert(false), true);
        let mut observations = Vec::new();
        for cell in &start.cells {
            let prepared = self.cells[cell].clone();
            for (end, at) in prepared.cell.ends() {
                if at == node {
                    let outcome =
                        if crash { failed() } else { Outcome::Measured(self.measure(&prepared, end, start)) };
                    observations.push(observation(start, *cell, end, outcome));
                }
            }
        }
        observations
    }

    fn measure(&self, prepared: &bench_core::message::Prepared, end: End, start: &Start) -> Measurement {
        let cell = prepared.cell;
        let slow = cell.rail == RailId(0)
            && [cell.src, cell.dst]
                .iter()
                .any(|node| self.behaviours.get(node) == Some(&Behaviour::SlowRail0));
        let window = Window::new(start.at.after(prepared.case.warmup), prepared.case.window);
        let factor = if slow { 1 } else { 10 };
        match (prepared.case.kind.spread(), end) {
            (Spread::Bandwidth, _) => Measurement::Bandwidth(BandwidthSample {
                window,
                bytes: factor * 12_500_000 + u64::from(cell.id.0 % 7) * 1_000,
                marks: Vec::new(),
                check: DataCheck::Unchecked,
                retransmits: None,
                cpu_ns: None,
            }),
            (Spread::Latency, End::Destination) => Measurement::Responder { answered: 100 },
            (Spread::Latency, End::Source) => {
                let mut histogram = Histogram::new();
                (0..100).for_each(|i| histogram.record(20_000 + i));
                Measurement::Latency(LatencySample {
                    window,
                    histogram,
                    share: RttShare::Half,
                    check: DataCheck::Unchecked,
                })
            }
        }
    }
}

/// The first election: nothing was decided before.
pub(crate) fn elected() -> Event {
    Event::Elected { epoch: EPOCH, decisions: Box::default() }
}

/// A plan from TOML, with windows of 100 ms.
pub(crate) fn plan(toml: &str) -> Plan {
    let spec =
        PlanSpec::from_toml(&format!("duration = \"100ms\"\nwarmup = \"10ms\"\n{toml}")).expect("valid TOML");
    spec.validate().expect("a valid plan")
}

fn observation(start: &Start, cell: CellId, end: End, outcome: Outcome) -> Observation {
    Observation {
        key: ObservationKey {
            run: start.key.run,
            cell,
            epoch: start.key.epoch,
            attempt: start.key.attempt,
            end,
        },
        round: start.key.round,
        outcome,
        evidence: Evidence::default(),
        clock: ClockOffset { offset_ns: 0, error_ns: 20_000 },
    }
}

fn failed() -> Outcome {
    Outcome::Failed(Failure {
        kind: FailureKind::Crash,
        phase: Phase::Measure,
        detail: "worker of rail r0 was killed by signal 9".to_owned(),
        remedy: None,
    })
}

/// One way through the control mesh.
const DELAY: Duration = Duration::from_micros(300);

/// Line rate of a sound rail, bits a second.
const LINE_RATE_BPS: u64 = 400_000_000_000;

/// More steps than any test needs.
const STEPS: usize = 200_000;
