//! The fence of this node, shared by everything that serves commands. The rule is [`coordinator::Fence`]'s.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bench_core::ids::{Epoch, NodeIndex};
use bench_core::message::Response;
use coordinator::Passage;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::patience::look_until;

/// The fence of this node.
#[derive(Debug)]
pub(crate) struct Fence {
    rule: Mutex<coordinator::Fence>,
    /// An elector told its epoch.
    learned: Notify,
    /// A coordinator waits before the shut fence.
    knocked: Notify,
}

impl Fence {
    /// The fence of a process that just started.
    pub(crate) fn new(electors: usize) -> Self {
        Self {
            rule: Mutex::new(coordinator::Fence::new(electors)),
            learned: Notify::new(),
            knocked: Notify::new(),
        }
    }

    /// Whether a command of the elector that `epoch` names may be obeyed.
    ///
    /// # Errors
    /// The answer that refuses it.
    #[expect(clippy::result_large_err, reason = "the error is the answer itself, moved once to the wire")]
    pub(crate) fn pass(&self, epoch: Epoch) -> Result<(), Response> {
        let passage = self.rule().pass(epoch);
        answer(epoch, passage)
    }

    /// The same for a question of the coordinator, which may come while this process still reads the epoch: it has a
    /// moment's patience with the fence and has the reader ask at once. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The answer that refuses it.
    pub(crate) async fn pass_when_open(&self, epoch: Epoch) -> Result<(), Response> {
        let decided = look_until(&self.learned, Instant::now() + PATIENCE, || {
            let passage = self.rule().pass(epoch);
            match passage {
                Passage::Open | Passage::Stale { .. } => Some(passage),
                Passage::Shut { .. } => {
                    self.knocked.notify_one();
                    None
                }
            }
        });
        match decided.await {
            Some(passage) => answer(epoch, passage),
            None => self.pass(epoch),
        }
    }

    /// Returns when a coordinator waits before the shut fence.
    pub(crate) async fn knock(&self) {
        self.knocked.notified().await;
    }

    /// An elector told the highest epoch that it has seen or voted for.
    pub(crate) fn learn(&self, elector: NodeIndex, highest: Option<Epoch>) {
        self.rule().learn(elector, highest);
        self.learned.notify_waiters();
    }

    /// Whether a majority of the electors has told its epoch.
    pub(crate) fn is_open(&self) -> bool {
        self.rule().is_open()
    }

    /// The highest epoch seen.
    pub(crate) fn highest(&self) -> Option<Epoch> {
        self.rule().highest()
    }

    fn rule(&self) -> MutexGuard<'_, coordinator::Fence> {
        self.rule.lock().expect("nothing panics while the fence is held")
    }
}

/// What the fence says, as an answer to the command.
#[expect(clippy::result_large_err, reason = "the error is the answer itself, moved once to the wire")]
fn answer(epoch: Epoch, passage: Passage) -> Result<(), Response> {
    match passage {
        Passage::Open => Ok(()),
        Passage::Stale { seen } => {
            tracing::warn!(%epoch, %seen, "a command of an epoch that is over is refused");
            Err(Response::StaleEpoch { seen })
        }
        Passage::Shut { told, majority } => Err(Response::Invalid {
            reason: format!(
                "this process just started and has read the epoch from {told} of {majority} electors so far"
            ),
        }),
    }
}

/// How long a question waits for the fence to open: some readings of the epoch, and less than a coordinator waits for an
/// inventory.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Epoch = Epoch { term: 3, elector: 0 };

    #[tokio::test(start_paused = true)]
    async fn a_question_before_the_epoch_is_read_waits_and_has_it_read() {
        let fence = Fence::new(3);
        let question = fence.pass_when_open(EPOCH);
        let reader = async {
            fence.knock().await;
            fence.learn(NodeIndex(1), Some(EPOCH));
        };
        let (passed, ()) = tokio::join!(question, reader);
        assert_eq!(passed, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_before_a_fence_that_stays_shut_is_refused_in_the_end() {
        let fence = Fence::new(3);
        let begun = Instant::now();
        let passed = fence.pass_when_open(EPOCH).await;
        assert!(
            matches!(&passed, Err(Response::Invalid { reason }) if reason.contains("1 of 2")),
            "{passed:?}"
        );
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_of_an_old_epoch_is_refused_as_soon_as_that_is_known() {
        let fence = Fence::new(3);
        let old = Epoch { term: 2, elector: 1 };
        let (passed, ()) = tokio::join!(fence.pass_when_open(old), async {
            fence.knock().await;
            fence.learn(NodeIndex(0), Some(EPOCH));
        });
        assert_eq!(passed, Err(Response::StaleEpoch { seen: EPOCH }));
    }
}
