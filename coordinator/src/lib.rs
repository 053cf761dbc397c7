//! The run machine: events and the time go in, commands come out.
//!
//! Deterministic: no runtime, socket, clock or randomness. The agent's driver feeds [`Event`]s with the time at which
//! they happened, takes [`Command`]s until there are none, and wakes the machine at [`Coordinator::next_deadline`].
//!
//! ```text
//!            Submit, Cancel            Joined, Left             Answered               Committed, Elected, Deposed
//!                 │                        │                       │                            │
//!                 ▼                        ▼                       ▼                            ▼
//!            ┌──────────────────────────────────────────────────────────────────────────────────────┐
//!            │ Coordinator: members ── run: join ▸ probe ▸ measure ▸ retry ▸ retest ▸ ended           │
//!            │                                      └ current round, next round                       │
//!            └──────────────────────────────────────────────────────────────────────────────────────┘
//!                 │                        │                       │
//!                 ▼                        ▼                       ▼
//!            Reply (client)          Send (agent)            Propose (electors)         records() (read only)
//! ```
//! Consensus lives outside: the machine is told that it is elected, proposes entries and hears what was committed.
#![forbid(unsafe_code)]

mod command;
mod config;
mod decision;
mod event;
mod fence;
mod machine;
mod members;
mod muster;
mod run;

pub use command::Command;
pub use config::Config;
pub use decision::{AcceptedRun, Decisions, Entry};
pub use event::{CallFault, CallTag, Event, Ticket};
pub use fence::{Fence, Passage};
pub use machine::Coordinator;
pub use members::{MemberState, Members};
pub use muster::Attendance;
pub use run::{RunPhase, RunView};
