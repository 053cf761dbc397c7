//! The connection to one worker, whatever the worker is: a process, or a task of this process in tests.

use std::fmt;

use bench_core::ids::RailId;
use bench_core::message::{FromWorker, ToWorker};
use tokio::sync::mpsc;

use crate::cpus::CpuSet;

/// Makes workers.
pub trait WorkerFactory: fmt::Debug + Send + Sync {
    /// Starts a worker and returns at once: that it could not be started is the link's [`LinkEvent::Ended`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    fn start(&self, spec: &WorkerSpec) -> Link;
}

/// What a worker is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSpec {
    /// The rail that it measures.
    pub rail: RailId,
    /// The processors it may use; `None` leaves it those of the thread that starts it, which may be the agent's
    /// one core.
    pub cpus: Option<CpuSet>,
}

/// The agent's end of a worker.
#[derive(Debug)]
pub struct Link {
    /// Messages to the worker. Bounded: a worker that does not read makes the sender wait. Closing it ends the worker.
    pub to: mpsc::Sender<ToWorker>,
    /// What the worker does. Bounded: the worker waits while nobody reads. Closed once the worker is gone for good.
    pub events: mpsc::Receiver<LinkEvent>,
    /// Ends the worker at once. Dropping the link does it, too.
    pub kill: Kill,
}

/// What a worker does.
#[derive(Debug)]
pub enum LinkEvent {
    /// It was started.
    Started {
        /// Its process, if it is one.
        pid: Option<u32>,
    },
    /// It says something.
    Message(Box<FromWorker>),
    /// It is dead. Nothing follows.
    Ended {
        /// Continues the sentence `worker of rail r1 (pid 123)`, such as `was killed by signal 9`.
        how: String,
    },
}

/// Ends one worker at once, with its whole process group. Calling it again does nothing.
pub struct Kill(Box<dyn Fn() + Send + Sync>);

impl Kill {
    /// Ends a worker by `kill`, which must not block.
    pub fn new(kill: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(kill))
    }

    /// Ends the worker.
    pub fn now(&self) {
        (self.0)();
    }
}

impl Drop for Kill {
    fn drop(&mut self) {
        self.now();
    }
}

impl fmt::Debug for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kill")
    }
}

/// Messages that wait for a worker: a round's worth of cells goes through in bursts, the rest waits in the handle.
pub(crate) const TO_WORKER_DEPTH: usize = 64;

/// Events that wait for the agent; each may hold a histogram, so 64 are at most some 14 MiB.
pub(crate) const EVENTS_DEPTH: usize = 64;
