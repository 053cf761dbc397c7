//! Which backend measures which task.

use std::fmt;
use std::sync::Arc;

use bench_core::message::CellTask;
use bench_core::node::Capability;
use bench_core::plan::TestKind;
use bench_core::record::{Failure, FailureKind, Phase};
use transport::data::Backend;

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

/// A fixed set of backends, chosen by the test's kind.
#[derive(Clone)]
pub struct Backends(Vec<(Capability, Arc<dyn Backend>)>);

impl Backends {
    /// These backends. Each is asked for its capability once, here.
    pub fn new(backends: Vec<Arc<dyn Backend>>) -> Self {
        Self(
            backends
                .into_iter()
                .map(|backend| (backend.capability(), backend))
                .collect(),
        )
    }

    /// The backends that this program was built with.
    pub fn of_this_build() -> Self {
        Self::new(transport::data::backends())
    }
}

impl Registry for Backends {
    fn capabilities(&self) -> Vec<Capability> {
        self.0.iter().map(|(capability, _)| capability.clone()).collect()
    }

    fn backend(&self, task: &CellTask) -> Result<Arc<dyn Backend>, Failure> {
        let name = backend_name(task.case.kind);
        let refuse = |detail| Failure {
            kind: FailureKind::Unsupported,
            phase: Phase::Prepare,
            detail,
            remedy: None,
        };
        match self.0.iter().find(|(capability, _)| capability.name == name) {
            Some((Capability { absent: None, .. }, backend)) => Ok(Arc::clone(backend)),
            Some((
                Capability {
                    absent: Some(why), ..
                },
                _,
            )) => Err(refuse(format!(
                "{} needs {name}, absent here: {why}",
                task.case.kind
            ))),
            None => Err(refuse(format!(
                "{} needs {name}, which this worker was built without",
                task.case.kind
            ))),
        }
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(capability, _)| capability))
            .finish()
    }
}

/// The name in the capability of the backend that measures a kind.
fn backend_name(kind: TestKind) -> &'static str {
    match kind {
        TestKind::TcpBw | TestKind::TcpLat => "tcp",
    }
}
