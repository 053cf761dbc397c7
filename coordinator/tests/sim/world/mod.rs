//! The simulated mesh: every node's parts, one queue of what happens next, one clock.
//!
//! One seed decides everything: sizes, delays, losses, faults. A message names the process that it is meant for, as a
//! connection does: it does not reach one that was started later.

mod agents;
mod electors;
mod strikes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bench_core::fabric::Rng;
use bench_core::ids::{Epoch, NodeId, NodeIndex, RunId};
use bench_core::message::{Prepare, Request, Response, RoundKey};
use bench_core::time::Mono;
use coordinator::{CallFault, CallTag, Config, Coordinator};

use crate::agent::Agent;
use crate::election::{self, Elector};
use crate::facts::Facts;
use crate::faults::{self, Fault, State};
use crate::net::Net;
use crate::scenario::Scenario;

/// The run of every simulation.
pub(crate) const RUN: RunId = RunId([7; 16]);

/// Something that happens at a time.
#[derive(Debug)]
enum Happening {
    Consensus { to: usize, from: usize, message: election::Message },
    Hello { to: usize, from: usize, boot: u64 },
    Told { to: usize, boot: u64, elector: usize, epoch: Epoch },
    Asked { to: usize, boot: u64, from: usize, from_boot: u64, call: u64, request: Box<Request> },
    Answered { to: usize, boot: u64, call: u64, response: Box<Response> },
    CallOver { node: usize, boot: u64, call: u64, fault: CallFault },
    Armed { node: usize, boot: u64, back: Back, prepare: Box<Prepare> },
    RoundOver { node: usize, boot: u64, back: Back, key: RoundKey },
    Wake { node: usize, boot: u64 },
    Tick { node: usize, boot: u64 },
    Restart { node: usize, state: State },
    Fault(Fault),
    Heal,
    Client,
}

/// Where an answer goes.
#[derive(Clone, Copy, Debug)]
struct Back {
    to: usize,
    boot: u64,
    call: u64,
}

struct Node {
    boot: u64,
    life: u64,
    up: bool,
    paused_until: Mono,
    agent: Agent,
    elector: Option<ElectorNode>,
}

struct ElectorNode {
    consensus: Elector,
    machine: Coordinator,
    members: BTreeMap<usize, (u64, Mono)>,
    calls: BTreeMap<u64, (usize, CallTag)>,
    wake: Option<Mono>,
    epoch: Option<Epoch>,
}

/// A simulated mesh.
pub(crate) struct World {
    scenario: Scenario,
    config: Config,
    rng: Rng,
    now: Mono,
    sequence: u64,
    queue: BTreeMap<(Mono, u64), Happening>,
    nodes: Vec<Node>,
    net: Net,
    accepted: bool,
    cancelled: bool,
    commands: u64,
    calls: u64,
    marked: BTreeSet<RoundKey>,
    ended: bool,
    facts: Facts,
}

/// Plays a scenario to the end of its run, or until it is clear that it does not end.
pub(crate) fn play(scenario: Scenario) -> Facts {
    let mut world = World::new(scenario);
    let limit = world.scenario.healed.after(LIVENESS);
    while !world.ended && world.now < limit && world.step() {}
    world.finish()
}

impl World {
    fn new(scenario: Scenario) -> Self {
        let names: Vec<NodeId> =
            (1..=scenario.nodes).map(|n| NodeId::new(&format!("n{n}")).expect("a name")).collect();
        let config = Config {
            roster: names,
            electors: (0..scenario.electors as u16).map(NodeIndex).collect(),
            rails: 1,
            join_timeout: Duration::from_secs(3),
        };
        let mut rng = Rng::of(&[scenario.seed, 2]);
        let zero = Mono::from_nanos(0);
        let nodes = (0..scenario.nodes).map(|me| Node {
            boot: 0,
            life: 0,
            up: true,
            paused_until: zero,
            agent: Agent::new(scenario.electors),
            elector: (me < scenario.electors).then(|| ElectorNode {
                consensus: Elector::new(me, scenario.electors, zero, &mut rng),
                machine: Coordinator::new(config.clone()),
                members: BTreeMap::new(),
                calls: BTreeMap::new(),
                wake: None,
                epoch: None,
            }),
        });
        let nodes: Vec<Node> = nodes.collect();
        let mut world = Self {
            config,
            rng,
            now: zero,
            sequence: 0,
            queue: BTreeMap::new(),
            nodes,
            net: Net::default(),
            accepted: false,
            cancelled: false,
            commands: 0,
            calls: 0,
            marked: BTreeSet::new(),
            ended: false,
            facts: Facts { healed: scenario.healed, ..Facts::default() },
            scenario,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            match self.scenario.late {
                Some((late, at)) if late == node => {
                    self.nodes[node].up = false;
                    self.at(at, Happening::Restart { node, state: State::Kept });
                }
                Some(_) | None => self.later(Duration::ZERO, Happening::Tick { node, boot: 0 }),
            }
        }
        for (when, fault) in self.scenario.faults.clone() {
            if let faults::When::At(at) = when {
                self.at(at, Happening::Fault(fault));
            }
        }
        self.at(self.scenario.healed, Happening::Heal);
        self.later(Duration::from_millis(300), Happening::Client);
    }

    fn at(&mut self, at: Mono, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), happening);
    }

    fn later(&mut self, wait: Duration, happening: Happening) {
        self.at(self.now.after(wait), happening);
    }

    fn send(&mut self, from: usize, to: usize, happening: Happening) {
        if let Some(wait) = self.net.send(from, to, &mut self.rng) {
            self.later(wait, happening);
        }
    }

    fn step(&mut self) -> bool {
        let Some(((at, _), happening)) = self.queue.pop_first() else {
            return false;
        };
        self.now = at;
        if let Some((node, boot)) = addressee(&happening) {
            let Node { up, boot: current, paused_until, .. } = self.nodes[node];
            if !up || boot.is_some_and(|boot| boot != current) {
                return true;
            }
            if paused_until > self.now {
                self.at(paused_until, happening);
                return true;
            }
        }
        self.happen(happening);
        true
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Consensus { to, from, message } => {
                let (now, rng) = (self.now, &mut self.rng);
                let Some(elector) = &mut self.nodes[to].elector else {
                    return;
                };
                let replies = elector.consensus.receive(from, message, now, rng);
                self.send_consensus(to, replies);
                self.flush(to);
            }
            Happening::Hello { to, from, boot } => self.hello(to, from, boot),
            Happening::Told { to, elector, epoch, .. } => {
                self.nodes[to].agent.fence.learn(NodeIndex(elector as u16), Some(epoch));
            }
            Happening::Asked { to, from, from_boot, call, request, .. } => {
                let back = Back { to: from, boot: from_boot, call };
                self.serve(to, back, *request);
            }
            Happening::Answered { to, call, response, .. } => self.answered(to, call, Ok(*response)),
            Happening::CallOver { node, call, fault, .. } => self.answered(node, call, Err(fault)),
            Happening::Armed { node, back, prepare, .. } => self.armed(node, back, *prepare),
            Happening::RoundOver { node, back, key, .. } => self.round_over(node, back, key),
            Happening::Wake { node, .. } => {
                let now = self.now;
                if let Some(elector) = &mut self.nodes[node].elector {
                    elector.wake = None;
                    elector.machine.on_deadline(now);
                    self.flush(node);
                }
            }
            Happening::Tick { node, boot } => self.tick(node, boot),
            Happening::Restart { node, state } => self.restart(node, state),
            Happening::Fault(fault) => self.strike(fault, None),
            Happening::Heal => self.mend(),
            Happening::Client => self.client(),
        }
    }
}

/// The process that a happening is for, and which start of it.
fn addressee(happening: &Happening) -> Option<(usize, Option<u64>)> {
    match happening {
        Happening::Consensus { to, .. } | Happening::Hello { to, .. } => Some((*to, None)),
        Happening::Told { to, boot, .. }
        | Happening::Asked { to, boot, .. }
        | Happening::Answered { to, boot, .. } => Some((*to, Some(*boot))),
        Happening::CallOver { node, boot, .. }
        | Happening::Armed { node, boot, .. }
        | Happening::RoundOver { node, boot, .. }
        | Happening::Wake { node, boot }
        | Happening::Tick { node, boot } => Some((*node, Some(*boot))),
        Happening::Restart { .. } | Happening::Fault(_) | Happening::Heal | Happening::Client => None,
    }
}

/// How often an elector looks at its clock and an agent may give a sign of life.
const TICK: Duration = Duration::from_millis(100);

/// Silence after which a node is no member: several signs of life are missing.
const SILENCE: Duration = Duration::from_millis(3_000);

/// How long after the faults a run may take to end: every deadline of the machine once, and the rounds.
const LIVENESS: Duration = Duration::from_secs(240);
