//! The worker process: runs the ends of cells that its agent asks for, and answers pings meanwhile.
//!
//! ```text
//!  agent ══stdin══▶ reader (main thread) ──steps──▶ 1 thread a task ──▶ backend
//!        ◀═stdout══ outbox ◀──────────────answers──────────┘
//!        ◀═stderr══ log
//! ```
//! It may crash or hang; the agent survives it and starts another. It obeys its parent only: the end of its standard
//! input or of its parent ends it at once. How data is moved is the business of the backends in `transport::data`.

mod args;
mod in_process;
mod main;
mod registry;
mod serve;
mod tasks;

pub use in_process::InProcessFactory;
pub use main::{EXIT_ORPHAN, EXIT_SETUP, EXIT_USAGE, main_from_args};
pub use registry::Registry;
pub use serve::{EXIT_PIPE, EXIT_STUCK, probe, run};
