//! The verbs backend: RDMA over reliable connections on InfiniBand and RoCE.
//!
//! Three floors, and unsafe code in none but these:
//!
//! | floor | what | promise |
//! |---|---|---|
//! | `sys` | the ABI of libibverbs: structures, functions, tables | the layout of the header |
//! | `result` | every verb as a function with a `Result` | errno decoded, verb and object named |
//! | one file an object | owned values | a child holds its parent, so that all are given back in the right order |
//!
//! The library is loaded when a device is first asked for: a node without it lacks a capability, nothing else.

mod context;
mod devices;
mod errno;
mod error;
mod library;
mod result;
mod sys;
mod usable;

use std::sync::OnceLock;

use bench_core::message::CellTask;
use bench_core::node::Capability;
use bench_core::record::{Failure, FailureKind, Phase};

use super::{Backend, Endpoint};

/// Measures with RDMA over reliable connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verbs;

impl Backend for Verbs {
    /// Why this process cannot measure RDMA: the library, the devices or, where one opens, this version.
    fn capability(&self) -> Capability {
        // Devices stay once they were there, and opening one takes milliseconds on real ones.
        static USABLE: OnceLock<()> = OnceLock::new();
        let absent = match USABLE.get() {
            Some(()) => None,
            None => usable::usable().map(|()| *USABLE.get_or_init(|| ())).err(),
        };
        let reason = absent.map_or_else(
            || "an RDMA device opens, but this version has no RDMA tests".to_owned(),
            |a| a.to_string(),
        );
        Capability { name: "verbs".to_owned(), absent: Some(reason) }
    }

    fn prepare(&self, task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
        Err(Failure {
            kind: FailureKind::Unsupported,
            phase: Phase::Prepare,
            detail: format!("this version has no {}", task.case.kind),
            remedy: None,
        })
    }
}
