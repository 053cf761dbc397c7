//! The fence of this node, shared by everything that serves commands. The rule is [`coordinator::Fence`]'s.

use std::sync::{Mutex, MutexGuard};

use bench_core::ids::{Epoch, NodeIndex};
use bench_core::message::Response;
use coordinator::Passage;

/// The fence of this node.
#[derive(Debug)]
pub(crate) struct Fence {
    rule: Mutex<coordinator::Fence>,
}

impl Fence {
    /// The fence of a process that just started.
    pub(crate) fn new(electors: usize) -> Self {
        Self { rule: Mutex::new(coordinator::Fence::new(electors)) }
    }

    /// Whether a command of the elector that `epoch` names may be obeyed.
    ///
    /// # Errors
    /// The answer that refuses it.
    #[expect(clippy::result_large_err, reason = "the error is the answer itself, moved once to the wire")]
    pub(crate) fn pass(&self, epoch: Epoch) -> Result<(), Response> {
        match self.rule().pass(epoch) {
            Passage::Open => Ok(()),
            Passage::Stale { seen } => Err(Response::StaleEpoch { seen }),
            Passage::Shut { told, majority } => Err(Response::Invalid {
                reason: format!(
                    "this process just started and has read the epoch from {told} of {majority} electors so far"
                ),
            }),
        }
    }

    /// An elector told the highest epoch that it has seen or voted for.
    pub(crate) fn learn(&self, elector: NodeIndex, highest: Option<Epoch>) {
        self.rule().learn(elector, highest);
    }

    /// Whether a majority of the electors has told its epoch.
    pub(crate) fn is_open(&self) -> bool {
        self.rule().is_open()
    }

    /// The highest epoch seen.
    pub(crate) fn highest(&self) -> Option<Epoch> {
        self.rule().highest()
    }

    fn rule(&self) -> MutexGuard<'_, coordinator::Fence> {
        self.rule.lock().expect("nothing panics while the fence is held")
    }
}
