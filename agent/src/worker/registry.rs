//! Which backend measures which task.

use std::sync::Arc;

use bench_core::message::CellTask;
use bench_core::node::Capability;
use bench_core::record::{Failure, FailureKind, Phase};
use transport::data::{Backend, Backends};

/// Chooses backends.
pub trait Registry: Send + Sync {
    /// What can be measured, and what cannot and why.
    fn capabilities(&self) -> Vec<Capability>;

    /// The backend for a task.
    ///
    /// # Errors
    /// [`Failure`] in phase `Prepare` if there is none, or this node lacks what it needs.
    fn backend(&self, task: &CellTask) -> Result<Arc<dyn Backend>, Failure>;
}

impl Registry for Backends {
    fn capabilities(&self) -> Vec<Capability> {
        Self::capabilities(self)
    }

    fn backend(&self, task: &CellTask) -> Result<Arc<dyn Backend>, Failure> {
        let backend = self.of(task.case.kind);
        match backend.capability() {
            Capability { absent: None, .. } => Ok(Arc::clone(backend)),
            Capability { absent: Some(why), name } => Err(Failure {
                kind: FailureKind::Unsupported,
                phase: Phase::Prepare,
                detail: format!("{} needs {name}, absent here: {why}", task.case.kind),
                remedy: None,
            }),
        }
    }
}
