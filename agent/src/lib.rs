//! The agent: everything of railmesh that is a process.
//!
//! ```text
//!  cli ──▶ node (agent) ──▶ supervise ══pipe══▶ worker
//!     ├──▶ client ──▶ output
//!     └──▶ demo (many agents on loopback)
//! ```
//! Decisions are made in `bench-core` and `coordinator`, which are pure; this crate waits, feeds and executes.

pub mod build_id;
#[cfg(feature = "control")]
pub mod cli;
#[cfg(feature = "control")]
pub mod client;
#[cfg(feature = "control")]
pub mod confirm;
pub mod cpus;
#[cfg(feature = "control")]
pub mod demo;
#[cfg(feature = "control")]
pub mod electors;
#[cfg(feature = "control")]
pub mod inventory;
#[cfg(feature = "control")]
pub mod node;
#[cfg(feature = "control")]
pub mod one_shot;
#[cfg(feature = "control")]
pub mod output;
#[cfg(feature = "control")]
mod patience;
pub mod pipe;
#[cfg(feature = "control")]
mod runtime;
pub mod supervise;
#[cfg(feature = "worker")]
pub mod worker;
