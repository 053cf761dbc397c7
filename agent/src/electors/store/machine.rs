//! The decisions that the committed log amounts to, their snapshot on disk, and the news of each entry applied.

use std::io::{self, Cursor};
use std::sync::{Arc, Mutex, MutexGuard};

use coordinator::{Decisions, Entry};
use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{EntryPayload, RaftSnapshotBuilder, SnapshotMeta, StorageIOError};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::super::types::{ElectorId, LogEntry, LogId, StorageError, StoredMembership, TypeConfig, Vote};
use super::disk::{Disk, Item};
use super::record;

/// Decisions as far as they are applied. Clones are one machine.
#[derive(Clone, Debug)]
pub(crate) struct StateMachine {
    disk: Disk,
    held: Arc<Mutex<Held>>,
    news: mpsc::UnboundedSender<Applied>,
}

/// Something was applied, in the order of the log.
#[derive(Clone, Debug)]
pub(crate) enum Applied {
    /// A leader's first entry: everything that earlier leaders had committed is applied.
    Begun {
        /// The leader and its term.
        leader: LogId,
        /// What was decided before.
        decisions: Box<Decisions>,
    },
    /// A decision.
    Decided(Entry),
}

/// A snapshot as it is on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) meta: SnapshotMeta<ElectorId, openraft::EmptyNode>,
    pub(crate) decisions: Decisions,
}

#[derive(Debug, Default)]
struct Held {
    applied: Option<LogId>,
    membership: StoredMembership,
    decisions: Decisions,
    snapshot: Option<Stored>,
}

impl StateMachine {
    /// The state of a snapshot, or the empty state. `news` hears what is applied from then on; it holds entries until
    /// their reader takes them, and an elector applies a few a second.
    pub(crate) fn new(disk: Disk, snapshot: Option<Stored>, news: mpsc::UnboundedSender<Applied>) -> Self {
        let held = match snapshot {
            None => Held::default(),
            Some(stored) => Held::of(stored),
        };
        Self { disk, held: Arc::new(Mutex::new(held)), news }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nothing panics while the decisions are held")
    }

    async fn keep(&self, stored: Option<Stored>) -> io::Result<()> {
        self.disk.replace(Item::Snapshot, record::seal(&stored)).await
    }
}

impl Held {
    fn of(stored: Stored) -> Self {
        Self {
            applied: stored.meta.last_log_id,
            membership: stored.meta.last_membership.clone(),
            decisions: stored.decisions.clone(),
            snapshot: Some(stored),
        }
    }

    fn apply(&mut self, entry: LogEntry) -> Option<Applied> {
        self.applied = Some(entry.log_id);
        match entry.payload {
            EntryPayload::Blank => {
                Some(Applied::Begun { leader: entry.log_id, decisions: Box::new(self.decisions.clone()) })
            }
            EntryPayload::Normal(decision) => {
                self.decisions.apply(&decision);
                Some(Applied::Decided(decision))
            }
            EntryPayload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(entry.log_id), membership);
                None
            }
        }
    }
}

impl Stored {
    fn snapshot(&self) -> Snapshot<TypeConfig> {
        let body = postcard::to_stdvec(&self.decisions).expect("decisions have an encoding");
        Snapshot { meta: self.meta.clone(), snapshot: Box::new(Cursor::new(body)) }
    }
}

impl RaftSnapshotBuilder<TypeConfig> for StateMachine {
    async fn build_snapshot(&mut self) -> Result<Snapshot<TypeConfig>, StorageError> {
        let stored = {
            let held = self.held();
            Stored {
                meta: SnapshotMeta {
                    last_log_id: held.applied,
                    last_membership: held.membership.clone(),
                    snapshot_id: held.applied.map_or_else(|| "empty".to_owned(), |id| id.to_string()),
                },
                decisions: held.decisions.clone(),
            }
        };
        self.keep(Some(stored.clone()))
            .await
            .map_err(|error| StorageIOError::write_snapshot(Some(stored.meta.signature()), &error))?;
        let snapshot = stored.snapshot();
        self.held().snapshot = Some(stored);
        Ok(snapshot)
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let held = self.held();
        Ok((held.applied, held.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, StorageError>
    where
        I: IntoIterator<Item = LogEntry> + Send,
        I::IntoIter: Send,
    {
        let mut held = self.held();
        let mut count = 0;
        for entry in entries {
            count += 1;
            if let Some(news) = held.apply(entry) {
                // Without a reader the elector is stopping.
                let _: Result<_, _> = self.news.send(news);
            }
        }
        Ok(vec![(); count])
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<ElectorId, openraft::EmptyNode>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let decisions = postcard::from_bytes(snapshot.get_ref())
            .map_err(|error| StorageIOError::read_snapshot(Some(meta.signature()), &error))?;
        let stored = Stored { meta: meta.clone(), decisions };
        self.keep(Some(stored.clone()))
            .await
            .map_err(|error| StorageIOError::write_snapshot(Some(meta.signature()), &error))?;
        *self.held() = Held::of(stored);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<TypeConfig>>, StorageError> {
        Ok(self.held().snapshot.as_ref().map(Stored::snapshot))
    }
}

/// The vote as an elector starts with it: one that commanded does not go on in its old term, because its machine has
/// forgotten what it had started there. It gives up only its own leadership, so no promise to another is broken.
pub(crate) fn vote_at_start(vote: Option<Vote>, me: ElectorId) -> Option<Vote> {
    vote.map(|vote| if vote.leader_id.node_id == me { Vote::new(vote.leader_id.term, me) } else { vote })
}
