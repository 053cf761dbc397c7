//! What an agent knows of its mesh without asking: whether it has begun, who is missing and why, and its own part.

use bench_core::ids::NodeIndex;
use bench_core::message::Standing;

use super::{Agent, Node};
use crate::one_shot::Part;

impl Agent {
    /// Whether the electors have begun: a majority of them votes, or the one on this node does.
    pub fn has_begun(&self) -> bool {
        let votes = self.node.electors.get().is_some_and(|own| match own.view().standing {
            Standing::Voter { .. } => true,
            Standing::NoElector | Standing::Empty { .. } | Standing::Mute => false,
        });
        votes || self.node.fence.is_open()
    }

    /// Who is not connected with this node and should be, with the reason where there is one.
    pub fn missing(&self) -> Vec<String> {
        let named = self.node.absent().into_iter().map(|node| {
            let name = &self.node.roster.peers[node.usize()].node;
            self.node
                .trouble_with(node)
                .map_or_else(|| format!("{name} has not joined"), |why| format!("{name} ({why})"))
        });
        named.collect()
    }

    /// What this node is to the mesh at this moment.
    pub fn part(&self) -> Part {
        match &self.node.post {
            Some(post) if post.epoch().is_some() => Part::Coordinator,
            Some(_) => Part::Elector,
            None => Part::Member,
        }
    }
}

impl Node {
    /// Takes note of why an elector cannot be reached, or that it can.
    pub(super) fn trouble(&self, elector: NodeIndex, reason: Option<String>) {
        let mut troubles = self.network().troubles.lock().expect(TROUBLES);
        match reason {
            Some(reason) => troubles.insert(elector, reason),
            None => troubles.remove(&elector),
        };
    }

    /// Why an elector cannot be reached.
    pub(super) fn trouble_with(&self, elector: NodeIndex) -> Option<String> {
        self.network().troubles.lock().expect(TROUBLES).get(&elector).cloned()
    }

    /// Nodes that this one should be connected with and is not: on an elector, all others.
    pub(super) fn absent(&self) -> Vec<NodeIndex> {
        match &self.post {
            Some(post) => post.absent(),
            None => {
                let there = |elector: &NodeIndex| {
                    self.network().mesh.connected_to(&self.roster.peers[elector.usize()].node).is_some()
                };
                self.roster.electors.iter().copied().filter(|elector| !there(elector)).collect()
            }
        }
    }
}

/// Why this lock cannot be poisoned.
const TROUBLES: &str = "nothing panics while the troubles are held";
