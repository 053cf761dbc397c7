//! The agents of the simulated mesh: they obey, arm, measure and answer.

use std::time::Duration;

use bench_core::message::{Prepare, PrepareReply, Request, Response, RoundKey};
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::ClockOffset;
use coordinator::Passage;

use super::{Back, Happening, World};
use crate::agent::{self, Agent};
use crate::facts::Fact;

impl World {
    pub(super) fn serve(&mut self, node: usize, back: Back, request: Request) {
        let law = self.scenario.law;
        let epoch = match &request {
            Request::Probe { epoch, .. }
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
            self.facts.note(self.now, Fact::Fence { node, life, epoch: highest });
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

    pub(super) fn obey(&mut self, node: usize, back: Back, request: Request) {
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
            Request::StoreResult { epoch, run, from, records } => {
                let response = if agent.keep(epoch, run, from as usize, records) {
                    Response::Done
                } else {
                    Response::Invalid { reason: "the batches before are not here".to_owned() }
                };
                self.answer(node, back, response);
            }
            Request::Prepare(prepare) => {
                let wait = Duration::from_micros(200 + self.rng.next_u64() % 3_000);
                let prepare = Box::new(prepare);
                self.later(wait, Happening::Armed { node, boot, back, prepare });
            }
            Request::Start(start) => {
                let key = start.key;
                let Some(ends) = agent.armed.remove(&key) else {
                    return self.answer(node, back, Response::Observations(Vec::new()));
                };
                let ends: Vec<_> = ends.into_iter().filter(|e| start.cells.contains(&e.cell.id)).collect();
                let traffic = ends.iter().map(|e| e.case.warmup + e.case.window).max().unwrap_or_default();
                let over = start.at.max(self.now).after(traffic + start.tail);
                agent.running.insert(key, (start, ends));
                self.facts.note(self.now, Fact::StartObeyed { node, key });
                self.at(over, Happening::RoundOver { node, boot, back, key });
            }
            other => panic!("not a command: {other:?}"),
        }
    }

    pub(super) fn armed(&mut self, node: usize, back: Back, prepare: Prepare) {
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
        let clock = Some(ClockOffset { offset_ns: 0, error_ns: 20_000 });
        self.answer(node, back, Response::Prepared(PrepareReply { failed, clock }));
    }

    pub(super) fn round_over(&mut self, node: usize, back: Back, key: RoundKey) {
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
        self.nodes[node].agent.journal.extend(observations.iter().cloned());
        self.answer(node, back, Response::Observations(observations));
    }

    pub(super) fn answer(&mut self, node: usize, back: Back, response: Response) {
        let Back { to, boot, call } = back;
        let response = Box::new(response);
        self.send(node, to, Happening::Answered { to, boot, call, response });
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
