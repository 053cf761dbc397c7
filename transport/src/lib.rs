//! All IO between nodes: the control mesh over QUIC (feature `control`) and the measuring backends (feature `data`).
//!
//! The agent links `control` only, the worker `data` only: an agent loads no vendor library and touches no data plane.

pub mod clock;
#[cfg(feature = "control")]
pub mod control;
#[cfg(feature = "data")]
pub mod data;
