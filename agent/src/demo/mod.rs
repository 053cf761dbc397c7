//! The demo's mesh: agent processes on loopback addresses of their own, with the faults to be found.

mod fault;
mod mesh;

pub use fault::{DemoFault, FaultError};
pub use mesh::{DemoMesh, DemoSpec, SpecError};
