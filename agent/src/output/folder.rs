//! The run folder: result.json, cells.csv, report.md and the plan as run, from the first round on.
//!
//! Files are written beside their place and renamed over it, so that a killed run leaves whole files of what it had.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bench_core::ids::RunId;
use bench_core::plan::Plan;
use bench_core::report::{RunReport, csv, markdown};
use thiserror::Error;

/// The folder that receives a run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    due: Instant,
}

/// Why a run folder cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// It holds another run already.
    #[error("{path} holds results already: name another folder with --out, or remove it", path = .path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot write to the run folder {path}: {source}", path = .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RunFolder {
    /// Makes the folder before anything is measured, so that a wrong place is known at once.
    ///
    /// # Errors
    /// [`FolderError`] if it holds results of another run or cannot be written.
    pub fn create(path: PathBuf) -> Result<Self, FolderError> {
        if path.join(RESULT).exists() {
            return Err(FolderError::Taken { path });
        }
        fs::create_dir_all(&path).map_err(|source| FolderError::Io { path: path.clone(), source })?;
        let folder = Self { path, due: Instant::now() };
        folder.write("logs/.keep", b"")?;
        fs::remove_file(folder.path.join("logs/.keep"))
            .map_err(|source| FolderError::Io { path: folder.path.clone(), source })?;
        Ok(folder)
    }

    /// The same for a run that may have been written there before, by this process or another: its results are
    /// replaced.
    ///
    /// # Errors
    /// [`FolderError`] if it holds results of another run or cannot be written.
    pub fn of_run(path: PathBuf, run: RunId) -> Result<Self, FolderError> {
        let own = fs::read_to_string(path.join(RESULT))
            .ok()
            .and_then(|text| RunReport::from_json(&text).ok())
            .is_some_and(|report| report.run_id == run.to_string());
        if own {
            return Ok(Self { path, due: Instant::now() });
        }
        Self::create(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where logs of the run go.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Writes the plan as run.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn write_plan(&self, plan: &Plan) -> Result<(), FolderError> {
        self.write("plan.toml", plan.to_toml().as_bytes())
    }

    /// Whether a report should be written now: about once a second, less often where writing takes long.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Writes what is known so far, or the whole.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn write_report(&mut self, report: &RunReport) -> Result<(), FolderError> {
        let began = Instant::now();
        self.write(RESULT, report.to_json().as_bytes())?;
        self.write("cells.csv", csv::render(report).as_bytes())?;
        self.write("report.md", markdown::render(report).as_bytes())?;
        self.due = Instant::now() + LEAST_PAUSE.max(began.elapsed() * PAUSE_FACTOR);
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let fresh = path.with_extension("new");
        let io = |source| FolderError::Io { path: path.clone(), source };
        fs::create_dir_all(path.parent().unwrap_or(&self.path)).map_err(io)?;
        fs::write(&fresh, bytes).map_err(io)?;
        fs::rename(&fresh, &path).map_err(io)
    }
}

/// The contract's file.
const RESULT: &str = "result.json";

/// Shortest time between two partial reports.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// A partial report costs at most a twentieth of the client's time.
const PAUSE_FACTOR: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_results_is_not_taken_over() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join(RESULT), "{}").expect("written");
        assert!(matches!(RunFolder::create(dir.path().to_owned()), Err(FolderError::Taken { .. })));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_known_before_the_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(matches!(RunFolder::create(file.join("run")), Err(FolderError::Io { .. })));
    }
}
