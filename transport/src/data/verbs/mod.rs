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

mod completion_queue;
mod context;
mod devices;
mod endpoint;
mod errno;
mod error;
mod gpudirect;
mod library;
mod netdev;
mod protection_domain;
mod queue_pair;
mod region;
mod requests;
mod result;
mod sys;
mod usable;

use std::sync::OnceLock;

use bench_core::message::CellTask;
use bench_core::node::Capability;
use bench_core::record::Failure;

use self::endpoint::VerbsEndpoint;
use super::{Backend, Endpoint};

/// Measures with RDMA over reliable connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verbs;

impl Backend for Verbs {
    /// Why this process cannot measure RDMA: the library or the devices.
    fn capability(&self) -> Capability {
        // Devices stay once they were there, and opening one takes milliseconds on real ones.
        static USABLE: OnceLock<()> = OnceLock::new();
        let absent = match USABLE.get() {
            Some(()) => None,
            None => usable::usable().map(|()| *USABLE.get_or_init(|| ())).err(),
        };
        Capability { name: "verbs".to_owned(), absent: absent.map(|reason| reason.to_string()) }
    }

    fn prepare(&self, task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
        Ok(Box::new(VerbsEndpoint::prepare(task)?))
    }
}
