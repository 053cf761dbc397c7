//! What an elector keeps on disk: who it is, its vote, its log and the snapshot of decisions.
//!
//! ```text
//!  STATE/electors-GENERATION/identity   written last when the folder is made: where it is, the others are
//!                            vote       replaced whole
//!                            log        header, then one record an entry; appended, replaced when it is cut
//!                            snapshot   replaced whole
//! ```
//! Everything is checksummed. A record that is cut off at the end of the log is an append that never returned: it is
//! dropped and logged. Any other damage means that the state is lost: the folder is put aside, and the elector comes
//! back as one that must not vote until it has been replaced.

mod disk;
mod log;
mod machine;
mod record;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bench_core::ids::BootId;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc;

use self::disk::{Disk, Item, replace_now};
use self::log::Held;
use self::machine::{Stored, vote_at_start};
use self::record::{Damage, seal, unseal};
use super::types::{ElectorId, Vote};

pub(crate) use log::LogStore;
pub(crate) use machine::{Applied, StateMachine};

/// Who an elector is, and with whom it founded the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Its id.
    pub(crate) id: ElectorId,
    /// The processes without state that were heard when the mesh was founded: each may found it too.
    pub(crate) founders: Vec<BootId>,
}

/// The store of one elector.
#[derive(Debug)]
pub(crate) struct Store {
    /// Who it is.
    pub(crate) identity: Identity,
    /// Vote and log.
    pub(crate) log: LogStore,
    /// Decisions.
    pub(crate) machine: StateMachine,
    /// What is applied, in order.
    pub(crate) applied: mpsc::UnboundedReceiver<Applied>,
}

/// What a folder holds.
#[derive(Debug)]
pub(crate) enum Opened {
    /// An elector's state.
    Kept(Box<Store>),
    /// Nothing.
    Empty,
    /// An elector's state that cannot be trusted; it was put aside.
    Lost {
        /// What is wrong with it.
        reason: String,
    },
}

/// Why the state cannot be kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder cannot be used.
    #[error("the elector's state in {path} cannot be kept: {source}; name a folder that can be written with --state", path = .path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Store {
    /// Opens what `folder` holds for the elector at position `elector`.
    ///
    /// # Errors
    /// [`StoreError`] if the folder cannot be read or written.
    pub(crate) fn open(folder: &Path, elector: u16) -> Result<Opened, StoreError> {
        let io = |source| StoreError::Io { path: folder.to_owned(), source };
        match load(folder, elector) {
            Ok(None) => Ok(Opened::Empty),
            Ok(Some(loaded)) => loaded.start(folder).map(|store| Opened::Kept(Box::new(store))).map_err(io),
            Err(Fault::Io(source)) => Err(io(source)),
            Err(Fault::Damage { file, damage }) => {
                let aside = put_aside(folder).map_err(io)?;
                Ok(Opened::Lost {
                    reason: format!("{file}: {damage}; the folder is now {}", aside.display()),
                })
            }
        }
    }

    /// Makes the state of an elector that has none. When this returns, it is on disk.
    ///
    /// # Errors
    /// [`StoreError`] if the folder cannot be written.
    pub(crate) fn found(folder: &Path, identity: Identity) -> Result<Self, StoreError> {
        let make = || {
            fs::create_dir_all(folder)?;
            replace_now(folder, Item::Vote, &seal(&None::<Vote>))?;
            replace_now(folder, Item::Log, &log::file_of(None, []))?;
            replace_now(folder, Item::Snapshot, &seal(&None::<Stored>))?;
            replace_now(folder, Item::Identity, &seal(&identity))?;
            let loaded = Loaded { identity: identity.clone(), held: Held::default(), snapshot: None };
            loaded.start(folder)
        };
        make().map_err(|source| StoreError::Io { path: folder.to_owned(), source })
    }
}

/// What was read from a folder.
struct Loaded {
    identity: Identity,
    held: Held,
    snapshot: Option<Stored>,
}

impl Loaded {
    fn start(self, folder: &Path) -> io::Result<Store> {
        let disk = Disk::start(folder.to_owned())?;
        let (news, applied) = mpsc::unbounded_channel();
        Ok(Store {
            log: LogStore::new(disk.clone(), self.held),
            machine: StateMachine::new(disk, self.snapshot, news),
            identity: self.identity,
            applied,
        })
    }
}

enum Fault {
    Io(io::Error),
    Damage { file: &'static str, damage: Damage },
}

fn load(folder: &Path, elector: u16) -> Result<Option<Loaded>, Fault> {
    let identity: Identity = match fs::read(folder.join(Item::Identity.name())) {
        Ok(bytes) => unseal(&bytes).map_err(in_file(Item::Identity))?,
        // Whatever else is there was left by one that did not come to its first vote.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Fault::Io(error)),
    };
    if identity.id.elector != elector {
        return Err(in_file(Item::Identity)(Damage::Unreadable));
    }
    let vote: Option<Vote> = unseal(&bytes_of(folder, Item::Vote)?).map_err(in_file(Item::Vote))?;
    let snapshot: Option<Stored> =
        unseal(&bytes_of(folder, Item::Snapshot)?).map_err(in_file(Item::Snapshot))?;
    let bytes = bytes_of(folder, Item::Log)?;
    let read = log::read(&bytes).map_err(in_file(Item::Log))?;
    let covered = snapshot.as_ref().and_then(|stored| stored.meta.last_log_id);
    if read.purged > covered {
        let index = read.purged.map_or(0, |id| id.index);
        return Err(in_file(Item::Log)(Damage::Gap { index }));
    }
    if read.torn_bytes > 0 {
        tracing::warn!(
            bytes = read.torn_bytes,
            "the electors' log ends in an append that never returned; it is dropped"
        );
        let whole = &bytes[..bytes.len() - read.torn_bytes];
        replace_now(folder, Item::Log, whole).map_err(Fault::Io)?;
    }
    Ok(Some(Loaded {
        held: Held { vote: vote_at_start(vote, identity.id), purged: read.purged, entries: read.entries },
        identity,
        snapshot,
    }))
}

fn bytes_of(folder: &Path, item: Item) -> Result<Vec<u8>, Fault> {
    match fs::read(folder.join(item.name())) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(in_file(item)(Damage::Missing)),
        Err(error) => Err(Fault::Io(error)),
    }
}

fn in_file(item: Item) -> impl Fn(Damage) -> Fault {
    move |damage| Fault::Damage { file: item.name(), damage }
}

/// Renames a folder so that it is found by people and not by electors; an older one makes room.
fn put_aside(folder: &Path) -> io::Result<PathBuf> {
    let aside = folder.with_extension("damaged");
    match fs::remove_dir_all(&aside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::rename(folder, &aside)?;
    Ok(aside)
}
