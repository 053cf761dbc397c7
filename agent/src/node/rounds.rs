//! The rounds that this node has been asked to set up: which ends are armed, and where the listening ones are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bench_core::cell::{Cell, End};
use bench_core::ids::CellId;
use bench_core::message::{CellEndpoint, RoundKey, TaskId};
use bench_core::plan::TestCase;
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::ClockOffset;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::supervise::Worker;

/// All rounds of this node that are not over. At most [`MAX_ROUNDS`]: the oldest is forgotten when one more comes.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    open: Mutex<BTreeMap<RoundKey, Arc<Round>>>,
}

/// One round on this node.
#[derive(Debug)]
pub(crate) struct Round {
    ends: Mutex<BTreeMap<(CellId, End), ArmedEnd>>,
    endpoints: watch::Sender<BTreeMap<CellId, CellEndpoint>>,
    clock: Mutex<Option<ClockOffset>>,
}

/// One end that is armed.
#[derive(Clone, Debug)]
pub(crate) struct ArmedEnd {
    pub(crate) cell: Cell,
    pub(crate) end: End,
    pub(crate) case: TestCase,
    pub(crate) task: TaskId,
    /// The worker that knows the task: one that replaced it would not.
    pub(crate) worker: Worker,
}

impl Rounds {
    /// The round of `key`; begun if this is the first that is heard of it (a peer's handshake may come first).
    pub(crate) fn get_or_begin(&self, key: RoundKey) -> Arc<Round> {
        let mut open = self.lock();
        while open.len() >= MAX_ROUNDS && !open.contains_key(&key) {
            open.pop_first();
        }
        Arc::clone(open.entry(key).or_insert_with(|| Arc::new(Round::new())))
    }

    /// Takes a round out.
    pub(crate) fn take(&self, key: RoundKey) -> Option<Arc<Round>> {
        self.lock().remove(&key)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RoundKey, Arc<Round>>> {
        self.open.lock().expect("nothing panics while the rounds are held")
    }
}

impl Round {
    fn new() -> Self {
        Self {
            ends: Mutex::new(BTreeMap::new()),
            endpoints: watch::Sender::new(BTreeMap::new()),
            clock: Mutex::new(None),
        }
    }

    /// An end is armed.
    pub(crate) fn arm(&self, armed: ArmedEnd) {
        self.ends.lock().expect(HELD).insert((armed.cell.id, armed.end), armed);
    }

    /// The armed ends.
    pub(crate) fn armed(&self) -> Vec<ArmedEnd> {
        self.ends.lock().expect(HELD).values().cloned().collect()
    }

    /// Says where this node's end of a cell listens, or why it does not.
    pub(crate) fn publish(&self, told: CellEndpoint) {
        self.endpoints.send_modify(|endpoints| {
            endpoints.insert(told.cell, told);
        });
    }

    /// Where this node's ends of `cells` listen, as soon as they all do; at the latest after `limit`, with a failure
    /// for those that do not.
    pub(crate) async fn endpoints(&self, cells: &[CellId], limit: Duration) -> Vec<CellEndpoint> {
        let mut watcher = self.endpoints.subscribe();
        let all = watcher.wait_for(|known| cells.iter().all(|cell| known.contains_key(cell)));
        // The sender lives in `self`, so only the time can end the wait early; then what is known is told.
        let _: Result<_, _> = timeout(limit, all).await;
        let known = self.endpoints.borrow();
        let silent = |cell| CellEndpoint { cell, endpoint: Err(not_listening(limit)), pace: None };
        let tell = |cell: &CellId| known.get(cell).cloned().unwrap_or_else(|| silent(*cell));
        cells.iter().map(tell).collect()
    }

    /// Remembers this node's clock against the coordinator's.
    pub(crate) fn set_clock(&self, clock: ClockOffset) {
        *self.clock.lock().expect(HELD) = Some(clock);
    }

    /// This node's clock against the coordinator's.
    pub(crate) fn clock(&self) -> Option<ClockOffset> {
        *self.clock.lock().expect(HELD)
    }
}

fn not_listening(limit: Duration) -> Failure {
    Failure {
        kind: FailureKind::Timeout,
        phase: Phase::Prepare,
        detail: format!("did not listen within {}", bench_core::units::format_duration(limit)),
        remedy: None,
    }
}

/// Rounds that a node holds at once: the one that measures, the next, and late ones of a replaced coordinator.
const MAX_ROUNDS: usize = 8;

/// Why the locks of this module cannot be poisoned.
const HELD: &str = "nothing panics while a round's lock is held";

#[cfg(test)]
mod tests {
    use super::*;
    use bench_core::ids::{Attempt, Epoch, RoundId, RunId};
    use bench_core::message::EndpointInfo;

    fn key(round: u32) -> RoundKey {
        RoundKey {
            run: RunId([0; 16]),
            round: RoundId(round),
            epoch: Epoch { term: 1, elector: 0 },
            attempt: Attempt::FIRST,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_comes_first_waits_for_the_listener() {
        let rounds = Rounds::default();
        let asked = rounds.get_or_begin(key(0));
        let answer =
            tokio::spawn(async move { asked.endpoints(&[CellId(7)], Duration::from_secs(10)).await });
        tokio::task::yield_now().await;
        let told = CellEndpoint { cell: CellId(7), endpoint: Ok(EndpointInfo::Sim { port: 3 }), pace: None };
        rounds.get_or_begin(key(0)).publish(told.clone());
        assert_eq!(answer.await.expect("the task ends"), [told]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_listener_that_never_comes_is_a_timeout_with_its_phase() {
        let round = Rounds::default().get_or_begin(key(0));
        let endpoints = round.endpoints(&[CellId(1)], Duration::from_secs(1)).await;
        let failure = endpoints[0].endpoint.as_ref().expect_err("nobody listened");
        assert_eq!((failure.kind, failure.phase), (FailureKind::Timeout, Phase::Prepare));
    }

    #[test]
    fn rounds_are_bounded_and_the_oldest_is_forgotten() {
        let rounds = Rounds::default();
        (0..20).for_each(|i| drop(rounds.get_or_begin(key(i))));
        assert!(rounds.take(key(0)).is_none());
        assert!(rounds.take(key(19)).is_some());
        assert!(rounds.lock().len() <= MAX_ROUNDS);
    }
}
