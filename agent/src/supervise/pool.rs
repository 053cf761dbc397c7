//! The workers of a node: one a rail and place, started at first use, replaced after death.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use bench_core::node::Capability;
use bench_core::record::{Failure, FailureKind, Phase};
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout_at};
use tracing::warn;
use transport::clock;

use super::link::{WorkerFactory, WorkerSpec};
use super::restarts::{MAX_DEATHS, MEMORY, Restart, Restarts};
use super::worker::Worker;

/// One worker a rail; one more where a plan takes another device as that rail, which lies near other processors.
///
/// All tasks of one attempt of a cell go to the same [`Worker`]: keep the handle from prepare on. A replaced worker
/// knows nothing of its predecessor's tasks and says so.
pub struct Pool {
    factory: Arc<dyn WorkerFactory>,
    /// At most [`MAX_SLOTS`].
    slots: StdMutex<Vec<Arc<Slot>>>,
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
    pub fn new(factory: Arc<dyn WorkerFactory>) -> Self {
        Self { factory, slots: StdMutex::default(), closed: watch::Sender::new(false) }
    }

    /// The living worker for this: the one that is there, or a new one, after a pause if others died lately.
    ///
    /// Cancel safe: a worker that is being started is killed.
    ///
    /// # Errors
    /// [`Failure`] in phase `Prepare`: too many places, the worker did not become ready, the rail's workers die again and
    /// again, or the pool was shut down.
    pub async fn worker(&self, spec: &WorkerSpec) -> Result<Worker, Failure> {
        let (slot, rail) = (self.slot(spec)?, spec.rail);
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

    /// What this node can measure, as the worker for this says. Starts it if need be.
    ///
    /// # Errors
    /// As [`Pool::worker`].
    pub async fn capabilities(&self, spec: &WorkerSpec) -> Result<Vec<Capability>, Failure> {
        Ok(self.worker(spec).await?.capabilities().to_vec())
    }

    fn slot(&self, spec: &WorkerSpec) -> Result<Arc<Slot>, Failure> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.iter().find(|slot| slot.spec == *spec) {
            return Ok(Arc::clone(slot));
        }
        if slots.len() >= MAX_SLOTS {
            return Err(refusal(
                FailureKind::Unsupported,
                format!("this node has workers for {MAX_SLOTS} rails and places already"),
            ));
        }
        let slot = Arc::new(Slot { spec: spec.clone(), state: Mutex::default() });
        slots.push(Arc::clone(&slot));
        Ok(slot)
    }

    fn all_slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends every worker with its whole process group, and waits until they are gone. No worker is started after this.
    ///
    /// A process that the kernel cannot kill (uninterruptible sleep in a driver) is named in the log after 5 s.
    pub async fn shutdown(&self) {
        self.closed.send_replace(true);
        let mut workers = Vec::new();
        for slot in self.all_slots() {
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
        let rails: Vec<_> = self.all_slots().iter().map(|slot| slot.spec.rail).collect();
        f.debug_struct("Pool").field("factory", &self.factory).field("rails", &rails).finish_non_exhaustive()
    }
}

fn refusal(kind: FailureKind, detail: String) -> Failure {
    Failure { kind, phase: Phase::Prepare, detail, remedy: None }
}

/// Most workers of a node: no machine has more than 32 HCA ports, and a rail can have several places.
const MAX_SLOTS: usize = 128;

/// How long the kernel may take to end a killed process.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
