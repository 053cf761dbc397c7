//! Which backend measures which kind of test, and what this version cannot measure.

use std::fmt;
use std::sync::Arc;

use bench_core::node::Capability;
use bench_core::plan::{Means, TestKind};

use super::Backend;
use super::sim::{Sim, SimNetwork};
use super::tcp::Tcp;
use super::verbs::Verbs;

/// The backends of one worker.
#[derive(Clone)]
pub struct Backends {
    sockets: Arc<dyn Backend>,
    rdma: Arc<dyn Backend>,
}

/// The backends that move real data.
pub fn backends() -> Backends {
    Backends { sockets: Arc::new(Tcp), rdma: Arc::new(Verbs) }
}

impl Backends {
    /// Backends that measure on a modelled fabric instead.
    pub fn simulated(network: Arc<SimNetwork>) -> Self {
        let model: Arc<dyn Backend> = Arc::new(Sim::new(network));
        Self { sockets: Arc::clone(&model), rdma: model }
    }

    /// Backends that use this one for the kinds of test that need sockets.
    pub fn with_sockets(sockets: Arc<dyn Backend>) -> Self {
        Self { sockets, rdma: Arc::new(Verbs) }
    }

    /// The backend for a kind of test.
    pub fn of(&self, kind: TestKind) -> &Arc<dyn Backend> {
        match kind.means() {
            Means::Tcp => &self.sockets,
            Means::Rdma(_) => &self.rdma,
        }
    }

    /// What is present, then what is absent with its reason.
    pub fn capabilities(&self) -> Vec<Capability> {
        [self.sockets.capability(), self.rdma.capability()]
            .into_iter()
            .chain(NOT_BUILT.map(|name| Capability {
                name: name.to_owned(),
                absent: Some("not built into this version".to_owned()),
            }))
            .collect()
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backends({:?})", self.capabilities())
    }
}

/// Backends that the design has and this version has not.
const NOT_BUILT: [&str; 2] = ["cuda", "nccl"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_built_is_listed_with_its_reason() {
        let all = backends().capabilities();
        let absent: Vec<_> = all.iter().filter(|c| c.absent.is_some()).map(|c| c.name.as_str()).collect();
        assert_eq!(absent, ["verbs", "cuda", "nccl"]);
        assert_eq!(all.first().map(|c| c.name.as_str()), Some("tcp"));
    }
}
