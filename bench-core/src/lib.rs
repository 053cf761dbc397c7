//! The pure core of railmesh: the words of the field as types, and every decision that needs no IO.
//!
//! Nothing here reads a clock, opens a file or a socket, starts a thread or looks at the environment.
//! Time comes in as [`time::Mono`]; randomness comes in as an argument. The same input gives the same
//! answer, so a run can be judged again from its records alone.
//!
//! ```text
//!  plan ──validate──▶ schedule ──rounds──▶ (agents measure) ──journal──▶ merge ──▶ verdict, blame ──▶ report
//! ```
#![forbid(unsafe_code)]

pub mod agreement;
pub mod cell;
pub mod fabric;
pub mod ids;
pub mod journal;
pub mod judge;
pub mod measure;
pub mod message;
pub mod node;
pub mod plan;
pub mod record;
pub mod report;
pub mod roster;
pub mod schedule;
pub mod time;
pub mod topology;
pub mod units;
pub mod verbs;
