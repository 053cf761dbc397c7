//! Vote and log of an elector: held in memory, written through to the disk before they are acknowledged.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, MutexGuard};

use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{RaftLogId as _, RaftLogReader, StorageIOError};
use serde::{Deserialize, Serialize};

use super::super::types::{LogEntry, LogId, StorageError, TypeConfig, Vote};
use super::disk::{Disk, Item};
use super::record::{self, Damage, Next};

/// Vote and log. Clones are one store.
#[derive(Clone, Debug)]
pub(crate) struct LogStore {
    disk: Disk,
    held: Arc<Mutex<Held>>,
}

/// What is in memory: the same as on disk, or ahead of it by what is being written.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) vote: Option<Vote>,
    pub(crate) purged: Option<LogId>,
    pub(crate) entries: BTreeMap<u64, LogEntry>,
}

/// The first record of a log file.
#[derive(Debug, Serialize, Deserialize)]
struct LogHeader {
    /// The last entry that is only in the snapshot.
    purged: Option<LogId>,
}

/// A log file that was read.
#[derive(Debug)]
pub(crate) struct ReadLog {
    pub(crate) purged: Option<LogId>,
    pub(crate) entries: BTreeMap<u64, LogEntry>,
    /// Bytes of an append that never returned, at the end of the file.
    pub(crate) torn_bytes: usize,
}

impl LogStore {
    pub(crate) fn new(disk: Disk, held: Held) -> Self {
        Self { disk, held: Arc::new(Mutex::new(held)) }
    }

    /// The vote as it is in memory.
    pub(crate) fn vote(&self) -> Option<Vote> {
        self.held().vote
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nothing panics while the log is held")
    }

    async fn rewrite(&self) -> io::Result<()> {
        let bytes = {
            let held = self.held();
            file_of(held.purged, held.entries.values())
        };
        self.disk.replace(Item::Log, bytes).await
    }
}

/// A log file with these entries.
pub(crate) fn file_of<'a>(purged: Option<LogId>, entries: impl IntoIterator<Item = &'a LogEntry>) -> Vec<u8> {
    let mut bytes = record::seal(&LogHeader { purged });
    entries.into_iter().for_each(|entry| bytes.extend(record::seal(entry)));
    bytes
}

/// Reads a log file.
///
/// # Errors
/// [`Damage`] if there is something that no sequence of appends leaves behind.
pub(crate) fn read(bytes: &[u8]) -> Result<ReadLog, Damage> {
    let (LogHeader { purged }, mut rest) = match record::next(bytes)? {
        Next::Record { message, rest } => (message, rest),
        Next::End | Next::Torn { .. } => return Err(Damage::Short),
    };
    let mut entries: BTreeMap<u64, LogEntry> = BTreeMap::new();
    let mut expected = purged.map_or(0, |id| id.index + 1);
    loop {
        match record::next::<LogEntry>(rest)? {
            Next::Record { message, rest: behind } => {
                let index = message.get_log_id().index;
                if index != expected {
                    return Err(Damage::Gap { index });
                }
                expected += 1;
                entries.insert(index, message);
                rest = behind;
            }
            Next::End | Next::Torn { .. } => {
                return Ok(ReadLog { purged, entries, torn_bytes: rest.len() });
            }
        }
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<LogEntry>, StorageError> {
        let held = self.held();
        Ok(held.entries.range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, StorageError> {
        let held = self.held();
        let last = held.entries.last_key_value().map(|(_, entry)| *entry.get_log_id());
        Ok(LogState { last_purged_log_id: held.purged, last_log_id: last.or(held.purged) })
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        self.held().vote = Some(*vote);
        let bytes = record::seal(&Some(*vote));
        self.disk.replace(Item::Vote, bytes).await.map_err(|error| StorageIOError::write_vote(&error).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.vote())
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<TypeConfig>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = LogEntry> + Send,
        I::IntoIter: Send,
    {
        let mut bytes = Vec::new();
        {
            let mut held = self.held();
            for entry in entries {
                bytes.extend(record::seal(&entry));
                held.entries.insert(entry.get_log_id().index, entry);
            }
        }
        self.disk.append(bytes, callback);
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        drop(self.held().entries.split_off(&log_id.index));
        self.rewrite().await.map_err(|error| StorageIOError::write_logs(&error).into())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        {
            let mut held = self.held();
            held.purged = held.purged.max(Some(log_id));
            held.entries = held.entries.split_off(&(log_id.index + 1));
        }
        self.rewrite().await.map_err(|error| StorageIOError::write_logs(&error).into())
    }
}
