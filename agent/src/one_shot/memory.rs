//! How the latest one-shot run ended, in the state folder: a process that is started again after the end leaves it
//! alone and exits as the first one did.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bench_core::ids::{NodeId, RunId};
use bench_core::message::Outcome;
use thiserror::Error;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub outcome: Outcome,
    /// Who printed the report, as far as was known.
    pub printed_by: Option<NodeId>,
}

/// Why it cannot be kept or read.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// The file system refused.
    #[error("the end of the run cannot be kept in {path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{path} does not say how a run ended: remove it", path = .path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
}

impl Memory {
    /// What the state folder says of `run`; `None` if it says nothing of it.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn read(state: &Path, run: RunId) -> Result<Option<Self>, MemoryError> {
        let path = state.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(MemoryError::Io { path, source }),
        };
        match parse(&text) {
            Some(memory) => Ok(Some(memory).filter(|memory| memory.run == run)),
            None => Err(MemoryError::Content { path }),
        }
    }

    /// Keeps it in place of that of an earlier run.
    ///
    /// # Errors
    /// [`MemoryError::Io`].
    pub fn write(&self, state: &Path) -> Result<(), MemoryError> {
        let path = state.join(FILE);
        let fresh = path.with_extension("new");
        let printed_by = self.printed_by.as_ref().map_or("-", NodeId::as_str);
        let words = self.outcome.words.replace('\n', " ");
        let text = format!("{}\n{}\n{printed_by}\n{words}\n", self.run, self.outcome.exit_code);
        let io = |source| MemoryError::Io { path: path.clone(), source };
        fs::create_dir_all(state).map_err(io)?;
        fs::write(&fresh, text).map_err(io)?;
        fs::rename(&fresh, &path).map_err(io)
    }
}

fn parse(text: &str) -> Option<Memory> {
    let mut lines = text.lines();
    let run = lines.next()?.parse().ok()?;
    let exit_code = lines.next()?.parse().ok()?;
    let printed_by = lines.next()?;
    let printed_by = if printed_by == "-" { None } else { Some(NodeId::new(printed_by).ok()?) };
    let words = lines.next()?.to_owned();
    Some(Memory { run, outcome: Outcome { exit_code, words }, printed_by })
}

/// Run, exit code, printing node and words, a line each.
const FILE: &str = "one-shot.last";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_reads_back_for_its_run_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let run = RunId([3; 16]);
        assert_eq!(Memory::read(&state, run).expect("nothing there"), None);
        for printed_by in [None, Some(NodeId::new("n1").expect("a name"))] {
            let outcome = Outcome { exit_code: 3, words: "incomplete: n3 never\njoined".to_owned() };
            let memory = Memory { run, outcome, printed_by };
            memory.write(&state).expect("written");
            let read = Memory::read(&state, run).expect("readable").expect("of this run");
            assert_eq!((read.outcome.exit_code, &read.printed_by), (3, &memory.printed_by));
            assert_eq!(read.outcome.words, "incomplete: n3 never joined");
            assert_eq!(Memory::read(&state, RunId([4; 16])).expect("readable"), None);
        }
        fs::write(state.join(FILE), "x").expect("written");
        assert!(matches!(Memory::read(&state, run), Err(MemoryError::Content { .. })));
    }
}
