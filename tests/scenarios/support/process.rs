//! One process of a scenario: what it printed, how it ended, and that it is gone afterwards, also after a panic.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::waiting::wait_for;

/// A running process in a group of its own. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    output: TempDir,
}

/// A process that ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// What ran.
    pub(crate) name: String,
    /// Its exit code; minus the signal if one ended it.
    pub(crate) code: i32,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it said beside that.
    pub(crate) stderr: String,
}

impl Process {
    /// Starts `command`; its output goes to files, so that it never waits for a reader.
    pub(crate) fn start(name: &str, command: &mut Command) -> Self {
        let output = tempfile::tempdir().expect("a folder for the output");
        let file = |name: &str| File::create(output.path().join(name)).expect("a file for the output");
        command
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .env("NO_COLOR", "1")
            .env("RUST_BACKTRACE", "1")
            .process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { name: name.to_owned(), child, output }
    }

    /// Its number. After `ip netns exec`, which becomes what it starts, the number of that.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to this process alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal)
            .unwrap_or_else(|error| panic!("{} cannot be signalled: {error}", self.name));
    }

    /// Its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        read(&self.output.path().join("stderr"))
    }

    /// Waits until its standard error holds `text`.
    pub(crate) fn await_line(&self, text: &str, limit: Duration) -> String {
        let what = format!("{:?} from {}", text, self.name);
        wait_for(&what, limit, || {
            let log = self.stderr();
            match log.lines().find(|line| line.contains(text)) {
                Some(line) => Ok(line.to_owned()),
                None => Err(log),
            }
        })
    }

    /// Whether it has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child's status can be asked").is_none()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// With its output, if it does not end within `limit`.
    pub(crate) fn finish(mut self, limit: Duration) -> Finished {
        let what = format!("the end of {}", self.name);
        let status = wait_for(&what, limit, || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            Ok(None) => Err(self.stderr()),
            Err(error) => panic!("{} cannot be waited for: {error}", self.name),
        });
        Finished {
            name: self.name.clone(),
            code: code_of(status),
            stdout: read(&self.output.path().join("stdout")),
            stderr: self.stderr(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A group that is gone needs no signal.
        let _: Result<_, _> = kill_process_group(self.pid(), Signal::KILL);
        let _: Result<_, _> = self.child.wait();
        if std::thread::panicking() {
            eprintln!("---- last words of {} ----\n{}", self.name, tail(&self.stderr()));
        }
    }
}

impl Finished {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code of {self}");
        self
    }

    /// Asserts that its standard error holds `text`.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "{text:?} is missing from the words of {self}");
        self
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} (exit code {})\n---- stdout ----\n{}\n---- stderr ----\n{}",
            self.name, self.code, self.stdout, self.stderr
        )
    }
}

/// Runs `command` to its end.
///
/// # Panics
/// If it does not end within `limit`.
pub(crate) fn run(name: &str, command: &mut Command, limit: Duration) -> Finished {
    Process::start(name, command).finish(limit)
}

/// The workers of an agent: its children that are the worker's file, or the agent's own with `worker` as command.
pub(crate) fn workers_of(agent: Pid) -> Vec<Pid> {
    let id = agent.as_raw_nonzero();
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
        let children = read(&task.path().join("children"));
        for child in children.split_whitespace() {
            let line = read(Path::new(&format!("/proc/{child}/cmdline")));
            let mut words = line.split('\0');
            let program = words.next().unwrap_or_default();
            if program.ends_with("/railmesh-worker") || words.next() == Some("worker") {
                found.extend(child.parse().ok().and_then(Pid::from_raw));
            }
        }
    }
    found
}

/// Resident memory of a process, bytes.
pub(crate) fn resident(pid: Pid) -> u64 {
    let status = read(Path::new(&format!("/proc/{}/status", pid.as_raw_nonzero())));
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|n| n.parse::<u64>().ok());
    kib.expect("the kernel tells the resident memory of a living process") * 1024
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().expect("a process ends by a code or a signal"))
}

fn read(path: &Path) -> String {
    fs::read(path).map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Lines of a process that a failing scenario shows.
const TAIL_LINES: usize = 25;
