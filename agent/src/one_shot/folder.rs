//! A state folder of its own for each one-shot run: jobs have other nodes each time, and what the electors of one have
//! decided is nothing to the next.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bench_core::ids::RunId;

/// The folder of `run` below `state`: made if there is none, and the oldest of other runs removed beyond
/// [`KEPT_RUNS`].
///
/// # Errors
/// The file system's, for the folder itself. A folder of another run that cannot be removed stays.
pub fn folder_of(state: &Path, run: RunId) -> io::Result<PathBuf> {
    let runs = state.join("one-shot");
    let own = runs.join(run.to_string());
    fs::create_dir_all(&own)?;
    let others = fs::read_dir(&runs)?.flatten().map(|entry| entry.path()).filter(|path| *path != own);
    let mut others: Vec<(SystemTime, PathBuf)> = others
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_run))
        .map(|path| (changed(&path), path))
        .collect();
    others.sort_unstable();
    let surplus = (others.len() + 1).saturating_sub(KEPT_RUNS);
    for (_, path) in others.into_iter().take(surplus) {
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::warn!(path = %path.display(), %error, "the state of an old run cannot be removed");
        }
    }
    Ok(own)
}

fn is_run(name: &str) -> bool {
    name.parse::<RunId>().is_ok()
}

fn changed(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Runs whose state is kept: enough for a job array that is requeued, and a few MiB each.
pub const KEPT_RUNS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_runs_make_room_and_nothing_else_does() {
        let state = tempfile::tempdir().expect("a folder");
        let id = |n: usize| RunId([n as u8; 16]);
        for n in 0..KEPT_RUNS + 3 {
            let own = folder_of(state.path(), id(n)).expect("made");
            fs::write(own.join("file"), "x").expect("written");
            let age = std::time::Duration::from_secs(1_000 - n as u64);
            let folder = fs::File::open(&own).expect("a folder opens");
            folder.set_modified(SystemTime::now() - age).expect("the owner may");
        }
        let stranger = state.path().join("one-shot/notes");
        fs::create_dir(&stranger).expect("made");
        folder_of(state.path(), id(5)).expect("there already");
        let left = |n: usize| state.path().join("one-shot").join(id(n).to_string()).join("file").exists();
        assert!(!left(0) && !left(2) && left(3) && left(5) && left(KEPT_RUNS + 2));
        assert!(stranger.exists());
    }
}
