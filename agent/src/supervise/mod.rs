//! The agent's side of its workers: finding the program, starting it, talking to it, and noticing that it died.
//!
//! ```text
//!  driver ──▶ Pool ──▶ Worker ──orders──▶ actor ──Link──▶ process tasks ══pipes══▶ worker process
//!                     (handle)           (1 task)         (4 tasks)
//!                                                            │ spawn, kill
//!                                                            ▼
//!                                                         Spawner thread, 1 reaper thread a child
//! ```
//! A worker may crash, hang or write nonsense: every request that waits for it then resolves to a
//! [`Failure`](bench_core::record::Failure) that names the rail, the process and what became of it, and the next
//! request gets a new worker. What a worker does with a task is the business of the worker module and the backends.

mod actor;
mod link;
mod locate;
mod placement;
mod pool;
mod process;
mod restarts;
mod spawner;
mod stderr;
mod worker;

pub use link::{Kill, Link, LinkEvent, WorkerFactory, WorkerSpec};
pub use locate::{LocateError, PassedOver, Places, Source, WorkerProgram, locate};
pub use placement::{FEW_CPUS, Placement, Placer, agent_core, numa_cpus, placement};
pub use pool::Pool;
pub use process::ProcessFactory;
pub use restarts::MAX_DEATHS;
pub use spawner::{Exit, Group, Spawned, Spawner};
pub use worker::{Ending, Worker};
