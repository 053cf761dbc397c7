//! The thread that writes: every write of an elector goes through it in order, so that the runtime's thread never
//! waits for a disk.
//!
//! A file that is replaced is written beside the old one, synced and renamed over it, and the folder is synced: a torn
//! write leaves the old file. The log is appended to and synced before the append is acknowledged.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use openraft::storage::LogFlushed;
use tokio::sync::oneshot;

use super::super::types::TypeConfig;

/// The files of an elector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Who it is. Written last when the folder is made: where it is, all others are.
    Identity,
    /// Whom it voted for.
    Vote,
    /// The log.
    Log,
    /// What was decided up to where the log begins.
    Snapshot,
}

impl Item {
    /// Its file name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Vote => "vote",
            Self::Log => "log",
            Self::Snapshot => "snapshot",
        }
    }
}

/// Writes files of one elector in order. Cheap to clone; the thread ends with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    writes: mpsc::Sender<Write>,
}

impl Disk {
    /// Starts the thread for `folder`, which holds a log already.
    pub(crate) fn start(folder: PathBuf) -> io::Result<Self> {
        let log = open_log(&folder)?;
        let (writes, due) = mpsc::channel();
        thread::Builder::new()
            .name("elector-store".to_owned())
            .spawn(move || Writer { folder, log, broken: None }.run(&due))?;
        Ok(Self { writes })
    }

    /// Replaces a file; when this returns, the new one is on disk.
    pub(crate) async fn replace(&self, item: Item, bytes: Vec<u8>) -> io::Result<()> {
        let (done, outcome) = oneshot::channel();
        let write = Write::Replace { item, bytes, done };
        self.writes.send(write).map_err(|_| ended())?;
        outcome.await.map_err(|_| ended())?
    }

    /// Appends to the log; `flushed` hears when it is on disk.
    pub(crate) fn append(&self, bytes: Vec<u8>, flushed: LogFlushed<TypeConfig>) {
        if let Err(mpsc::SendError(write)) = self.writes.send(Write::Append { bytes, flushed }) {
            write.fail(&ended());
        }
    }
}

/// Replaces a file in `folder` from this thread.
pub(crate) fn replace_now(folder: &Path, item: Item, bytes: &[u8]) -> io::Result<()> {
    let path = folder.join(item.name());
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, &path)?;
    File::open(folder)?.sync_all()
}

enum Write {
    Replace { item: Item, bytes: Vec<u8>, done: oneshot::Sender<io::Result<()>> },
    Append { bytes: Vec<u8>, flushed: LogFlushed<TypeConfig> },
}

impl Write {
    fn fail(self, error: &io::Error) {
        let error = io::Error::new(error.kind(), error.to_string());
        match self {
            Self::Replace { done, .. } => drop(done.send(Err(error))),
            Self::Append { flushed, .. } => flushed.log_io_completed(Err(error)),
        }
    }
}

struct Writer {
    folder: PathBuf,
    log: File,
    /// The first error: after it nobody knows what is on disk, so nothing more is written.
    broken: Option<io::Error>,
}

impl Writer {
    fn run(mut self, due: &mpsc::Receiver<Write>) {
        while let Ok(write) = due.recv() {
            match &self.broken {
                Some(error) => write.fail(error),
                None => self.carry_out(write),
            }
        }
    }

    fn carry_out(&mut self, write: Write) {
        match write {
            Write::Replace { item, bytes, done } => {
                let outcome = self.replace(item, &bytes);
                let outcome = self.note(outcome);
                // Who does not wait any more has stopped.
                let _: Result<_, _> = done.send(outcome);
            }
            Write::Append { bytes, flushed } => {
                let outcome = self.log.write_all(&bytes).and_then(|()| self.log.sync_data());
                flushed.log_io_completed(self.note(outcome));
            }
        }
    }

    fn replace(&mut self, item: Item, bytes: &[u8]) -> io::Result<()> {
        replace_now(&self.folder, item, bytes)?;
        match item {
            Item::Log => self.log = open_log(&self.folder)?,
            Item::Identity | Item::Vote | Item::Snapshot => {}
        }
        Ok(())
    }

    fn note(&mut self, outcome: io::Result<()>) -> io::Result<()> {
        if let Err(error) = &outcome {
            self.broken = Some(io::Error::new(error.kind(), error.to_string()));
        }
        outcome
    }
}

fn open_log(folder: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(folder.join(Item::Log.name()))
}

fn ended() -> io::Error {
    io::Error::other("the thread that writes the electors' files has ended")
}
