//! The workers of a node: one a rail, started at first use, replaced after death.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bench_core::ids::RailId;
use bench_core::node::Capability;
use bench_core::record::{Failure, FailureKind, Phase};
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout_at};
use tracing::warn;
use transport::clock;

use super::link::{WorkerFactory, WorkerSpec};
use super::restarts::{MAX_DEATHS, MEMORY, Restart, Restarts};
use super::worker::Worker;

/// One worker a rail.
///
/// All tasks of one attempt of a cell go to the same [`Worker`]: keep the handle from prepare on. A replaced worker
/// knows nothing of its predecessor's tasks and says so.
pub struct Pool {
    factory: Arc<dyn WorkerFactory>,
    slots: Vec<Slot>,
    closed: watch::Sender<bool>,
}

struct Slot {
    spec: WorkerSpec,
    /// Held while a worker is started, so that a rail never has two.
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    worker: Option<Worker>,
    restarts: Restarts,
    last_death: String,
}

impl Pool {
    /// A pool without workers yet. It owns those that it will start.
    pub fn new(factory: Arc<dyn WorkerFactory>, specs: Vec<WorkerSpec>) -> Self {
        let slots = specs.into_iter().map(|spec| Slot { spec, state: Mutex::default() }).collect();
        Self { factory, slots, closed: watch::Sender::new(false) }
    }

    /// The living worker of a rail: the one that is there, or a new one, after a pause if others died lately.
    ///
    /// Cancel safe: a worker that is being started is killed.
    ///
    /// # Errors
    /// [`Failure`] in phase `Prepare`: no such rail, the worker did not become ready, the rail's workers die again and
    /// again, or the pool was shut down.
    pub async fn worker(&self, rail: RailId) -> Result<Worker, Failure> {
        let Some(slot) = self.slots.iter().find(|slot| slot.spec.rail == rail) else {
            return Err(refusal(FailureKind::Unsupported, format!("this node has no rail {rail}")));
        };
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            // The sender lives in `self`, so waiting cannot fail.
            _ = closed.wait_for(|closed| *closed) => {
                Err(refusal(FailureKind::Cancelled, format!("the workers were shut down, also that of rail {rail}")))
            }
            worker = slot.worker(self.factory.as_ref()) => worker,
        }
    }

    /// What this node can measure, as the worker of the first rail says. Starts it if need be; none without rails.
    ///
    /// # Errors
    /// As [`Pool::worker`].
    pub async fn capabilities(&self) -> Result<Vec<Capability>, Failure> {
        match self.slots.first() {
            Some(slot) => Ok(self.worker(slot.spec.rail).await?.capabilities().to_vec()),
            None => Ok(Vec::new()),
        }
    }

    /// Ends every worker with its whole process group, and waits until they are gone. No worker is started after this.
    ///
    /// A process that the kernel cannot kill (uninterruptible sleep in a driver) is named in the log after 5 s.
    pub async fn shutdown(&self) {
        self.closed.send_replace(true);
        let mut workers = Vec::new();
        for slot in &self.slots {
            workers.extend(slot.state.lock().await.worker.take());
        }
        let limit = tokio::time::Instant::now() + KILL_TIMEOUT;
        for worker in &workers {
            worker.request_stop();
        }
        for worker in &workers {
            if timeout_at(limit, worker.stop()).await.is_err() {
                warn!(
                    pid = worker.pid(),
                    "a worker is still there after being killed: see its state in /proc"
                );
            }
        }
    }
}

impl Slot {
    async fn worker(&self, factory: &dyn WorkerFactory) -> Result<Worker, Failure> {
        let mut state = self.state.lock().await;
        if let Some(worker) = &state.worker {
            match worker.ending() {
                None => return Ok(worker.clone()),
                Some(ending) => {
                    let (at, detail) = (ending.at, ending.detail.clone());
                    state.restarts.died(at);
                    state.last_death = detail;
                    state.worker = None;
                }
            }
        }
        match state.restarts.next(clock::now()) {
            Restart::Now => {}
            Restart::At(at) => sleep(at.since(clock::now())).await,
            Restart::GivenUp { until } => return Err(self.given_up(&state, until.since(clock::now()))),
        }
        match Worker::start(factory, &self.spec).await {
            Ok(worker) => {
                state.worker = Some(worker.clone());
                Ok(worker)
            }
            Err(failure) => {
                state.restarts.died(clock::now());
                state.last_death.clone_from(&failure.detail);
                Err(failure)
            }
        }
    }

    fn given_up(&self, state: &SlotState, wait: Duration) -> Failure {
        let detail = format!(
            "workers of rail {} died {MAX_DEATHS} times within {}s, the last: {}",
            self.spec.rail,
            MEMORY.as_secs(),
            state.last_death
        );
        let remedy = format!(
            "see the worker's lines in this node's log; it is tried again in {}s",
            wait.as_secs() + 1
        );
        Failure { remedy: Some(remedy), ..refusal(FailureKind::Unsupported, detail) }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rails: Vec<RailId> = self.slots.iter().map(|slot| slot.spec.rail).collect();
        f.debug_struct("Pool").field("factory", &self.factory).field("rails", &rails).finish_non_exhaustive()
    }
}

fn refusal(kind: FailureKind, detail: String) -> Failure {
    Failure { kind, phase: Phase::Prepare, detail, remedy: None }
}

/// How long the kernel may take to end a killed process.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
