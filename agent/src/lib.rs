//! placeholder

pub mod build_id;
pub mod cpus;
pub mod pipe;
pub mod supervise;
#[cfg(feature = "worker")]
pub mod worker;
