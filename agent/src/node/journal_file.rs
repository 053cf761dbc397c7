//! The journal of one run on this node: observations are appended before they are reported.
//!
//! Appending is one `write` into the page cache, so a killed process loses nothing. A thread of its own calls `fsync`
//! at most [`SYNC_EVERY`] after an append and at the end, so a power loss loses at most that much. Files are named
//! after their run and the oldest go when there are more than [`KEPT_FILES`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bench_core::ids::RunId;
use bench_core::journal;
use bench_core::record::Observation;

/// The journals of a node.
#[derive(Debug)]
pub(crate) struct Journals {
    folder: PathBuf,
    open: Mutex<Option<OpenJournal>>,
    /// One slot: a full channel means that a sync is due anyway, so the reminder is dropped.
    sync: mpsc::SyncSender<Arc<File>>,
}

#[derive(Debug)]
struct OpenJournal {
    run: RunId,
    file: Arc<File>,
}

impl Journals {
    /// Journals in `folder`, which is made if it is not there. The sync thread ends when this value is dropped.
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let (sync, due) = mpsc::sync_channel::<Arc<File>>(1);
        thread::Builder::new().name("journal-sync".to_owned()).spawn(move || sync_loop(&due))?;
        Ok(Self { folder, open: Mutex::new(None), sync })
    }

    /// Appends observations of one run; when it returns, a kill of this process no longer loses them.
    pub(crate) fn append(&self, run: RunId, observations: &[Observation]) -> io::Result<()> {
        let mut open = self.open.lock().expect("nothing panics while the journal is held");
        if open.as_ref().is_none_or(|journal| journal.run != run) {
            let file = OpenOptions::new().create(true).append(true).open(self.path(run))?;
            *open = Some(OpenJournal { run, file: Arc::new(file) });
            self.drop_oldest()?;
        }
        let journal = open.as_ref().expect("opened above");
        let bytes: Vec<u8> = observations.iter().flat_map(journal::encode).collect();
        (&*journal.file).write_all(&bytes)?;
        match self.sync.try_send(Arc::clone(&journal.file)) {
            Ok(()) | Err(mpsc::TrySendError::Full(_)) => Ok(()),
            Err(mpsc::TrySendError::Disconnected(_)) => journal.file.sync_data(),
        }
    }

    /// What the journal of a run holds; damaged records are left out and logged.
    pub(crate) fn read(&self, run: RunId) -> io::Result<Vec<Observation>> {
        let bytes = match fs::read(self.path(run)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let read = journal::read(&bytes);
        for damaged in &read.damaged {
            tracing::warn!(%run, offset = damaged.offset, reason = ?damaged.reason, "journal record is damaged and left out");
        }
        Ok(read.observations)
    }

    fn path(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.{EXTENSION}"))
    }

    fn drop_oldest(&self) -> io::Result<()> {
        let mut files: Vec<(std::time::SystemTime, PathBuf)> = fs::read_dir(&self.folder)?
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|e| e == EXTENSION))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(KEPT_FILES);
        files.iter().take(surplus).try_for_each(|(_, path): &(_, PathBuf)| remove(path))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

fn sync_loop(due: &mpsc::Receiver<Arc<File>>) {
    while let Ok(file) = due.recv() {
        thread::sleep(SYNC_EVERY);
        if let Err(error) = file.sync_data() {
            tracing::warn!(%error, "the journal could not be synced to disk");
        }
    }
}

/// Longest time between an append and its fsync: the design's bound for what a power loss may take.
const SYNC_EVERY: Duration = Duration::from_millis(800);

/// Journals kept on a node: the runs of an acceptance day; each is a few MB.
const KEPT_FILES: usize = 32;

/// File name extension of journals.
const EXTENSION: &str = "journal";
