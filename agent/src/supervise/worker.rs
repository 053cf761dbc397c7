//! The handle of one worker: asks it to do things and waits for the answers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bench_core::ids::RailId;
use bench_core::message::{CellTask, EndpointInfo, Peer, TaskId, ToWorker};
use bench_core::node::Capability;
use bench_core::record::{Evidence, Failure, FailureKind, Outcome, Phase};
use bench_core::time::Mono;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use transport::clock;

use super::actor::{self, Order, Waiting};
use super::link::{WorkerFactory, WorkerSpec};

/// A worker that is ready, or was once. Clones mean the same worker; it is killed when the last one is dropped.
///
/// A task is asked for in order: prepare, connect, run, one at a time. Dropping the future of a request forgets the
/// answer but does not stop the task; [`Worker::abort`] does. Deadlines are the caller's: a backend keeps its own, and
/// the worker as a whole is known to be alive from its answers to pings.
#[derive(Clone, Debug)]
pub struct Worker {
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
    capabilities: Arc<[Capability]>,
}

/// How a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// What kind of failure this is to those who wait for it.
    pub kind: FailureKind,
    /// The worker and what became of it, such as `worker of rail r1 (pid 123) was killed by signal 9`.
    pub detail: String,
    /// What to do about it, where known.
    pub remedy: Option<String>,
    /// When it was noticed.
    pub at: Mono,
}

/// What the handle and the actor both see.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rail: RailId,
    pub(super) pid: OnceLock<u32>,
    /// Set before the actor drops what waits for answers.
    pub(super) ending: OnceLock<Ending>,
    /// Asks the actor to end the worker.
    pub(super) stop: Notify,
    /// Whether the worker is gone for good: reaped, if it was a process.
    pub(super) gone: watch::Sender<bool>,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    ///
    /// Cancel safe: the worker is killed. Must be called within a tokio runtime; the worker's actor is a task of it,
    /// owned by all clones of the handle, and ends with the worker.
    ///
    /// # Errors
    /// [`Failure`] in phase `Prepare`: it could not be started, died, is of another build, or was not ready in time.
    pub async fn start(factory: &dyn WorkerFactory, spec: &WorkerSpec) -> Result<Self, Failure> {
        let (orders, inbox) = mpsc::channel(ORDERS_DEPTH);
        let (ready, capabilities) = oneshot::channel();
        let shared = Arc::new(Shared {
            rail: spec.rail,
            pid: OnceLock::new(),
            ending: OnceLock::new(),
            stop: Notify::new(),
            gone: watch::Sender::new(false),
        });
        tokio::spawn(actor::live(factory.start(spec), inbox, ready, Arc::clone(&shared)));
        match capabilities.await {
            Ok(capabilities) => Ok(Self { orders, shared, capabilities: capabilities.into() }),
            Err(_) => Err(shared.failure(Phase::Prepare)),
        }
    }

    /// What it can measure.
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// Its process, if it is one.
    pub fn pid(&self) -> Option<u32> {
        self.shared.pid.get().copied()
    }

    /// How it ended; `None` while it lives.
    pub fn ending(&self) -> Option<&Ending> {
        self.shared.ending.get()
    }

    /// Sets up one end; returns where its peer finds it.
    ///
    /// # Errors
    /// The backend's [`Failure`], or how the worker ended.
    pub async fn prepare(&self, task: CellTask) -> Result<Option<EndpointInfo>, Failure> {
        let id = task.id;
        self.ask(id, ToWorker::Prepare(task), Waiting::Prepare, Phase::Prepare).await?
    }

    /// Takes a prepared end on to armed.
    ///
    /// # Errors
    /// The backend's [`Failure`], or how the worker ended.
    pub async fn connect(&self, task: TaskId, peer: Peer) -> Result<(), Failure> {
        self.ask(task, ToWorker::Connect { task, peer }, Waiting::Connect, Phase::Connect).await?
    }

    /// Runs an armed end from `at` on, on this node's clock, and returns what came out and what the end knows of its
    /// path. If the worker ends, that is the outcome.
    pub async fn run(&self, task: TaskId, at: Mono, tail: Duration) -> (Outcome, Evidence) {
        let message = ToWorker::Run { task, at, tail };
        match self.ask(task, message, Waiting::Run, Phase::Armed).await {
            Ok(finished) => finished,
            Err(mut failure) => {
                if failure.phase == Phase::Armed && clock::now() >= at {
                    failure.phase = Phase::Measure;
                }
                (Outcome::Failed(failure), Evidence::default())
            }
        }
    }

    /// Drops a task, whatever it does. A request for it that waits resolves as cancelled.
    pub async fn abort(&self, task: TaskId) {
        // A dead worker has no tasks.
        let _ = self.orders.send(Order::Abort { task }).await;
    }

    /// Ends the worker and everything in its process group, and waits until it is gone. Requests resolve as cancelled.
    pub async fn stop(&self) {
        self.request_stop();
        // The sender lives in `shared`, so waiting cannot fail.
        let _ = self.shared.gone.subscribe().wait_for(|gone| *gone).await;
    }

    /// Ends the worker without waiting.
    pub(super) fn request_stop(&self) {
        self.shared.stop.notify_one();
    }

    async fn ask<T>(
        &self,
        task: TaskId,
        message: ToWorker,
        waiting: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> Waiting,
        phase: Phase,
    ) -> Result<T, Failure> {
        let (reply, answer) = oneshot::channel();
        let order = Order::Ask { task, message: Box::new(message), waiting: waiting(reply) };
        if self.orders.send(order).await.is_err() {
            return Err(self.shared.failure(phase));
        }
        answer.await.unwrap_or_else(|_| Err(self.shared.failure(phase)))
    }
}

impl Shared {
    /// `worker of rail r1 (pid 123)`.
    pub(super) fn label(&self) -> String {
        match self.pid.get() {
            Some(pid) => format!("worker of rail {} (pid {pid})", self.rail),
            None => format!("worker of rail {}", self.rail),
        }
    }

    /// What the worker's end is to a request in `phase`.
    fn failure(&self, phase: Phase) -> Failure {
        match self.ending.get() {
            Some(ending) => Failure {
                kind: ending.kind,
                phase,
                detail: ending.detail.clone(),
                remedy: ending.remedy.clone(),
            },
            None => Failure {
                kind: FailureKind::Cancelled,
                phase,
                detail: format!("{} was given up because the agent ends", self.label()),
                remedy: None,
            },
        }
    }
}

/// Orders that wait for the actor; when full the caller waits.
const ORDERS_DEPTH: usize = 64;
