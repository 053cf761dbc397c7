//! The simulated mesh: every node's parts, one queue of what happens next, one clock.
//!
//! One seed decides everything: sizes, delays, losses, faults. A message names the process that it is meant for, as a
//! connection does: it does not reach one that was started later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bench_core::fabric::Rng;
use bench_core::ids::{BootId, Epoch, NodeId, NodeIndex, RunId};
use bench_core::message::{Prepare, PrepareReply, Request, Response, RoundKey, SubmitReply};
use bench_core::plan::{Plan, PlanSpec};
use bench_core::record::{Failure, FailureKind, Phase, RunRecord};
use bench_core::time::{ClockOffset, Mono};
use coordinator::{CallFault, CallTag, Command, Config, Coordinator, Entry, Event, Passage, Ticket};

use crate::agent::{self, Agent, FenceLaw};
use crate::election::{self, Elector, Output};
use crate::facts::{Fact, Facts};
use crate::faults::{self, Fault, State, Who};
use crate::net::Net;

/// The run of every simulation.
pub(crate) const RUN: RunId = RunId([7; 16]);

/// What one seed stands for.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) electors: usize,
    pub(crate) plan: Plan,
    pub(crate) slow: Option<usize>,
    pub(crate) cancel: Option<Mono>,
    pub(crate) late: Option<(usize, Mono)>,
    pub(crate) faults: Vec<(faults::When, Fault)>,
    pub(crate) healed: Mono,
    pub(crate) law: FenceLaw,
}

impl Scenario {
    /// The mesh, the run and the faults of a seed.
    pub(crate) fn of(seed: u64, law: FenceLaw) -> Self {
        let mut rng = Rng::of(&[seed, 1]);
        let mut pick = |below: u64| rng.next_u64() % below;
        let nodes = 3 + pick(5) as usize;
        let tests = ["\"tcp_bw\"", "\"tcp_bw\"", "\"tcp_bw\", \"tcp_lat\""][pick(3) as usize];
        let tests = if nodes > 4 { "\"tcp_bw\"" } else { tests };
        let pattern = ["pairs", "pairs", "shift"][pick(3) as usize];
        let retest = ["never", "suspects"][pick(2) as usize];
        let spec = format!(
            "tests = [{tests}]\npattern = \"{pattern}\"\nretest = \"{retest}\"\nduration = \"200ms\"\nwarmup = \"10ms\"\n"
        );
        let spec = PlanSpec::from_toml(&spec).expect("valid TOML");
        let at = |millis: u64| Mono::from_nanos(millis * 1_000_000);
        let slow = (pick(4) == 0).then(|| pick(nodes as u64) as usize);
        let cancel = (pick(12) == 0).then(|| at(1_000 + pick(6_000)));
        let late = (pick(6) == 0).then(|| (pick(nodes as u64) as usize, at(500 + pick(8_000))));
        Self {
            seed,
            nodes,
            electors: if nodes < 5 { 3 } else { 5 },
            plan: spec.validate().expect("a valid plan"),
            slow,
            cancel,
            late,
            faults: faults::draw(&mut rng, nodes),
            healed: at(12_000),
            law,
        }
    }
}

/// Something that happens at a time.
#[derive(Debug)]
enum Happening {
    Consensus {
        to: usize,
        from: usize,
        message: election::Message,
    },
    Hello {
        to: usize,
        from: usize,
        boot: u64,
    },
    Told {
        to: usize,
        boot: u64,
        elector: usize,
        epoch: Epoch,
    },
    Asked {
        to: usize,
        boot: u64,
        from: usize,
        from_boot: u64,
        call: u64,
        request: Box<Request>,
    },
    Answered {
        to: usize,
        boot: u64,
        call: u64,
        response: Box<Response>,
    },
    CallOver {
        node: usize,
        boot: u64,
        call: u64,
        fault: CallFault,
    },
    Armed {
        node: usize,
        boot: u64,
        back: Back,
        prepare: Box<Prepare>,
    },
    RoundOver {
        node: usize,
        boot: u64,
        back: Back,
        key: RoundKey,
    },
    Wake {
        node: usize,
        boot: u64,
    },
    Tick {
        node: usize,
        boot: u64,
    },
    Restart {
        node: usize,
        state: State,
    },
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
        let names: Vec<NodeId> = (1..=scenario.nodes)
            .map(|n| NodeId::new(&format!("n{n}")).expect("a name"))
            .collect();
        let config = Config {
            roster: names,
            electors: (0..scenario.electors as u16).map(NodeIndex).collect(),
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
            facts: Facts {
                healed: scenario.healed,
                ..Facts::default()
            },
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
                    self.at(
                        at,
                        Happening::Restart {
                            node,
                            state: State::Kept,
                        },
                    );
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
            let Node {
                up,
                boot: current,
                paused_until,
                ..
            } = self.nodes[node];
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
            Happening::Told {
                to, elector, epoch, ..
            } => {
                self.nodes[to]
                    .agent
                    .fence
                    .learn(NodeIndex(elector as u16), Some(epoch));
            }
            Happening::Asked {
                to,
                from,
                from_boot,
                call,
                request,
                ..
            } => {
                let back = Back {
                    to: from,
                    boot: from_boot,
                    call,
                };
                self.serve(to, back, *request);
            }
            Happening::Answered {
                to, call, response, ..
            } => self.answered(to, call, Ok(*response)),
            Happening::CallOver {
                node, call, fault, ..
            } => self.answered(node, call, Err(fault)),
            Happening::Armed {
                node, back, prepare, ..
            } => self.armed(node, back, *prepare),
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

    // The agent's side.

    fn serve(&mut self, node: usize, back: Back, request: Request) {
        let law = self.scenario.law;
        let epoch = match &request {
            Request::Probe { epoch }
            | Request::Collect { epoch, .. }
            | Request::StoreResult { epoch, .. } => *epoch,
            Request::Prepare(prepare) => prepare.key.epoch,
            Request::Start(start) => start.key.epoch,
            Request::Abort { key } => {
                self.nodes[node].agent.armed.remove(key);
                return self.answer(node, back, Response::Done);
            }
            other => panic!("the machine asks no agent for {other:?}"),
        };
        let passage = self.nodes[node].agent.pass(epoch, law);
        if let Some(highest) = self.nodes[node].agent.fence.highest() {
            let life = self.nodes[node].life;
            self.facts.note(
                self.now,
                Fact::Fence {
                    node,
                    life,
                    epoch: highest,
                },
            );
        }
        match passage {
            Passage::Open => self.facts.note(self.now, Fact::Obeyed { node, epoch }),
            Passage::Stale { seen } => return self.answer(node, back, Response::StaleEpoch { seen }),
            Passage::Shut { .. } => {
                let reason = "this process just started".to_owned();
                return self.answer(node, back, Response::Invalid { reason });
            }
        }
        self.obey(node, back, request);
    }

    fn obey(&mut self, node: usize, back: Back, request: Request) {
        let boot = self.nodes[node].boot;
        let agent = &mut self.nodes[node].agent;
        match request {
            Request::Probe { .. } => {
                let inventory = agent::inventory(&self.config.roster[node], node);
                self.answer(node, back, Response::Inventory(Box::new(inventory)));
            }
            Request::Collect { run, cells, skip, .. } => {
                let observations = agent.collect(run, &cells, skip);
                self.answer(node, back, Response::Observations(observations));
            }
            Request::StoreResult {
                epoch,
                run,
                from,
                records,
            } => {
                let response = if agent.keep(epoch, run, from as usize, records) {
                    Response::Done
                } else {
                    Response::Invalid {
                        reason: "the batches before are not here".to_owned(),
                    }
                };
                self.answer(node, back, response);
            }
            Request::Prepare(prepare) => {
                let wait = Duration::from_micros(200 + self.rng.next_u64() % 3_000);
                let prepare = Box::new(prepare);
                self.later(
                    wait,
                    Happening::Armed {
                        node,
                        boot,
                        back,
                        prepare,
                    },
                );
            }
            Request::Start(start) => {
                let key = start.key;
                let Some(ends) = agent.armed.remove(&key) else {
                    return self.answer(node, back, Response::Observations(Vec::new()));
                };
                let ends: Vec<_> = ends
                    .into_iter()
                    .filter(|e| start.cells.contains(&e.cell.id))
                    .collect();
                let traffic = ends
                    .iter()
                    .map(|e| e.case.warmup + e.case.window)
                    .max()
                    .unwrap_or_default();
                let over = start.at.max(self.now).after(traffic + start.tail);
                agent.running.insert(key, (start, ends));
                self.facts.note(self.now, Fact::StartObeyed { node, key });
                self.at(
                    over,
                    Happening::RoundOver {
                        node,
                        boot,
                        back,
                        key,
                    },
                );
            }
            other => panic!("not a command: {other:?}"),
        }
    }

    fn armed(&mut self, node: usize, back: Back, prepare: Prepare) {
        let mut failed = Vec::new();
        let mut armed = Vec::new();
        for prepared in prepare.ends {
            let peer = agent::peer(&prepared);
            let met = self.net.reaches(node, peer) && self.net.reaches(peer, node) && self.nodes[peer].up;
            if met {
                armed.push(prepared);
            } else {
                let failure = Failure {
                    kind: FailureKind::Timeout,
                    phase: Phase::Handshake,
                    detail: "the peer did not answer the handshake".to_owned(),
                    remedy: None,
                };
                failed.push((prepared.cell.id, prepared.end, failure));
            }
        }
        self.nodes[node].agent.armed.insert(prepare.key, armed);
        let clock = Some(ClockOffset {
            offset_ns: 0,
            error_ns: 20_000,
        });
        self.answer(node, back, Response::Prepared(PrepareReply { failed, clock }));
    }

    fn round_over(&mut self, node: usize, back: Back, key: RoundKey) {
        let Some((start, ends)) = self.nodes[node].agent.running.remove(&key) else {
            return;
        };
        let mut observations = Vec::new();
        for prepared in &ends {
            let peer = agent::peer(prepared);
            let other = &self.nodes[peer];
            let is_on = |agent: &Agent| {
                agent.running.contains_key(&key) || agent.journal.iter().any(|o| key_of(o) == key)
            };
            let sound = other.up && is_on(&other.agent) && self.net.reaches(peer, node);
            let slow = [node, peer].iter().any(|n| self.scenario.slow == Some(*n));
            observations.push(agent::observe(key, &start, prepared, sound, slow));
        }
        for observation in &observations {
            let observation = Box::new(observation.clone());
            self.facts.note(self.now, Fact::Journaled { node, observation });
        }
        self.nodes[node]
            .agent
            .journal
            .extend(observations.iter().cloned());
        self.answer(node, back, Response::Observations(observations));
    }

    fn answer(&mut self, node: usize, back: Back, response: Response) {
        let Back { to, boot, call } = back;
        let response = Box::new(response);
        self.send(
            node,
            to,
            Happening::Answered {
                to,
                boot,
                call,
                response,
            },
        );
    }

    // The elector's side.

    fn hello(&mut self, to: usize, from: usize, boot: u64) {
        let now = self.now;
        let Some(elector) = &mut self.nodes[to].elector else {
            return;
        };
        let before = elector.members.insert(from, (boot, now));
        let told = elector
            .consensus
            .tells()
            .max(self.nodes[to].agent.fence.highest());
        let is_mute = self.nodes[to]
            .elector
            .as_ref()
            .is_some_and(|e| e.consensus.is_mute());
        if let (Some(epoch), false) = (told, is_mute) {
            self.send(
                to,
                from,
                Happening::Told {
                    to: from,
                    boot,
                    elector: to,
                    epoch,
                },
            );
        }
        match before {
            Some((known, _)) if known == boot => {}
            Some(_) => {
                self.leave(to, from, "its process was replaced");
                self.join(to, from, boot);
            }
            None => self.join(to, from, boot),
        }
    }

    fn join(&mut self, elector: usize, node: usize, boot: u64) {
        if let Some(at) = &mut self.nodes[elector].elector {
            at.members.insert(node, (boot, self.now));
        }
        self.facts.note(self.now, Fact::Joined { elector, node });
        let mut id = [node as u8; 16];
        id[..8].copy_from_slice(&boot.to_le_bytes());
        let joined = Event::Joined {
            node: NodeIndex(node as u16),
            boot: BootId(id),
        };
        self.feed(elector, joined);
    }

    fn leave(&mut self, elector: usize, node: usize, reason: &str) {
        let Some(at) = &mut self.nodes[elector].elector else {
            return;
        };
        at.members.remove(&node);
        let lost: Vec<u64> = at
            .calls
            .iter()
            .filter(|(_, (to, _))| *to == node)
            .map(|(call, _)| *call)
            .collect();
        self.facts.note(self.now, Fact::Left { elector, node });
        let left = Event::Left {
            node: NodeIndex(node as u16),
            reason: reason.to_owned(),
        };
        self.feed(elector, left);
        for call in lost {
            let reason = reason.to_owned();
            self.answered(elector, call, Err(CallFault::Lost { reason }));
        }
    }

    fn answered(&mut self, node: usize, call: u64, result: Result<Response, CallFault>) {
        let Some(elector) = &mut self.nodes[node].elector else {
            return;
        };
        if let Some((to, tag)) = elector.calls.remove(&call) {
            let node_index = NodeIndex(to as u16);
            self.feed(
                node,
                Event::Answered {
                    node: node_index,
                    tag,
                    result,
                },
            );
        }
    }

    fn feed(&mut self, node: usize, event: Event) {
        let now = self.now;
        if let Some(elector) = &mut self.nodes[node].elector {
            elector.machine.handle(event, now);
            self.flush(node);
        }
    }

    fn tick(&mut self, node: usize, boot: u64) {
        let now = self.now;
        for elector in 0..self.scenario.electors {
            if self.rng.next_u64() % 4 == 0 {
                self.send(
                    node,
                    elector,
                    Happening::Hello {
                        to: elector,
                        from: node,
                        boot,
                    },
                );
            }
        }
        if let Some(elector) = &mut self.nodes[node].elector {
            let silent = elector
                .members
                .iter()
                .filter(|(_, (_, heard))| now.since(*heard) > SILENCE);
            let silent: Vec<usize> = silent.map(|(member, _)| *member).collect();
            let messages = elector.consensus.tick(now, &mut self.rng);
            self.send_consensus(node, messages);
            self.flush(node);
            silent
                .into_iter()
                .for_each(|member| self.leave(node, member, "silent for too long"));
        }
        if self.nodes[node].boot == boot && self.nodes[node].up {
            self.later(TICK, Happening::Tick { node, boot });
        }
    }

    fn send_consensus(&mut self, from: usize, messages: Vec<(usize, election::Message)>) {
        for (to, message) in messages {
            self.send(from, to, Happening::Consensus { to, from, message });
        }
    }

    /// Executes commands and passes on what the consensus says until both are silent.
    fn flush(&mut self, node: usize) {
        loop {
            let Some(elector) = &mut self.nodes[node].elector else {
                return;
            };
            let outputs = elector.consensus.take_outputs();
            let command = if outputs.is_empty() {
                elector.machine.poll_command()
            } else {
                None
            };
            if outputs.is_empty() && command.is_none() {
                break;
            }
            for output in outputs {
                self.decided(node, output);
            }
            if let Some(command) = command {
                self.commands += 1;
                if let Some(fault) = self.due_fault() {
                    self.strike(fault, Some(node));
                    if !self.nodes[node].up {
                        return;
                    }
                }
                self.execute(node, command);
            }
        }
        self.after_flush(node);
    }

    fn after_flush(&mut self, node: usize) {
        let (now, boot) = (self.now, self.nodes[node].boot);
        let Some(elector) = &mut self.nodes[node].elector else {
            return;
        };
        if elector.epoch.is_some() && elector.machine.epoch().is_none() {
            elector.epoch = None;
            elector.consensus.resign(now, &mut self.rng);
            elector.consensus.take_outputs();
        }
        let Some(elector) = &mut self.nodes[node].elector else {
            return;
        };
        if let Some(deadline) = elector.machine.next_deadline()
            && elector.wake.is_none_or(|wake| deadline < wake)
        {
            elector.wake = Some(deadline);
            self.at(deadline.max(now), Happening::Wake { node, boot });
        }
    }

    fn decided(&mut self, node: usize, output: Output) {
        let now = self.now;
        let Some(elector) = &mut self.nodes[node].elector else {
            return;
        };
        match output {
            Output::Elected(epoch, decisions) => {
                elector.epoch = Some(epoch);
                elector.machine.handle(Event::Elected { epoch, decisions }, now);
                self.facts.note(now, Fact::Elected { node, epoch });
            }
            Output::Deposed(reason) => {
                elector.epoch = None;
                elector.machine.handle(Event::Deposed { reason }, now);
            }
            Output::Committed(entry) => {
                elector.machine.handle(Event::Committed((*entry).clone()), now);
                self.committed(&entry);
            }
        }
    }

    fn committed(&mut self, entry: &Entry) {
        match entry {
            Entry::RoundMark(key) => {
                if self.marked.insert(*key) {
                    self.facts.note(self.now, Fact::Marked { key: *key });
                }
            }
            Entry::RunEnded { .. } if !self.ended => {
                self.ended = true;
                let keepers = self.nodes[..self.scenario.electors].iter();
                let keepers = keepers.filter(|node| self.whole_result(node).is_some()).count();
                let electors = self.scenario.electors;
                self.facts.note(self.now, Fact::Ended { keepers, electors });
            }
            Entry::RunAccepted { .. } => self.accepted = true,
            Entry::RunEnded { .. } => {}
        }
    }

    fn whole_result<'a>(&self, node: &'a Node) -> Option<&'a (Epoch, Vec<RunRecord>)> {
        let kept = node.agent.results.get(&RUN)?;
        matches!(kept.1.last(), Some(RunRecord::Ended(_))).then_some(kept)
    }

    fn execute(&mut self, node: usize, command: Command) {
        match command {
            Command::Propose(entry) => {
                if let Some(elector) = &mut self.nodes[node].elector {
                    let messages = elector.consensus.propose(entry);
                    self.send_consensus(node, messages);
                }
            }
            Command::Reply { reply, .. } => {
                if reply == SubmitReply::Accepted {
                    self.accepted = true;
                }
            }
            Command::Send {
                node: to,
                tag,
                request,
                deadline,
            } => self.call(node, to.usize(), tag, request, deadline),
        }
    }

    fn call(&mut self, from: usize, to: usize, tag: CallTag, request: Box<Request>, deadline: Duration) {
        if let Request::Start(start) = &*request {
            self.facts.note(self.now, Fact::StartSent { key: start.key });
        }
        self.calls += 1;
        let (call, from_boot) = (self.calls, self.nodes[from].boot);
        let Some(elector) = &mut self.nodes[from].elector else {
            return;
        };
        elector.calls.insert(call, (to, tag));
        let boot = elector.members.get(&to).map(|(boot, _)| *boot);
        let over = |wait, fault| {
            (
                wait,
                Happening::CallOver {
                    node: from,
                    boot: from_boot,
                    call,
                    fault,
                },
            )
        };
        let (wait, over) = match boot {
            Some(boot) => {
                self.send(
                    from,
                    to,
                    Happening::Asked {
                        to,
                        boot,
                        from,
                        from_boot,
                        call,
                        request,
                    },
                );
                over(deadline, CallFault::Timeout)
            }
            None => over(
                Duration::ZERO,
                CallFault::Lost {
                    reason: "not connected".to_owned(),
                },
            ),
        };
        self.later(wait, over);
    }

    // Faults and the client.

    fn client(&mut self) {
        self.later(Duration::from_millis(200), Happening::Client);
        let cancels = !self.cancelled && self.scenario.cancel.is_some_and(|at| self.now >= at);
        for node in 0..self.scenario.electors {
            let Node {
                up,
                paused_until,
                elector,
                ..
            } = &self.nodes[node];
            let commands = elector.as_ref().is_some_and(|e| e.machine.epoch().is_some());
            if !*up || *paused_until > self.now || !commands {
                continue;
            }
            if !self.accepted {
                let plan = Box::new(self.scenario.plan.clone());
                self.feed(
                    node,
                    Event::Submit {
                        ticket: Ticket(self.calls),
                        run: RUN,
                        plan,
                        wall_seconds: 0,
                    },
                );
            } else if cancels {
                self.cancelled = true;
                self.feed(node, Event::Cancel { run: None });
            }
        }
    }

    /// A fault that strikes when this many commands have been given.
    fn due_fault(&mut self) -> Option<Fault> {
        let commands = self.commands;
        let due = self.scenario.faults.iter().find(|(when, _)| match when {
            faults::When::Command(nth) => *nth == commands,
            faults::When::At(_) => false,
        });
        due.filter(|_| self.now < self.scenario.healed)
            .map(|(_, fault)| *fault)
    }

    fn resolve(&self, who: Who, emitter: Option<usize>) -> usize {
        let coordinators = self.nodes.iter().enumerate().filter(|(_, node)| node.up);
        let coordinators = coordinators.filter_map(|(i, node)| Some((node.elector.as_ref()?.epoch?, i)));
        match who {
            Who::Node(node) => node % self.nodes.len(),
            Who::Coordinator => emitter
                .or_else(|| coordinators.max().map(|(_, i)| i))
                .unwrap_or(0),
        }
    }

    fn strike(&mut self, fault: Fault, emitter: Option<usize>) {
        match fault {
            Fault::Kill { who, away, state } => {
                let node = self.resolve(who, emitter);
                if self.nodes[node].up {
                    self.nodes[node].up = false;
                    self.facts.note(self.now, Fact::Away { node });
                    self.later(away, Happening::Restart { node, state });
                }
            }
            Fault::Pause { who, away } => {
                let node = self.resolve(who, emitter);
                self.facts.note(self.now, Fact::Away { node });
                self.nodes[node].paused_until = self.now.after(away);
            }
            Fault::Cut { who, sides, way } => {
                self.facts.note(self.now, Fact::Network { whole: false });
                let center = self.resolve(who, emitter);
                let mut with: Vec<usize> = (0..self.nodes.len())
                    .filter(|n| sides >> n & 1 == 1 && *n != center)
                    .collect();
                let without: Vec<usize> = (0..self.nodes.len())
                    .filter(|n| !with.contains(n) && *n != center)
                    .collect();
                with.push(center);
                match way {
                    faults::Way::Both => {
                        self.net.cut(&with, &without);
                        self.net.cut(&without, &with);
                    }
                    faults::Way::Out => self.net.cut(&with, &without),
                    faults::Way::In => self.net.cut(&without, &with),
                }
            }
            Fault::Lossy { loss, jitter } => {
                self.facts.note(self.now, Fact::Network { whole: false });
                (self.net.loss, self.net.jitter) = (loss, jitter);
            }
            Fault::Mend => self.mend(),
        }
    }

    fn mend(&mut self) {
        self.net.heal();
        self.facts.note(self.now, Fact::Network { whole: true });
    }

    /// The process starts again. State is lost by one elector at a time: a majority without state is beyond the design.
    fn restart(&mut self, node: usize, state: State) {
        let (now, electors) = (self.now, self.scenario.electors);
        let others_mute = self
            .nodes
            .iter()
            .filter_map(|n| n.elector.as_ref())
            .any(|e| e.consensus.is_mute());
        let config = self.config.clone();
        let own = &mut self.nodes[node];
        own.boot += 1;
        own.up = true;
        own.paused_until = now;
        let loses = state == State::Lost && !(own.elector.is_some() && others_mute);
        if loses {
            own.agent = Agent::new(electors);
            own.life += 1;
        } else {
            own.agent.restart(electors);
        }
        if let Some(elector) = &mut own.elector {
            if loses {
                elector.consensus.lose_state(now, &mut self.rng);
            } else {
                elector.consensus.restart(now, &mut self.rng);
            }
            elector.machine = Coordinator::new(config);
            elector.members.clear();
            elector.calls.clear();
            (elector.wake, elector.epoch) = (None, None);
        }
        if loses {
            self.facts.note(now, Fact::Lost { node });
        }
        self.facts.note(now, Fact::Restarted { node });
        let boot = self.nodes[node].boot;
        self.later(Duration::ZERO, Happening::Tick { node, boot });
    }

    fn finish(mut self) -> Facts {
        let kept = self.nodes[..self.scenario.electors]
            .iter()
            .filter_map(|node| self.whole_result(node));
        if let (true, Some((_, records))) = (self.ended, kept.max_by_key(|(epoch, _)| *epoch)) {
            self.facts.result = records.clone();
        }
        let journals = self.nodes.into_iter().map(|node| node.agent.journal).enumerate();
        self.facts.journals = journals.collect();
        self.facts
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

fn key_of(observation: &bench_core::record::Observation) -> RoundKey {
    RoundKey {
        run: observation.key.run,
        round: observation.round,
        epoch: observation.key.epoch,
        attempt: observation.key.attempt,
    }
}

/// How often an elector looks at its clock and an agent may give a sign of life.
const TICK: Duration = Duration::from_millis(100);

/// Silence after which a node is no member: several signs of life are missing.
const SILENCE: Duration = Duration::from_millis(3_000);

/// How long after the faults a run may take to end: every deadline of the machine once, and the rounds.
const LIVENESS: Duration = Duration::from_secs(240);
