//! The tasks of a worker: one thread each, from prepare to the end of the run.
//!
//! ```text
//!  Prepare ─▶ thread starts ─▶ prepared ─ Connect ─▶ armed ─ Run ─▶ finished ─▶ thread ends
//!                   └──────── failure, abort or panic in any state ───────────────▲
//! ```
//! A thread is owned by its task: it ends after the run, at the first failure, or when the task is aborted, and drops
//! its endpoint then. A panic in a backend is that task's failure, not the worker's.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bench_core::message::{CellTask, FromWorker, Peer, TaskId, ToWorker};
use bench_core::plan::TestCase;
use bench_core::record::{Evidence, Failure, FailureKind, Outcome, Phase};
use bench_core::time::Mono;
use tracing::debug;
use transport::clock;
use transport::data::{Endpoint, Stop, Timing};

use super::registry::Registry;

/// Where answers go. A full outbox makes the sending thread wait.
pub(super) trait Outbox: Send + Sync {
    /// Sends an answer; does nothing if the agent is gone.
    fn send(&self, message: FromWorker);
}

/// All tasks of a worker.
pub(super) struct Tasks {
    registry: Arc<dyn Registry>,
    outbox: Arc<dyn Outbox>,
    table: Table,
}

/// What became of a message.
#[derive(Debug, PartialEq)]
pub(super) enum Handled {
    /// The answer, if there is one, comes from a task's thread.
    Silently,
    /// This is the answer.
    Answer(Box<FromWorker>),
    /// A task was aborted and its thread does not end: the worker is beyond help.
    Stuck(TaskId),
}

type Table = Arc<Mutex<HashMap<TaskId, Task>>>;

enum Task {
    /// Its thread waits for a step or is busy with one.
    Open { steps: SyncSender<Step>, stop: Stop },
    /// Its thread was asked to end.
    Aborted { at: Mono },
}

enum Step {
    Connect { peer: Peer },
    Run { at: Mono, tail: Duration },
}

impl Tasks {
    pub(super) fn new(registry: Arc<dyn Registry>, outbox: Arc<dyn Outbox>) -> Self {
        Self { registry, outbox, table: Table::default() }
    }

    /// Takes a message. Never waits for a task.
    pub(super) fn handle(&self, message: ToWorker) -> Handled {
        match message {
            ToWorker::Prepare(task) => self.prepare(task),
            ToWorker::Connect { task, peer } => self.step(task, Step::Connect { peer }),
            ToWorker::Run { task, at, tail } => self.step(task, Step::Run { at, tail }),
            ToWorker::Abort { task } => {
                self.abort(task);
                Handled::Silently
            }
            ToWorker::Ping { number } => match self.stuck(clock::now()) {
                Some(task) => Handled::Stuck(task),
                None => Handled::Answer(Box::new(FromWorker::Pong { number })),
            },
        }
    }

    /// Asks every task to end.
    pub(super) fn abort_all(&self) {
        let ids: Vec<TaskId> = lock(&self.table).keys().copied().collect();
        ids.into_iter().for_each(|id| self.abort(id));
    }

    fn prepare(&self, task: CellTask) -> Handled {
        let id = task.id;
        let refuse = |kind, detail| {
            Handled::Answer(Box::new(FromWorker::Prepared {
                task: id,
                endpoint: Err(failure(kind, Phase::Prepare, detail)),
            }))
        };
        // Two steps are the most that a task is ever given before it ends, so its channel is never full in good order.
        let (steps, inbox) = sync_channel(2);
        let stop = Stop::default();
        match lock(&self.table).entry(id) {
            Entry::Occupied(_) => return refuse(FailureKind::Crash, format!("task {} exists already", id.0)),
            Entry::Vacant(entry) => entry.insert(Task::Open { steps, stop: stop.clone() }),
        };
        let thread = TaskThread {
            task,
            steps: inbox,
            stop,
            registry: Arc::clone(&self.registry),
            outbox: Arc::clone(&self.outbox),
            _entry: TableEntry { id, table: Arc::clone(&self.table) },
        };
        match thread::Builder::new().name(format!("task {}", id.0)).spawn(move || thread.live()) {
            Ok(_) => Handled::Silently,
            Err(e) => {
                refuse(FailureKind::Crash, format!("the worker cannot start a thread for task {}: {e}", id.0))
            }
        }
    }

    fn step(&self, id: TaskId, step: Step) -> Handled {
        let refused = match lock(&self.table).get(&id) {
            Some(Task::Open { steps, .. }) => steps.try_send(step).err().map(|e| match e {
                std::sync::mpsc::TrySendError::Full(step) => (step, "was given too many steps"),
                std::sync::mpsc::TrySendError::Disconnected(step) => (step, "has ended"),
            }),
            Some(Task::Aborted { .. }) => Some((step, "was aborted")),
            None => Some((step, "is not known here: it has ended, or was prepared by another worker")),
        };
        match refused {
            None => Handled::Silently,
            Some((step, why)) => Handled::Answer(Box::new(step.refusal(id, format!("task {} {why}", id.0)))),
        }
    }

    fn abort(&self, id: TaskId) {
        // A task that ended by itself meanwhile is no longer in the table.
        if let Some(task) = lock(&self.table).get_mut(&id)
            && let Task::Open { stop, .. } = task
        {
            stop.set();
            *task = Task::Aborted { at: clock::now() };
        }
    }

    fn stuck(&self, now: Mono) -> Option<TaskId> {
        lock(&self.table).iter().find_map(|(id, task)| match task {
            Task::Aborted { at } if now.since(*at) >= ABORT_GRACE => Some(*id),
            Task::Aborted { .. } | Task::Open { .. } => None,
        })
    }
}

impl Step {
    fn refusal(&self, task: TaskId, detail: String) -> FromWorker {
        match self {
            Self::Connect { .. } => {
                FromWorker::Armed { task, outcome: Err(failure(FailureKind::Crash, Phase::Connect, detail)) }
            }
            Self::Run { .. } => {
                failed_run(task, failure(FailureKind::Crash, Phase::Armed, detail), Evidence::default())
            }
        }
    }
}

/// A task's place in the table; leaving it means that the thread is at its end.
struct TableEntry {
    id: TaskId,
    table: Table,
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        lock(&self.table).remove(&self.id);
    }
}

struct TaskThread {
    task: CellTask,
    steps: Receiver<Step>,
    stop: Stop,
    registry: Arc<dyn Registry>,
    outbox: Arc<dyn Outbox>,
    /// Last, so that it is dropped after everything else.
    _entry: TableEntry,
}

impl TaskThread {
    fn live(self) {
        let prepared = guarded(Phase::Prepare, || self.registry.backend(&self.task)?.prepare(&self.task));
        let (endpoint, info) = match prepared {
            Ok(endpoint) => {
                let info = endpoint.info();
                (Some(endpoint), Ok(info))
            }
            Err(failure) => (None, Err(failure)),
        };
        self.answer(FromWorker::Prepared { task: self.task.id, endpoint: info });
        if let Some(endpoint) = endpoint {
            self.follow(endpoint);
        }
        debug!("task {} ends", self.task.id.0);
    }

    /// Takes steps until one was the last. Dropping a backend's endpoint may panic like any other part of it.
    fn follow(&self, mut endpoint: Box<dyn Endpoint>) {
        let mut armed = Armed::NotYet;
        while let Ok(step) = self.steps.recv()
            && !self.stop.is_set()
        {
            match (step, armed) {
                (Step::Connect { peer }, Armed::NotYet) => {
                    let outcome = guarded(Phase::Connect, || endpoint.connect(&peer, &self.stop));
                    armed = if outcome.is_ok() { Armed::Yes } else { Armed::Never };
                    self.answer(FromWorker::Armed { task: self.task.id, outcome });
                }
                (Step::Run { at, tail }, Armed::Yes) => {
                    self.answer(self.run(endpoint.as_mut(), timing(&self.task.case, at, tail)));
                    armed = Armed::Never;
                }
                (step @ Step::Connect { .. }, Armed::Yes | Armed::Never)
                | (step @ Step::Run { .. }, Armed::NotYet | Armed::Never) => {
                    self.answer(
                        step.refusal(self.task.id, format!("task {} is not at that step", self.task.id.0)),
                    );
                }
            }
            if armed == Armed::Never {
                break;
            }
        }
        if let Err(failure) = guarded(Phase::Collect, || {
            drop(endpoint);
            Ok(())
        }) {
            tracing::error!("{}", failure.detail);
        }
    }

    fn run(&self, endpoint: &mut dyn Endpoint, timing: Timing) -> FromWorker {
        let task = self.task.id;
        let result = guarded(Phase::Measure, || endpoint.run(&timing, &self.stop));
        let evidence = guarded(Phase::Collect, || Ok(endpoint.evidence()));
        match (result, evidence) {
            (Ok(measurement), Ok(evidence)) => {
                FromWorker::Finished { task, outcome: Outcome::Measured(measurement), evidence }
            }
            (Ok(_), Err(failure)) => failed_run(task, failure, Evidence::default()),
            (Err(failure), evidence) => failed_run(task, failure, evidence.unwrap_or_default()),
        }
    }

    /// Nobody waits for answers about an aborted task.
    fn answer(&self, message: FromWorker) {
        if !self.stop.is_set() {
            self.outbox.send(message);
        }
    }
}

/// Whether an end is armed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Armed {
    NotYet,
    Yes,
    /// It failed to, or has run.
    Never,
}

fn timing(case: &TestCase, at: Mono, tail: Duration) -> Timing {
    Timing { at, warmup: case.warmup, window: case.window, tail }
}

/// Calls a backend; a panic becomes a failure. The endpoint is only dropped after that, whatever state it is in.
fn guarded<T>(phase: Phase, call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let what = panic_text(panic.as_ref());
        Err(failure(FailureKind::Crash, phase, format!("the backend panicked: {what}")))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

fn failed_run(task: TaskId, failure: Failure, evidence: Evidence) -> FromWorker {
    FromWorker::Finished { task, outcome: Outcome::Failed(failure), evidence }
}

fn failure(kind: FailureKind, phase: Phase, detail: String) -> Failure {
    Failure { kind, phase, detail, remedy: None }
}

fn lock(table: &Table) -> MutexGuard<'_, HashMap<TaskId, Task>> {
    // No code that can panic runs under this lock.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long an aborted task may take to end: 25 times what endpoints are given to notice (`Stop::set`), since closing
/// many sockets takes a while on a loaded node.
const ABORT_GRACE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
