//! The agent: everything of railmesh that is a process.
//!
//! ```text
//!  cli ──▶ node (agent) ──▶ supervise ══pipe══▶ worker
//!     ├──▶ client ──▶ output
//!     └──▶ demo (many agents on loopback)
//! ```
//! Decisions are made in `bench-core` and `coordinator`, which are pure; this crate waits, feeds and executes.

pub mod build_id;
pub mod cli;
pub mod client;
pub mod cpus;
pub mod demo;
pub mod electors;
pub mod inventory;
pub mod node;
pub mod output;
pub mod pipe;
mod runtime;
pub mod supervise;
#[cfg(feature = "worker")]
pub mod worker;
