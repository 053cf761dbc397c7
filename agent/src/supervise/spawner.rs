//! The one thread that starts every child process of the agent, and the threads that reap them.
//!
//! A child asks the kernel to be killed when its parent dies (PR_SET_PDEATHSIG), and to the kernel the parent is the
//! thread that started it (prctl(2)). So the starting thread must live as long as the agent: it is this one, never a
//! thread of a pool.

use std::fmt;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::{mpsc, oneshot};

/// Starts child processes from one permanent thread.
///
/// Clones share the thread. It is owned by all of them together and ends when the last one is dropped; children that
/// asked for it are killed by the kernel then, so whoever needs a child keeps a clone.
#[derive(Clone, Debug)]
pub struct Spawner {
    requests: mpsc::Sender<Request>,
}

/// A started child: its pipes where the command asked for them, its group, and how it will end.
///
/// The child is reaped in any case; dropping this does not end it.
#[derive(Debug)]
pub struct Spawned {
    /// The child, and the number of its process group.
    pub pid: u32,
    /// Its standard input.
    pub stdin: Option<ChildStdin>,
    /// Its standard output.
    pub stdout: Option<ChildStdout>,
    /// Its standard error.
    pub stderr: Option<ChildStderr>,
    /// Its process group.
    pub group: Group,
    /// How it ended, sent after it was reaped and the rest of its group killed.
    pub exit: oneshot::Receiver<Exit>,
}

/// The process group of a child. Clones mean the same group.
#[derive(Clone, Debug)]
pub struct Group(Arc<Mutex<GroupState>>);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Somebody else in this process took its status.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    /// The leader is alive or a zombie, so its number means this group and no other.
    Present(Pid),
    /// The leader was reaped: its number may belong to anybody.
    Reaped,
}

struct Request {
    command: Command,
    reply: oneshot::Sender<io::Result<Spawned>>,
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel's refusal of a thread.
    pub fn start() -> io::Result<Self> {
        let (requests, mut inbox) = mpsc::channel::<Request>(REQUESTS_DEPTH);
        thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            while let Some(Request { command, reply }) = inbox.blocking_recv() {
                // A requester that is gone leaves nobody to end the child.
                if let Err(Ok(orphan)) = reply.send(spawn(command)) {
                    orphan.group.kill();
                }
            }
        })?;
        Ok(Self { requests })
    }

    /// Starts a child in a process group of its own. Waits while 64 other requests wait.
    ///
    /// Cancel safe: a child whose requester is gone is killed.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub async fn spawn(&self, command: Command) -> io::Result<Spawned> {
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts processes is gone");
        self.requests.send(Request { command, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Group {
    /// Kills every process of the group. Does nothing once the child was reaped.
    pub fn kill(&self) {
        kill_present(*self.state());
    }

    fn state(&self) -> MutexGuard<'_, GroupState> {
        // Every state is valid, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Unknown => f.write_str("ended, its status was taken by another waiter"),
        }
    }
}

fn spawn(mut command: Command) -> io::Result<Spawned> {
    let mut child = command.process_group(0).spawn()?;
    let pid = child.id();
    let group = Group(Arc::new(Mutex::new(GroupState::Present(Pid::from_child(&child)))));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (report, exit) = oneshot::channel();
    let child = Arc::new(Mutex::new(child));
    let reaper = {
        let (group, child) = (group.clone(), Arc::clone(&child));
        move || {
            // Nobody listens if the requester is gone; the child is reaped all the same.
            let _ = report.send(reap(&group, &mut child.lock().unwrap_or_else(PoisonError::into_inner)));
        }
    };
    if let Err(e) = thread::Builder::new().name(format!("reap {pid}")).stack_size(REAPER_STACK).spawn(reaper)
    {
        // The child could not be watched, so it must not live.
        group.kill();
        reap(&group, &mut child.lock().unwrap_or_else(PoisonError::into_inner));
        return Err(e);
    }
    Ok(Spawned { pid, stdin, stdout, stderr, group, exit })
}

/// Waits until the child is a zombie, kills what is left of its group while the number is still taken, then reaps it.
fn reap(group: &Group, child: &mut Child) -> Exit {
    let zombie = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    // An error means that there is no such child any more; `wait` below meets the same.
    let _ = retry_on_intr(|| waitid(WaitId::Pid(Pid::from_child(child)), zombie));
    let mut state = group.state();
    kill_present(*state);
    let exit = child.wait().map_or(Exit::Unknown, Exit::from);
    *state = GroupState::Reaped;
    exit
}

fn kill_present(state: GroupState) {
    match state {
        // The only refusal possible for one's own child is that nothing is left to kill.
        GroupState::Present(leader) => drop(kill_process_group(leader, Signal::KILL)),
        GroupState::Reaped => {}
    }
}

/// Requests that wait for the thread; starting a process takes about a millisecond.
const REQUESTS_DEPTH: usize = 64;

/// Stack of a reaper in bytes: it makes two system calls.
const REAPER_STACK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Stdio;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    #[tokio::test]
    async fn a_child_tells_how_it_ended_and_leaves_no_zombie() {
        let spawner = Spawner::start().unwrap();
        for (script, exit) in [("exit 7", Exit::Code(7)), ("kill -TERM $$", Exit::Signal(15))] {
            let spawned = spawner.spawn(shell(script)).await.unwrap();
            assert_eq!(spawned.exit.await, Ok(exit));
            assert!(!Path::new(&format!("/proc/{}", spawned.pid)).exists(), "{script}");
        }
        assert_eq!(
            spawner.spawn(Command::new("/no/such/program")).await.map(|s| s.pid).map_err(|e| e.kind()),
            Err(io::ErrorKind::NotFound)
        );
    }

    #[tokio::test]
    async fn what_is_left_of_a_group_dies_with_its_leader() {
        let spawner = Spawner::start().unwrap();
        let mut spawned = spawner.spawn(shell("sleep 1000 & exit 0")).await.unwrap();
        assert_eq!((&mut spawned.exit).await, Ok(Exit::Code(0)));
        // The sleeper holds the other end of this pipe: its end is the sleeper's.
        let mut stdout = tokio::process::ChildStdout::from_std(spawned.stdout.unwrap()).unwrap();
        let mut rest = Vec::new();
        let ended = stdout.read_to_end(&mut rest);
        assert!(tokio::time::timeout(Duration::from_secs(5), ended).await.is_ok(), "the sleeper lives");
    }

    #[tokio::test]
    async fn killing_a_group_that_is_gone_does_nothing() {
        let spawner = Spawner::start().unwrap();
        let spawned = spawner.spawn(shell("sleep 1000")).await.unwrap();
        spawned.group.kill();
        assert_eq!(spawned.exit.await, Ok(Exit::Signal(9)));
        assert_eq!(*spawned.group.state(), GroupState::Reaped);
        spawned.group.kill();
    }
}
