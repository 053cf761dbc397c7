//! Faults as they strike, the client that wants its run, and what is left in the end.

use std::time::Duration;

use coordinator::{Coordinator, Event, Ticket};

use super::{Happening, Node, RUN, World};
use crate::agent::Agent;
use crate::facts::{Fact, Facts};
use crate::faults::{self, Fault, State, Who};

impl World {
    pub(super) fn client(&mut self) {
        self.later(Duration::from_millis(200), Happening::Client);
        let cancels = !self.cancelled && self.scenario.cancel.is_some_and(|at| self.now >= at);
        for node in 0..self.scenario.electors {
            let Node { up, paused_until, elector, .. } = &self.nodes[node];
            let commands = elector.as_ref().is_some_and(|e| e.machine.epoch().is_some());
            if !*up || *paused_until > self.now || !commands {
                continue;
            }
            if !self.accepted {
                let plan = Box::new(self.scenario.plan.clone());
                self.feed(
                    node,
                    Event::Submit { ticket: Ticket(self.calls), run: RUN, plan, wall_seconds: 0 },
                );
            } else if cancels {
                self.cancelled = true;
                self.feed(node, Event::Cancel { run: None });
            }
        }
    }

    /// A fault that strikes when this many commands have been given.
    pub(super) fn due_fault(&mut self) -> Option<Fault> {
        let commands = self.commands;
        let due = self.scenario.faults.iter().find(|(when, _)| match when {
            faults::When::Command(nth) => *nth == commands,
            faults::When::At(_) => false,
        });
        due.filter(|_| self.now < self.scenario.healed).map(|(_, fault)| *fault)
    }

    pub(super) fn resolve(&self, who: Who, emitter: Option<usize>) -> usize {
        let coordinators = self.nodes.iter().enumerate().filter(|(_, node)| node.up);
        let coordinators = coordinators.filter_map(|(i, node)| Some((node.elector.as_ref()?.epoch?, i)));
        match who {
            Who::Node(node) => node % self.nodes.len(),
            Who::Coordinator => emitter.or_else(|| coordinators.max().map(|(_, i)| i)).unwrap_or(0),
        }
    }

    pub(super) fn strike(&mut self, fault: Fault, emitter: Option<usize>) {
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
                let mut with: Vec<usize> =
                    (0..self.nodes.len()).filter(|n| sides >> n & 1 == 1 && *n != center).collect();
                let without: Vec<usize> =
                    (0..self.nodes.len()).filter(|n| !with.contains(n) && *n != center).collect();
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

    pub(super) fn mend(&mut self) {
        self.net.heal();
        self.facts.note(self.now, Fact::Network { whole: true });
    }

    /// The process starts again. State is lost by one elector at a time: a majority without state is beyond the design.
    pub(super) fn restart(&mut self, node: usize, state: State) {
        let (now, electors) = (self.now, self.scenario.electors);
        let others_mute = self.nodes.iter().filter_map(|n| n.elector.as_ref()).any(|e| e.consensus.is_mute());
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

    pub(super) fn finish(mut self) -> Facts {
        let kept = self.nodes[..self.scenario.electors].iter().filter_map(|node| self.whole_result(node));
        if let (true, Some((_, records))) = (self.ended, kept.max_by_key(|(epoch, _)| *epoch)) {
            self.facts.result = records.clone();
        }
        let journals = self.nodes.into_iter().map(|node| node.agent.journal).enumerate();
        self.facts.journals = journals.collect();
        self.facts
    }
}
