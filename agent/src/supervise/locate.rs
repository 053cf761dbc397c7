//! Finds the worker program and says why it is that one.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// A program that is a worker, and how to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProgram {
    /// The file to execute.
    pub path: PathBuf,
    /// Arguments before the worker's own: `worker` where the program is the agent itself.
    pub leading: Vec<OsString>,
    /// Which place of the search order it came from.
    pub source: Source,
    /// Places earlier in the order that had something, and why it was not taken.
    pub passed_over: Vec<PassedOver>,
}

/// The places where a worker program may be, in search order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Named by the user; nothing else is tried.
    Flag,
    /// `railmesh-worker` beside the agent's executable.
    Beside,
    /// `bin/worker-<sha256>` in the state folder, of that hash.
    State,
    /// The agent's executable itself.
    Own,
}

/// A file that could have been the worker program but was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The file.
    pub path: PathBuf,
    /// Why it was not taken.
    pub reason: String,
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// `--worker PATH`.
    pub flag: Option<PathBuf>,
    /// The agent's executable.
    pub agent: PathBuf,
    /// The agent's state folder.
    pub state: Option<PathBuf>,
    /// Whether the agent's executable was built with the `worker` subcommand.
    pub own: bool,
}

impl Places {
    /// The places of this process.
    ///
    /// # Errors
    /// The kernel's refusal to name this process's executable.
    pub fn of_this_process(flag: Option<PathBuf>, state: Option<PathBuf>) -> io::Result<Self> {
        Ok(Self { flag, agent: std::env::current_exe()?, state, own: cfg!(feature = "worker") })
    }
}

impl WorkerProgram {
    /// One sentence for preflight and logs: which program and why.
    pub fn reason(&self) -> String {
        let path = self.path.display();
        let mut sentence = match self.source {
            Source::Flag => format!("{path}, because --worker names it"),
            Source::Beside => format!("{path}, because it lies beside the agent"),
            Source::State => format!("{path}, because its contents have the hash in its name"),
            Source::Own => format!("the agent's own subcommand, because no {FILE_NAME} lies beside it"),
        };
        for passed in &self.passed_over {
            sentence.push_str(&format!("; passed over {}: {}", passed.path.display(), passed.reason));
        }
        sentence
    }
}

/// Why there is no worker program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LocateError {
    /// The one that the user named cannot be used.
    #[error("--worker {path}: {reason}", path = .path.display())]
    Named {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No place has one.
    #[error(
        "no worker program: this agent was built without one, and there is no usable {FILE_NAME} in {beside}{passed}; \
         copy it there or name it with --worker PATH",
        beside = .beside.display(),
        passed = passed_text(.passed_over)
    )]
    NotFound {
        /// The folder of the agent's executable.
        beside: PathBuf,
        /// Files that were there but could not be used.
        passed_over: Vec<PassedOver>,
    },
}

/// Finds the worker program: `--worker`, beside the agent, the state folder, last the agent itself.
///
/// Only files of the state folder are hashed. That a program is of the same build is checked when it says so itself.
///
/// # Errors
/// [`LocateError`] if the named one cannot be used, or there is none.
pub fn locate(places: &Places) -> Result<WorkerProgram, LocateError> {
    if let Some(path) = &places.flag {
        return match executable(path) {
            Ok(()) => Ok(found(path.clone(), Source::Flag, Vec::new())),
            Err(reason) => Err(LocateError::Named { path: path.clone(), reason }),
        };
    }
    let mut passed_over = Vec::new();
    let beside = places.agent.parent().unwrap_or_else(|| Path::new("/")).to_path_buf();
    let path = beside.join(FILE_NAME);
    if path.symlink_metadata().is_ok() {
        match executable(&path) {
            Ok(()) => return Ok(found(path, Source::Beside, passed_over)),
            Err(reason) => passed_over.push(PassedOver { path, reason }),
        }
    }
    if let Some(state) = &places.state
        && let Some(path) = in_state(&state.join("bin"), &mut passed_over)
    {
        return Ok(found(path, Source::State, passed_over));
    }
    if places.own {
        let mut program = found(PathBuf::from(OWN_EXECUTABLE), Source::Own, passed_over);
        program.leading.push(OsString::from("worker"));
        return Ok(program);
    }
    Err(LocateError::NotFound { beside, passed_over })
}

fn found(path: PathBuf, source: Source, passed_over: Vec<PassedOver>) -> WorkerProgram {
    WorkerProgram { path, leading: Vec::new(), source, passed_over }
}

fn executable(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not executable: chmod +x".to_owned());
    }
    Ok(())
}

/// The newest file of `folder` that is private and has the hash in its name; ties go to the greater name.
fn in_state(folder: &Path, passed_over: &mut Vec<PassedOver>) -> Option<PathBuf> {
    let mut candidates: Vec<(SystemTime, PathBuf, String)> = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(hash) = name.to_str().and_then(|name| name.strip_prefix(STATE_PREFIX)) else {
            continue;
        };
        match entry.metadata().map_err(|e| e.to_string()).and_then(|metadata| private(&metadata)) {
            Ok(modified) => candidates.push((modified, path, hash.to_owned())),
            Err(reason) => passed_over.push(PassedOver { path, reason }),
        }
    }
    candidates.sort();
    while let Some((_, path, hash)) = candidates.pop() {
        match sha256(&path) {
            Ok(actual) if actual == hash => return Some(path),
            Ok(actual) => {
                passed_over.push(PassedOver { path, reason: format!("its contents have the hash {actual}") })
            }
            Err(e) => passed_over.push(PassedOver { path, reason: e.to_string() }),
        }
    }
    None
}

/// When a file was modified, if only its owner, who is this user, can have done it.
fn private(metadata: &Metadata) -> Result<SystemTime, String> {
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {}", metadata.uid()));
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode != STATE_MODE {
        return Err(format!("its mode is {mode:o}, not {STATE_MODE:o}"));
    }
    metadata.modified().map_err(|e| e.to_string())
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let (mut file, mut chunk) = (File::open(path)?, vec![0; HASH_CHUNK]);
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            bytes => hash.update(&chunk[..bytes]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn passed_text(passed_over: &[PassedOver]) -> String {
    let each = passed_over.iter().map(|passed| format!(" ({}: {})", passed.path.display(), passed.reason));
    each.collect()
}

/// The worker's file name beside the agent.
const FILE_NAME: &str = "railmesh-worker";

/// Worker files of the state folder are named by this and the SHA-256 of their contents in hexadecimal.
const STATE_PREFIX: &str = "worker-";

/// Mode of a worker file in the state folder: nobody else may have written it.
const STATE_MODE: u32 = 0o700;

/// Bytes hashed at once.
const HASH_CHUNK: usize = 64 << 10;

/// The agent's executable as a child sees it, even after the file was replaced or removed (proc(5)).
const OWN_EXECUTABLE: &str = "/proc/self/exe";

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self, name: &str, contents: &str, mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, contents).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        fn places(&self) -> Places {
            Places {
                flag: None,
                agent: self.0.path().join("opt/railmesh"),
                state: Some(self.0.path().join("state")),
                own: true,
            }
        }
    }

    /// SHA-256 of `abc` (FIPS 180-2, appendix B.1).
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn the_search_order_is_flag_beside_state_own() {
        let tree = Tree::new();
        let mut places = tree.places();
        let own = locate(&places).unwrap();
        assert_eq!((own.source, own.leading), (Source::Own, vec![OsString::from("worker")]));
        let state = tree.file(&format!("state/bin/worker-{ABC}"), "abc", 0o700);
        assert_eq!(locate(&places).map(|p| (p.source, p.path)), Ok((Source::State, state)));
        let beside = tree.file("opt/railmesh-worker", "x", 0o755);
        assert_eq!(locate(&places).map(|p| (p.source, p.path)), Ok((Source::Beside, beside)));
        let flag = tree.file("elsewhere", "x", 0o755);
        places.flag = Some(flag.clone());
        assert_eq!(locate(&places).map(|p| (p.source, p.path)), Ok((Source::Flag, flag)));
    }

    #[test]
    fn a_named_program_that_cannot_be_used_is_an_error_not_a_reason_to_look_on() {
        let tree = Tree::new();
        tree.file("opt/railmesh-worker", "x", 0o755);
        for path in [tree.file("plain", "x", 0o644), tree.0.path().join("absent")] {
            let places = Places { flag: Some(path), ..tree.places() };
            assert!(matches!(locate(&places), Err(LocateError::Named { .. })));
        }
    }

    #[test]
    fn a_state_file_that_another_may_have_written_is_passed_over() {
        let tree = Tree::new();
        tree.file(&format!("state/bin/worker-{ABC}"), "abd", 0o700);
        tree.file("state/bin/worker-00", "abc", 0o777);
        let program = locate(&tree.places()).unwrap();
        assert_eq!(program.source, Source::Own);
        let reasons = program.reason();
        assert!(reasons.contains("its contents have the hash"), "{reasons}");
        assert!(reasons.contains("its mode is 777"), "{reasons}");
    }

    #[test]
    fn without_any_program_the_error_says_where_to_put_one() {
        let tree = Tree::new();
        tree.file("opt/railmesh-worker", "x", 0o644);
        let error = locate(&Places { own: false, state: None, ..tree.places() }).unwrap_err().to_string();
        assert!(error.contains("not executable") && error.contains("--worker PATH"), "{error}");
    }
}
