//! The task that owns a worker's link: sends orders, hands out answers, pings, and says how it ended.
//!
//! It ends when the worker does, when it is told to, or when all handles are gone. It never waits for the worker
//! alone: whatever it waits for, events, the clock and the call to stop are waited for, too.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use bench_core::ids::BuildHash;
use bench_core::message::{EndpointInfo, FromWorker, TaskId, ToWorker};
use bench_core::node::Capability;
use bench_core::record::{Evidence, Failure, FailureKind, Outcome, Phase};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tracing::{debug, warn};
use transport::clock;

use super::link::{Link, LinkEvent};
use super::worker::{Ending, Shared};
use crate::build_id::build_hash;

/// What a handle wants.
#[derive(Debug)]
pub(super) enum Order {
    /// Send a message about a task and hand out the answer.
    Ask { task: TaskId, message: Box<ToWorker>, waiting: Waiting },
    /// Drop a task.
    Abort { task: TaskId },
}

/// Who waits for which answer.
#[derive(Debug)]
pub(super) enum Waiting {
    Prepare(oneshot::Sender<Result<Prepared, Failure>>),
    Connect(oneshot::Sender<Result<Result<(), Failure>, Failure>>),
    Run(oneshot::Sender<Result<(Outcome, Evidence), Failure>>),
}

/// The worker's own answer to prepare.
type Prepared = Result<Option<EndpointInfo>, Failure>;

/// Serves one worker to its end.
pub(super) async fn live(
    mut link: Link,
    mut orders: mpsc::Receiver<Order>,
    ready: oneshot::Sender<Vec<Capability>>,
    shared: Arc<Shared>,
) {
    let mut actor =
        Actor { waiting: HashMap::new(), outgoing: None, ready: Some(ready), beat: Beat::default() };
    let ending = actor.serve(&mut link, &mut orders, &shared).await;
    warn_unless_wanted(&ending);
    // Set before anything that waits is dropped: those who wait read it then.
    shared.ending.get_or_init(|| ending);
    drop((orders, actor));
    let Link { to, mut events, kill } = link;
    drop(to);
    kill.now();
    while events.recv().await.is_some() {}
    shared.gone.send_replace(true);
}

struct Actor {
    waiting: HashMap<TaskId, Waiting>,
    /// A message for which the link has no room yet; no order is taken while there is one.
    outgoing: Option<ToWorker>,
    /// Who waits for the worker to be ready; `None` once it is.
    ready: Option<oneshot::Sender<Vec<Capability>>>,
    beat: Beat,
}

/// What became of an answer.
enum Handed {
    /// It is with who waited for it.
    Over,
    /// Something else was asked.
    Mismatch,
}

impl Handed {
    /// Nobody listens if the request was dropped.
    fn over<T>(reply: oneshot::Sender<T>, answer: T) -> Self {
        drop(reply.send(answer));
        Self::Over
    }
}

/// Why serving ended.
struct Why {
    kind: FailureKind,
    what: String,
    remedy: Option<String>,
}

impl Actor {
    async fn serve(
        &mut self,
        link: &mut Link,
        orders: &mut mpsc::Receiver<Order>,
        shared: &Shared,
    ) -> Ending {
        let start_by = Instant::now() + START_TIMEOUT;
        let mut ticks = ticks();
        let why = loop {
            let step = tokio::select! {
                event = link.events.recv() => self.on_event(event, &mut ticks, shared),
                () = shared.stop.notified() => Some(Why::stopped("was stopped")),
                order = orders.recv(), if self.outgoing.is_none() => self.on_order(order),
                room = link.to.reserve(), if self.outgoing.is_some() => {
                    // Without room for ever the worker has closed its input, and its end follows.
                    if let (Some(message), Ok(room)) = (self.outgoing.take(), room) {
                        room.send(message);
                    }
                    None
                }
                _ = ticks.tick(), if self.ready.is_none() => self.on_tick(&link.to),
                () = sleep_until(start_by), if self.ready.is_some() => Some(Why::not_ready()),
            };
            if let Some(why) = step {
                break why;
            }
        };
        let detail = format!("{} {}", shared.label(), why.what);
        Ending { kind: why.kind, detail, remedy: why.remedy, at: clock::now() }
    }

    fn on_event(&mut self, event: Option<LinkEvent>, ticks: &mut Interval, shared: &Shared) -> Option<Why> {
        match event {
            Some(LinkEvent::Started { pid }) => {
                if let Some(pid) = pid {
                    shared.pid.get_or_init(|| pid);
                }
                None
            }
            Some(LinkEvent::Message(message)) => self.on_message(*message, ticks),
            Some(LinkEvent::Ended { how }) => Some(Why::crashed(how)),
            None => Some(Why::crashed("ended without a word".to_owned())),
        }
    }

    fn on_message(&mut self, message: FromWorker, ticks: &mut Interval) -> Option<Why> {
        match message {
            FromWorker::Ready { build, capabilities } => self.on_ready(build, capabilities, ticks),
            FromWorker::Pong { number } => {
                self.beat.pong(number);
                None
            }
            FromWorker::Prepared { task, endpoint } => self.answer(task, |waiting| match waiting {
                Waiting::Prepare(reply) => Handed::over(reply, Ok(endpoint)),
                Waiting::Connect(_) | Waiting::Run(_) => Handed::Mismatch,
            }),
            FromWorker::Armed { task, outcome } => self.answer(task, |waiting| match waiting {
                Waiting::Connect(reply) => Handed::over(reply, Ok(outcome)),
                Waiting::Prepare(_) | Waiting::Run(_) => Handed::Mismatch,
            }),
            FromWorker::Finished { task, outcome, evidence } => self.answer(task, |waiting| match waiting {
                Waiting::Run(reply) => Handed::over(reply, Ok((outcome, evidence))),
                Waiting::Prepare(_) | Waiting::Connect(_) => Handed::Mismatch,
            }),
        }
    }

    fn on_ready(
        &mut self,
        build: BuildHash,
        capabilities: Vec<Capability>,
        ticks: &mut Interval,
    ) -> Option<Why> {
        if build != build_hash() {
            return Some(Why::other_build(build));
        }
        match self.ready.take() {
            Some(ready) => {
                ticks.reset();
                // A caller that no longer waits has dropped its handle, which ends this task.
                let _ = ready.send(capabilities);
                None
            }
            None => Some(Why::out_of_turn()),
        }
    }

    /// Hands an answer to who waits for it. Nobody waits for a task that was aborted meanwhile.
    fn answer(&mut self, task: TaskId, hand_over: impl FnOnce(Waiting) -> Handed) -> Option<Why> {
        let Some(waiting) = self.waiting.remove(&task) else {
            debug!(task = task.0, "an answer that nobody waits for");
            return None;
        };
        match hand_over(waiting) {
            Handed::Over => None,
            Handed::Mismatch => Some(Why::out_of_turn()),
        }
    }

    fn on_order(&mut self, order: Option<Order>) -> Option<Why> {
        match order {
            None => return Some(Why::stopped("was stopped because nobody uses it")),
            Some(Order::Ask { task, message, waiting }) => match self.waiting.entry(task) {
                Entry::Vacant(entry) => {
                    entry.insert(waiting);
                    self.outgoing = Some(*message);
                }
                Entry::Occupied(_) => waiting.refuse("waits for another answer already"),
            },
            Some(Order::Abort { task }) => {
                if let Some(waiting) = self.waiting.remove(&task) {
                    waiting.refuse("was aborted");
                }
                self.outgoing = Some(ToWorker::Abort { task });
            }
        }
        None
    }

    fn on_tick(&mut self, to: &mpsc::Sender<ToWorker>) -> Option<Why> {
        match self.beat.tick() {
            // A full link is a worker that does not read: the ping counts as unanswered.
            Some(number) => drop(to.try_send(ToWorker::Ping { number })),
            None => return Some(Why::hung()),
        }
        None
    }
}

impl Waiting {
    /// Resolves a request without the worker.
    fn refuse(self, why: &str) {
        let failure = |phase| Failure {
            kind: FailureKind::Cancelled,
            phase,
            detail: format!("the task {why}"),
            remedy: None,
        };
        // Nobody listens if the request was dropped.
        match self {
            Self::Prepare(reply) => drop(reply.send(Err(failure(Phase::Prepare)))),
            Self::Connect(reply) => drop(reply.send(Err(failure(Phase::Connect)))),
            Self::Run(reply) => drop(reply.send(Err(failure(Phase::Armed)))),
        }
    }
}

impl Why {
    fn crashed(what: String) -> Self {
        Self { kind: FailureKind::Crash, what, remedy: None }
    }

    fn stopped(what: &str) -> Self {
        Self { kind: FailureKind::Cancelled, what: what.to_owned(), remedy: None }
    }

    fn hung() -> Self {
        let silence = PING_EVERY.as_secs() * u64::from(MAX_UNANSWERED);
        let what = format!("did not answer for {silence}s, killed");
        Self { kind: FailureKind::Timeout, what, remedy: None }
    }

    fn not_ready() -> Self {
        let what = format!("was not ready within {}s, killed", START_TIMEOUT.as_secs());
        let remedy = Some(
            "try the worker program by hand: with `probe` it prints its capabilities and ends".to_owned(),
        );
        Self { kind: FailureKind::Timeout, what, remedy }
    }

    fn other_build(theirs: BuildHash) -> Self {
        let what = format!("is of build {theirs}, this agent of build {}", build_hash());
        let remedy = Some("replace the worker program by the one that came with this agent".to_owned());
        Self { kind: FailureKind::Crash, what, remedy }
    }

    fn out_of_turn() -> Self {
        Self::crashed("answered what it was not asked, killed".to_owned())
    }
}

/// Counts pings without an answer. It counts pings, not time, so that an agent that was itself paused does not take
/// its workers for dead.
#[derive(Debug, Default)]
struct Beat {
    sent: u64,
    answered: u64,
}

impl Beat {
    /// The number of the next ping; `None` if the worker has not answered [`MAX_UNANSWERED`] of them.
    fn tick(&mut self) -> Option<u64> {
        if self.sent - self.answered >= u64::from(MAX_UNANSWERED) {
            return None;
        }
        self.sent += 1;
        Some(self.sent)
    }

    fn pong(&mut self, number: u64) {
        if number <= self.sent {
            self.answered = self.answered.max(number);
        }
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(PING_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn warn_unless_wanted(ending: &Ending) {
    match ending.kind {
        FailureKind::Cancelled => debug!("{}", ending.detail),
        FailureKind::Crash
        | FailureKind::Timeout
        | FailureKind::Late
        | FailureKind::Unsupported
        | FailureKind::Corrupt => {
            warn!("{}", ending.detail);
        }
    }
}

/// How often a worker is asked whether it lives.
const PING_EVERY: Duration = Duration::from_secs(1);

/// Pings without an answer after which a worker is taken for hung: 5 s, above what a loaded node withholds a thread
/// that only has to read a pipe, below every phase deadline.
const MAX_UNANSWERED: u32 = 5;

/// How long a worker may take to be ready: it may have to load vendor libraries from a network file system.
const START_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_unanswered_pings_are_a_hung_worker_and_one_answer_is_life() {
        let mut beat = Beat::default();
        for number in 1..=5 {
            assert_eq!(beat.tick(), Some(number));
        }
        beat.pong(9);
        assert_eq!(beat.tick(), None, "an answer to a ping that was not sent is none");
        beat.pong(3);
        assert_eq!((beat.tick(), beat.tick(), beat.tick()), (Some(6), Some(7), Some(8)));
        assert_eq!(beat.tick(), None);
    }
}
