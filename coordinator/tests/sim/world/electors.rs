//! The electors of the simulated mesh: membership, consensus, and the machine's commands.

use std::time::Duration;

use bench_core::ids::{BootId, Epoch, NodeIndex};
use bench_core::message::{Request, Response, SubmitReply};
use bench_core::record::RunRecord;
use coordinator::{CallFault, CallTag, Command, Entry, Event};

use super::{Happening, Node, RUN, SILENCE, TICK, World};
use crate::election::{self, Output};
use crate::facts::Fact;

impl World {
    pub(super) fn hello(&mut self, to: usize, from: usize, boot: u64) {
        let now = self.now;
        let Some(elector) = &mut self.nodes[to].elector else {
            return;
        };
        let before = elector.members.insert(from, (boot, now));
        let told = elector.consensus.tells().max(self.nodes[to].agent.fence.highest());
        let is_mute = self.nodes[to].elector.as_ref().is_some_and(|e| e.consensus.is_mute());
        if let (Some(epoch), false) = (told, is_mute) {
            self.send(to, from, Happening::Told { to: from, boot, elector: to, epoch });
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

    pub(super) fn join(&mut self, elector: usize, node: usize, boot: u64) {
        if let Some(at) = &mut self.nodes[elector].elector {
            at.members.insert(node, (boot, self.now));
        }
        self.facts.note(self.now, Fact::Joined { elector, node });
        let mut id = [node as u8; 16];
        id[..8].copy_from_slice(&boot.to_le_bytes());
        let joined = Event::Joined { node: NodeIndex(node as u16), boot: BootId(id) };
        self.feed(elector, joined);
    }

    pub(super) fn leave(&mut self, elector: usize, node: usize, reason: &str) {
        let Some(at) = &mut self.nodes[elector].elector else {
            return;
        };
        at.members.remove(&node);
        let lost: Vec<u64> =
            at.calls.iter().filter(|(_, (to, _))| *to == node).map(|(call, _)| *call).collect();
        self.facts.note(self.now, Fact::Left { elector, node });
        let left = Event::Left { node: NodeIndex(node as u16), reason: reason.to_owned() };
        self.feed(elector, left);
        for call in lost {
            let reason = reason.to_owned();
            self.answered(elector, call, Err(CallFault::Lost { reason }));
        }
    }

    pub(super) fn answered(&mut self, node: usize, call: u64, result: Result<Response, CallFault>) {
        let Some(elector) = &mut self.nodes[node].elector else {
            return;
        };
        if let Some((to, tag)) = elector.calls.remove(&call) {
            let node_index = NodeIndex(to as u16);
            self.feed(node, Event::Answered { node: node_index, tag, result });
        }
    }

    pub(super) fn feed(&mut self, node: usize, event: Event) {
        let now = self.now;
        if let Some(elector) = &mut self.nodes[node].elector {
            elector.machine.handle(event, now);
            self.flush(node);
        }
    }

    pub(super) fn tick(&mut self, node: usize, boot: u64) {
        let now = self.now;
        for elector in 0..self.scenario.electors {
            if self.rng.next_u64().is_multiple_of(4) {
                self.send(node, elector, Happening::Hello { to: elector, from: node, boot });
            }
        }
        if let Some(elector) = &mut self.nodes[node].elector {
            let silent = elector.members.iter().filter(|(_, (_, heard))| now.since(*heard) > SILENCE);
            let silent: Vec<usize> = silent.map(|(member, _)| *member).collect();
            let messages = elector.consensus.tick(now, &mut self.rng);
            self.send_consensus(node, messages);
            self.flush(node);
            silent.into_iter().for_each(|member| self.leave(node, member, "silent for too long"));
        }
        if self.nodes[node].boot == boot && self.nodes[node].up {
            self.later(TICK, Happening::Tick { node, boot });
        }
    }

    pub(super) fn send_consensus(&mut self, from: usize, messages: Vec<(usize, election::Message)>) {
        for (to, message) in messages {
            self.send(from, to, Happening::Consensus { to, from, message });
        }
    }

    /// Executes commands and passes on what the consensus says until both are silent.
    pub(super) fn flush(&mut self, node: usize) {
        loop {
            let Some(elector) = &mut self.nodes[node].elector else {
                return;
            };
            let outputs = elector.consensus.take_outputs();
            let command = if outputs.is_empty() { elector.machine.poll_command() } else { None };
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

    pub(super) fn after_flush(&mut self, node: usize) {
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

    pub(super) fn decided(&mut self, node: usize, output: Output) {
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

    pub(super) fn committed(&mut self, entry: &Entry) {
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

    pub(super) fn whole_result<'a>(&self, node: &'a Node) -> Option<&'a (Epoch, Vec<RunRecord>)> {
        let kept = node.agent.results.get(&RUN)?;
        matches!(kept.1.last(), Some(RunRecord::Ended(_))).then_some(kept)
    }

    pub(super) fn execute(&mut self, node: usize, command: Command) {
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
            Command::Send { node: to, tag, request, deadline } => {
                self.call(node, to.usize(), tag, request, deadline)
            }
        }
    }

    pub(super) fn call(
        &mut self,
        from: usize,
        to: usize,
        tag: CallTag,
        request: Box<Request>,
        deadline: Duration,
    ) {
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
        let over = |wait, fault| (wait, Happening::CallOver { node: from, boot: from_boot, call, fault });
        let (wait, over) = match boot {
            Some(boot) => {
                self.send(from, to, Happening::Asked { to, boot, from, from_boot, call, request });
                over(deadline, CallFault::Timeout)
            }
            None => over(Duration::ZERO, CallFault::Lost { reason: "not connected".to_owned() }),
        };
        self.later(wait, over);
    }
}
