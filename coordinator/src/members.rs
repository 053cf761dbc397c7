//! Who of the roster is here.

use bench_core::ids::{BootId, NodeIndex};

/// How a node of the roster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It has not been seen in this epoch.
    Never,
    /// It is a member.
    Present {
        /// Its process.
        boot: BootId,
    },
    /// It was a member.
    Gone {
        /// Why it is not any more.
        reason: String,
    },
}

/// Who of the roster is here, in roster order.
#[derive(Clone, Debug)]
pub struct Members {
    states: Vec<MemberState>,
}

impl Members {
    /// Nobody of `nodes` nodes is here yet.
    pub fn none_of(nodes: usize) -> Self {
        Self { states: vec![MemberState::Never; nodes] }
    }

    /// Takes a node in.
    pub fn join(&mut self, node: NodeIndex, boot: BootId) {
        if let Some(state) = self.states.get_mut(node.usize()) {
            *state = MemberState::Present { boot };
        }
    }

    /// Takes a node out.
    pub fn leave(&mut self, node: NodeIndex, reason: String) {
        if let Some(state) = self.states.get_mut(node.usize()) {
            *state = MemberState::Gone { reason };
        }
    }

    /// Whether a node is here.
    pub fn is_present(&self, node: NodeIndex) -> bool {
        self.states.get(node.usize()).is_some_and(|state| match state {
            MemberState::Present { .. } => true,
            MemberState::Never | MemberState::Gone { .. } => false,
        })
    }

    /// Everybody who is here.
    pub fn present(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        (0..self.states.len()).map(|i| NodeIndex(i as u16)).filter(|node| self.is_present(*node))
    }

    /// Everybody who is not.
    pub fn absent(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        (0..self.states.len()).map(|i| NodeIndex(i as u16)).filter(|node| !self.is_present(*node))
    }

    /// Whether the whole roster is here.
    pub fn complete(&self) -> bool {
        self.absent().next().is_none()
    }

    /// The states in roster order.
    pub fn states(&self) -> &[MemberState] {
        &self.states
    }
}
