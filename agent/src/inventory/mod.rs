//! What this node says of itself: host, clock source, rails, GPUs and HCAs.
//!
//! Everything of the kernel is read below a root path, so that a captured tree can stand in for a live machine.

mod host;
mod rails;
#[cfg(test)]
mod testing;
mod topology;

pub use host::{Host, read_host, wall_seconds};
pub use rails::{Interface, RailChoice, RailError, Site, live_interfaces};
pub use topology::read_topology;
