//! From openraft's state to the coordinator's events: who is elected, what is decided, who is deposed.
//!
//! An elector commands from the moment its first entry of the term is applied, since everything that was committed
//! before is applied then. It is deposed when it sees a higher vote, when a proposal of its is lost, or when no
//! majority has answered for [`LEASE`]. It never commands twice in one epoch: after a lost lease it steps down, so that
//! electors which hear it without being heard elect another one, and stands again when a majority answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench_core::ids::Epoch;
use coordinator::{Decisions, Entry, Event};
use openraft::raft::{ClientWriteResponse, VoteRequest};
use openraft::{CommittedLeaderId, Raft, RaftMetrics, ServerState};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Running;
use super::store::Applied;
use super::types::{ElectorId, LogId, TypeConfig, Vote, epoch_of};
use super::wire::Wire;

type Metrics = RaftMetrics<ElectorId, openraft::EmptyNode>;

/// When a majority last confirmed the epoch in which this elector commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Confirmed {
    last: Arc<Mutex<Option<(Epoch, Instant)>>>,
}

impl Confirmed {
    /// Whether a majority confirmed this epoch within [`LEASE`].
    pub(super) fn holds(&self, epoch: Epoch) -> bool {
        let last = *self.last.lock().expect(HELD);
        last.is_some_and(|(confirmed, at)| confirmed == epoch && at.elapsed() < LEASE)
    }

    fn renew(&self, epoch: Epoch, at: Instant) {
        let mut last = self.last.lock().expect(HELD);
        let later = last.is_some_and(|(_, known)| known > at);
        if !later {
            *last = Some((epoch, at));
        }
    }

    fn set(&self, value: Option<(Epoch, Instant)>) {
        *self.last.lock().expect(HELD) = value;
    }
}

/// The task that follows one raft.
pub(super) struct Lead<'a> {
    me: ElectorId,
    electors: usize,
    wire: Arc<dyn Wire>,
    raft: Raft<TypeConfig>,
    metrics: watch::Receiver<Metrics>,
    confirmed: &'a Confirmed,
    events: mpsc::UnboundedSender<Event>,
    /// The first entry of this elector's latest term, and what was decided before it.
    begun: Option<(Epoch, Box<Decisions>)>,
    /// The epoch in which it commands.
    epoch: Option<Epoch>,
    /// The last epoch in which it was deposed: it does not command in it again.
    spent: Option<Epoch>,
    /// It found itself without a majority and leaves elections to others until it hears one.
    passive: bool,
    /// When the loop last turned: what it finds now happened since.
    last_turn: Instant,
    lost: mpsc::UnboundedSender<(Epoch, String)>,
    losses: mpsc::UnboundedReceiver<(Epoch, String)>,
}

impl<'a> Lead<'a> {
    /// Follows the raft of one of `electors` electors.
    pub(super) fn new(
        running: &Running,
        electors: usize,
        wire: Arc<dyn Wire>,
        confirmed: &'a Confirmed,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let (lost, losses) = mpsc::unbounded_channel();
        Self {
            me: running.identity.id,
            electors,
            wire,
            raft: running.raft.clone(),
            metrics: running.raft.metrics(),
            confirmed,
            events,
            begun: None,
            epoch: None,
            spent: None,
            passive: false,
            last_turn: Instant::now(),
            lost,
            losses,
        }
    }

    /// Follows the raft until it ends.
    ///
    /// # Errors
    /// A sentence that says what ended it.
    pub(super) async fn run(
        mut self,
        mut applied: mpsc::UnboundedReceiver<Applied>,
        mut proposals: mpsc::UnboundedReceiver<Entry>,
    ) -> Result<(), String> {
        let mut tick = interval(LOOK_AT_LEASE);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Every branch is cancel safe: a receiver, a watch or a tick. Biased, so that a process which was stopped
            // learns what others did meanwhile before it proposes anything.
            tokio::select! {
                biased;
                changed = self.metrics.changed() => {
                    if changed.is_err() {
                        self.depose("the elector has ended");
                        return Ok(());
                    }
                    let metrics = self.metrics.borrow_and_update().clone();
                    self.renew(&metrics);
                    self.follow(&metrics).await?;
                }
                Some((epoch, reason)) = self.losses.recv() => {
                    if self.epoch == Some(epoch) {
                        self.depose(&reason);
                    }
                }
                Some(news) = applied.recv() => self.applied(news).await?,
                _ = tick.tick() => {
                    let metrics = self.metrics.borrow().clone();
                    self.follow(&metrics).await?;
                    if self.passive {
                        self.look_for_majority().await;
                    }
                }
                Some(entry) = proposals.recv() => self.propose(entry).await,
            }
            self.last_turn = Instant::now();
        }
    }

    async fn applied(&mut self, news: Applied) -> Result<(), String> {
        match news {
            Applied::Begun { leader, decisions } if leader.leader_id.node_id == self.me => {
                let epoch = Epoch { term: leader.leader_id.term, elector: self.me.elector };
                self.begun = Some((epoch, decisions));
                let metrics = self.metrics.borrow().clone();
                self.follow(&metrics).await
            }
            Applied::Begun { .. } => Ok(()),
            Applied::Decided(entry) => {
                if self.epoch.is_some() {
                    self.tell(Event::Committed(entry));
                }
                Ok(())
            }
        }
    }

    /// Holds what was told against the state of the raft.
    async fn follow(&mut self, metrics: &Metrics) -> Result<(), String> {
        if let Err(fatal) = &metrics.running_state {
            let reason = format!("the elector has stopped: {fatal}");
            self.depose(&reason);
            return Err(reason);
        }
        let leads = metrics.state == ServerState::Leader
            && metrics.vote.committed
            && metrics.vote.leader_id.node_id == self.me;
        let epoch = epoch_of(&metrics.vote);
        if let Some(own) = self.epoch {
            if !leads || epoch != own {
                self.depose(&format!("the electors went on to epoch {epoch}"));
            } else if !self.confirmed.holds(own) {
                self.depose(&format!("no majority of the electors has answered for {LEASE:?}"));
                // Its bids would only disturb electors that hear it and are not heard by it.
                self.raft.runtime_config().elect(false);
                self.passive = true;
            }
        }
        if self.epoch.is_some() || !leads {
            return Ok(());
        }
        if self.spent == Some(epoch) {
            return self.step_down(metrics).await;
        }
        if let Some((begun, decisions)) = self.begun.take_if(|(begun, _)| *begun == epoch) {
            self.epoch = Some(begun);
            self.confirmed.set(Some((begun, Instant::now())));
            tracing::info!(epoch = %begun, "elected");
            self.tell(Event::Elected { epoch: begun, decisions });
        }
        Ok(())
    }

    /// Takes note of a majority's answer. The age in the metrics counts from their report, which came after the last
    /// turn of the loop: so counted, a process that was stopped does not take an old answer for a new one.
    fn renew(&self, metrics: &Metrics) {
        let answered = metrics
            .millis_since_quorum_ack
            .and_then(|millis| self.last_turn.checked_sub(Duration::from_millis(millis)));
        if let (Some(epoch), Some(at)) = (self.epoch, answered) {
            self.confirmed.renew(epoch, at);
        }
    }

    /// Leaves a leadership that nobody else has ended: openraft's leader yields only to a higher vote of another one, so
    /// this elector gives nobody its vote of the next term. Refused while its own lease runs; the next turn tries again.
    async fn step_down(&self, metrics: &Metrics) -> Result<(), String> {
        let term = metrics.vote.leader_id.term;
        let last =
            metrics.last_log_index.map(|index| LogId::new(CommittedLeaderId::new(term, self.me), index));
        let request = VoteRequest::new(Vote::new(term + 1, NOBODY), last);
        self.raft.vote(request).await.map(drop).map_err(|error| error.to_string())
    }

    /// Stands for election again once a majority answers questions.
    async fn look_for_majority(&mut self) {
        let heard = self.wire.look_around().await.electors.len() + 1;
        if heard > self.electors / 2 {
            self.passive = false;
            self.raft.runtime_config().elect(true);
        }
    }

    async fn propose(&mut self, entry: Entry) {
        let Some(epoch) = self.epoch.filter(|epoch| *epoch == entry.epoch()) else {
            tracing::warn!(epoch = %entry.epoch(), "a proposal of an epoch that is over is dropped");
            return;
        };
        match self.raft.client_write_ff(entry).await {
            Ok(outcome) => {
                let lost = self.lost.clone();
                // Ends with the raft at the latest, which drops its senders.
                tokio::spawn(async move {
                    let reason = match outcome.await {
                        Ok(Ok(ClientWriteResponse { .. })) => return,
                        Ok(Err(error)) => error.to_string(),
                        Err(_) => "the elector has ended".to_owned(),
                    };
                    // Without a receiver the elector is stopping.
                    let _: Result<_, _> = lost.send((epoch, format!("a proposal was lost: {reason}")));
                });
            }
            Err(fatal) => self.depose(&format!("a proposal was lost: {fatal}")),
        }
    }

    fn depose(&mut self, reason: &str) {
        if let Some(epoch) = self.epoch.take() {
            tracing::warn!(%epoch, reason, "deposed");
            self.spent = Some(epoch);
            self.confirmed.set(None);
            self.tell(Event::Deposed { reason: reason.to_owned() });
        }
    }

    fn tell(&self, event: Event) {
        // Without a receiver the agent is stopping.
        let _: Result<_, _> = self.events.send(event);
    }
}

/// An id that no elector has, below all but one: a vote for it binds nobody.
const NOBODY: ElectorId = ElectorId { elector: 0, incarnation: 1 };

/// How long a leader commands without an answer of a majority: above the longest wait of an election, so that a busy
/// machine does not depose a leader whom nobody else would replace.
const LEASE: Duration = Duration::from_secs(2);

/// How often the lease is looked at where nothing happens.
const LOOK_AT_LEASE: Duration = Duration::from_millis(250);

/// Why the lock of this module cannot be poisoned.
const HELD: &str = "nothing panics while the confirmation is held";
