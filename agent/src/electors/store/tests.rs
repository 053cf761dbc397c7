//! The store of an elector: openraft's own suite, and torn or damaged files.

use std::fs;
use std::path::Path;

use bench_core::ids::{BootId, Epoch, RunId};
use coordinator::Entry;
use openraft::storage::{RaftLogStorage as _, RaftLogStorageExt as _, RaftStateMachine as _};
use openraft::testing::{StoreBuilder, Suite};
use openraft::{CommittedLeaderId, EntryPayload, RaftLogReader as _, RaftSnapshotBuilder as _};
use tempfile::TempDir;

use super::*;
use crate::electors::types::{LogEntry, LogId, StorageError, TypeConfig};

const ME: ElectorId = ElectorId { elector: 1, incarnation: 0 };

impl From<u64> for ElectorId {
    fn from(number: u64) -> Self {
        Self { elector: number as u16, incarnation: 0 }
    }
}

struct Builder;

impl StoreBuilder<TypeConfig, LogStore, StateMachine, (TempDir, mpsc::UnboundedReceiver<Applied>)>
    for Builder
{
    async fn build(
        &self,
    ) -> Result<((TempDir, mpsc::UnboundedReceiver<Applied>), LogStore, StateMachine), StorageError> {
        let folder = tempfile::tempdir().expect("a directory");
        let store = found(folder.path());
        Ok(((folder, store.applied), store.log, store.machine))
    }
}

#[test]
fn the_storage_suite_of_openraft_passes() {
    Suite::test_all(Builder).expect("the suite passes");
}

fn found(folder: &Path) -> Store {
    let identity = Identity { id: ME, founders: vec![BootId([7; 16])] };
    Store::found(&folder.join("state"), identity).expect("a store")
}

fn open(folder: &Path) -> Opened {
    Store::open(&folder.join("state"), ME.elector).expect("it can be read")
}

fn kept(folder: &Path) -> Store {
    match open(folder) {
        Opened::Kept(store) => *store,
        other => panic!("kept state, not {other:?}"),
    }
}

fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(CommittedLeaderId::new(term, ME), index)
}

fn ended(index: u64) -> LogEntry {
    LogEntry {
        log_id: log_id(1, index),
        payload: EntryPayload::Normal(Entry::RunEnded {
            run: RunId([index as u8; 16]),
            epoch: Epoch { term: 1, elector: 1 },
        }),
    }
}

async fn entries(store: &mut Store) -> Vec<u64> {
    let entries = store.log.try_get_log_entries(..).await.expect("in memory");
    entries.iter().map(|entry| entry.log_id.index).collect()
}

/// A store with a vote and entries 0 to 3.
async fn filled(folder: &Path) -> Store {
    let mut store = found(folder);
    let vote = Vote::new(3, ElectorId { elector: 2, incarnation: 9 });
    store.log.save_vote(&vote).await.expect("saved");
    for index in 0..4 {
        store.log.blocking_append([ended(index)]).await.expect("appended");
    }
    store
}

#[tokio::test]
async fn vote_and_log_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut store = filled(folder.path()).await;
    store.log.truncate(log_id(1, 3)).await.expect("cut");
    drop(store);
    let mut store = kept(folder.path());
    assert_eq!(entries(&mut store).await, [0, 1, 2]);
    assert_eq!(store.log.vote(), Some(Vote::new(3, ElectorId { elector: 2, incarnation: 9 })));
    store.log.blocking_append([ended(3)]).await.expect("appended");
    drop(store);
    assert_eq!(entries(&mut kept(folder.path())).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_snapshot_stands_in_for_the_purged_log() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut store = filled(folder.path()).await;
    let applied: Vec<LogEntry> = (0..3).map(ended).collect();
    store.machine.apply(applied).await.expect("applied");
    let before = store.machine.build_snapshot().await.expect("built");
    store.log.purge(log_id(1, 2)).await.expect("purged");
    drop(store);
    let mut store = kept(folder.path());
    assert_eq!(entries(&mut store).await, [3]);
    let after = store.machine.get_current_snapshot().await.expect("read").expect("kept");
    assert_eq!((after.meta, after.snapshot), (before.meta, before.snapshot));
}

#[tokio::test]
async fn an_elector_that_led_does_not_lead_on_in_its_old_term() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut store = found(folder.path());
    store.log.save_vote(&Vote::new_committed(4, ME)).await.expect("saved");
    drop(store);
    assert_eq!(kept(folder.path()).log.vote(), Some(Vote::new(4, ME)));
}

#[tokio::test]
async fn a_log_cut_anywhere_is_a_prefix_or_lost() {
    let folder = tempfile::tempdir().expect("a directory");
    drop(filled(folder.path()).await);
    let path = folder.path().join("state/log");
    let good = fs::read(&path).expect("written");
    let header = log::file_of(None, []).len();
    for cut in 0..good.len() {
        let copy = copy_of(folder.path());
        fs::write(copy.path().join("state/log"), &good[..cut]).expect("written");
        match open(copy.path()) {
            Opened::Kept(mut store) if cut >= header => {
                let read = entries(&mut store).await;
                assert_eq!(read, (0..read.len() as u64).collect::<Vec<_>>(), "cut at {cut}");
                assert!(read.len() < 4, "cut at {cut}");
                // What was torn is gone from the file too: the next append follows a whole record.
                store.log.blocking_append([ended(read.len() as u64)]).await.expect("appended");
                drop(store);
                assert_eq!(entries(&mut kept(copy.path())).await.len(), read.len() + 1, "cut at {cut}");
            }
            Opened::Lost { .. } if cut < header => {}
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_at_any_byte_of_any_file_means_that_the_state_is_lost() {
    let folder = tempfile::tempdir().expect("a directory");
    drop(filled(folder.path()).await);
    for item in [Item::Identity, Item::Vote, Item::Log, Item::Snapshot] {
        let good = fs::read(folder.path().join("state").join(item.name())).expect("written");
        for at in 0..good.len() {
            let copy = copy_of(folder.path());
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            fs::write(copy.path().join("state").join(item.name()), bad).expect("written");
            assert!(matches!(open(copy.path()), Opened::Lost { .. }), "{item:?}, flip at {at}");
            assert!(matches!(open(copy.path()), Opened::Empty), "it was put aside");
        }
    }
}

#[tokio::test]
async fn a_vote_cut_anywhere_or_gone_means_that_the_state_is_lost() {
    let folder = tempfile::tempdir().expect("a directory");
    drop(filled(folder.path()).await);
    let good = fs::read(folder.path().join("state/vote")).expect("written");
    for cut in 0..good.len() {
        let copy = copy_of(folder.path());
        fs::write(copy.path().join("state/vote"), &good[..cut]).expect("written");
        assert!(matches!(open(copy.path()), Opened::Lost { .. }), "cut at {cut}");
    }
    for item in [Item::Vote, Item::Log, Item::Snapshot] {
        let copy = copy_of(folder.path());
        fs::remove_file(copy.path().join("state").join(item.name())).expect("removed");
        assert!(matches!(open(copy.path()), Opened::Lost { .. }), "{item:?} gone");
    }
}

#[tokio::test]
async fn a_log_that_begins_behind_its_snapshot_is_lost() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut store = filled(folder.path()).await;
    store.log.purge(log_id(1, 2)).await.expect("purged");
    drop(store);
    assert!(matches!(open(folder.path()), Opened::Lost { .. }));
}

fn copy_of(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    let state = copy.path().join("state");
    fs::create_dir(&state).expect("made");
    for item in [Item::Identity, Item::Vote, Item::Log, Item::Snapshot] {
        fs::copy(folder.join("state").join(item.name()), state.join(item.name())).expect("copied");
    }
    copy
}
