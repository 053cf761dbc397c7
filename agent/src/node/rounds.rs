//! The rounds that this node has been asked to set up: which ends are armed, and what both sides have told of theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::endpoint_board::EndpointBoard;
use crate::supervise::Worker;
use bench_core::cell::{Cell, End};
use bench_core::ids::{CellId, NodeId};
use bench_core::message::{CellEndpoint, Peer, RoundKey, TaskId};
use bench_core::plan::TestCase;
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::ClockOffset;
use bench_core::units::format_duration;

/// All rounds of this node that are not over. At most [`MAX_ROUNDS`]: the oldest is forgotten when one more comes.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    open: Mutex<BTreeMap<RoundKey, Arc<Round>>>,
}

/// One round on this node.
#[derive(Debug)]
pub(crate) struct Round {
    ends: Mutex<BTreeMap<(CellId, End), ArmedEnd>>,
    /// Destinations of this node.
    ours: EndpointBoard,
    /// Their sources on other nodes.
    theirs: EndpointBoard,
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
            ours: EndpointBoard::new(),
            theirs: EndpointBoard::new(),
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

    /// Tells what became of setting up this node's destination of a cell.
    pub(crate) fn publish(&self, told: CellEndpoint) {
        self.ours.tell([told]);
    }

    /// Takes what a peer tells of its sources, and tells of this node's destinations of the same cells as soon as all
    /// are set up; at the latest after `limit`, with a failure for those that are not.
    pub(crate) async fn meet(&self, sources: Vec<CellEndpoint>, limit: Duration) -> Vec<CellEndpoint> {
        let cells: Vec<CellId> = sources.iter().map(|source| source.cell).collect();
        self.theirs.tell(sources);
        let known = self.ours.wait(&cells, limit).await;
        let silent = |cell| CellEndpoint { cell, end: Err(not_set_up(limit)) };
        cells.iter().zip(known).map(|(cell, told)| told.unwrap_or_else(|| silent(*cell))).collect()
    }

    /// The source of a cell whose destination is here, as soon as its node tells of it.
    ///
    /// # Errors
    /// [`Failure`] in phase `Handshake`: the node says that it could not set it up, or says nothing within `limit`.
    pub(crate) async fn source_of(
        &self,
        cell: CellId,
        peer: &NodeId,
        limit: Duration,
    ) -> Result<Peer, Failure> {
        match self.theirs.wait(&[cell], limit).await.pop().flatten() {
            Some(told) => told.end.map_err(|failure| said_by(peer, failure)),
            None => Err(Failure {
                kind: FailureKind::Timeout,
                phase: Phase::Handshake,
                detail: format!("{peer} did not tell of its end within {}", format_duration(limit)),
                remedy: None,
            }),
        }
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

/// A failure that the other end's node told.
pub(super) fn said_by(peer: &NodeId, failure: Failure) -> Failure {
    Failure { phase: Phase::Handshake, detail: format!("{peer} says: {}", failure.detail), ..failure }
}

fn not_set_up(limit: Duration) -> Failure {
    Failure {
        kind: FailureKind::Timeout,
        phase: Phase::Prepare,
        detail: format!("was not set up within {}", format_duration(limit)),
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

    fn told(cell: u32, port: u64) -> CellEndpoint {
        CellEndpoint { cell: CellId(cell), end: Ok(Peer::at(EndpointInfo::Sim { port })) }
    }

    const LIMIT: Duration = Duration::from_secs(10);

    fn peer() -> NodeId {
        "n2".parse().expect("a name")
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_comes_first_waits_for_the_destination() {
        let rounds = Rounds::default();
        let asked = rounds.get_or_begin(key(0));
        let answer = tokio::spawn(async move { asked.meet(vec![told(7, 1)], LIMIT).await });
        tokio::task::yield_now().await;
        rounds.get_or_begin(key(0)).publish(told(7, 3));
        assert_eq!(answer.await.expect("the task ends"), [told(7, 3)]);
        let source = rounds.get_or_begin(key(0)).source_of(CellId(7), &peer(), LIMIT).await;
        assert_eq!(source, told(7, 1).end);
    }

    #[tokio::test(start_paused = true)]
    async fn a_destination_that_never_comes_is_a_timeout_with_its_phase() {
        let round = Rounds::default().get_or_begin(key(0));
        let answer = round.meet(vec![told(1, 1)], LIMIT).await;
        let failure = answer[0].end.as_ref().expect_err("nobody set it up");
        assert_eq!((failure.kind, failure.phase), (FailureKind::Timeout, Phase::Prepare));
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_failed_or_never_came_speaks_about_the_peer() {
        let round = Rounds::default().get_or_begin(key(0));
        let silent = round.source_of(CellId(1), &peer(), LIMIT).await.expect_err("nobody told");
        assert_eq!((silent.kind, silent.phase), (FailureKind::Timeout, Phase::Handshake));
        assert!(silent.detail.contains("n2"), "{silent:?}");

        round.publish(told(1, 3));
        let failed = Failure { kind: FailureKind::Unsupported, phase: Phase::Prepare, ..silent };
        round.meet(vec![CellEndpoint { cell: CellId(1), end: Err(failed) }], LIMIT).await;
        let failure = round.source_of(CellId(1), &peer(), LIMIT).await.expect_err("the peer failed");
        assert_eq!((failure.kind, failure.phase), (FailureKind::Unsupported, Phase::Handshake));
        assert!(failure.detail.starts_with("n2 says: "), "{failure:?}");
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
