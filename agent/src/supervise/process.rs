//! Workers that are processes: starts one, carries its messages over the pipes, and tells how it ended.
//!
//! One task owns a process and starts three more for its pipes; they end with the pipes, the first ends when the
//! process was reaped. Losing them (a runtime that shuts down) closes the worker's standard input, which ends it.

use std::io;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bench_core::ids::RailId;
use bench_core::message::ToWorker;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;
use tracing::level_filters::LevelFilter;

use super::link::{EVENTS_DEPTH, Kill, Link, LinkEvent, TO_WORKER_DEPTH, WorkerFactory, WorkerSpec};
use super::locate::WorkerProgram;
use super::spawner::{Exit, Group, Spawned, Spawner};
use super::stderr::{self, LastWords};
use crate::pipe::{self, FrameError};

/// Makes workers that are processes.
#[derive(Clone, Debug)]
pub struct ProcessFactory {
    /// Starts them.
    pub spawner: Spawner,
    /// What they run.
    pub program: WorkerProgram,
    /// How much they log.
    pub log: LevelFilter,
}

impl WorkerFactory for ProcessFactory {
    fn start(&self, spec: &WorkerSpec) -> Link {
        let (to, inbox) = mpsc::channel(TO_WORKER_DEPTH);
        let (events, from) = mpsc::channel(EVENTS_DEPTH);
        let switch = Switch::default();
        let process =
            Process { rail: spec.rail, events, switch: switch.clone(), spawner: self.spawner.clone() };
        tokio::spawn(process.live(self.command(spec), inbox));
        Link { to, events: from, kill: Kill::new(move || switch.kill()) }
    }
}

impl ProcessFactory {
    fn command(&self, spec: &WorkerSpec) -> Command {
        let mut command = Command::new(&self.program.path);
        command.args(&self.program.leading);
        command.arg("--parent").arg(std::process::id().to_string());
        command.arg("--log").arg(self.log.to_string());
        if let Some(cpus) = &spec.cpus {
            command.arg("--cpus").arg(cpus.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Kills a process that may not have been started yet. Clones mean the same process.
#[derive(Clone, Debug, Default)]
struct Switch(Arc<Mutex<SwitchState>>);

#[derive(Debug, Default)]
enum SwitchState {
    /// Not started.
    #[default]
    Waiting,
    /// Started.
    Running(Group),
    /// To be killed as soon as it is started, or killed.
    Killed,
}

impl Switch {
    fn kill(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, SwitchState::Killed) {
            SwitchState::Running(group) => group.kill(),
            SwitchState::Waiting | SwitchState::Killed => {}
        }
    }

    fn started(&self, group: Group) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            SwitchState::Waiting | SwitchState::Running(_) => *state = SwitchState::Running(group),
            SwitchState::Killed => group.kill(),
        }
    }
}

/// The task that reads a worker's messages.
type Reading = JoinHandle<Result<(), FrameError>>;

struct Process {
    rail: RailId,
    events: mpsc::Sender<LinkEvent>,
    switch: Switch,
    /// Keeps the thread that is the kernel's idea of this process's parent.
    spawner: Spawner,
}

impl Process {
    async fn live(self, command: Command, inbox: mpsc::Receiver<ToWorker>) {
        let program = command.get_program().to_owned();
        let how = match self.spawner.spawn(command).await {
            Ok(spawned) => self.attend(spawned, inbox).await,
            Err(e) => format!("could not be started from {}: {e}", program.display()),
        };
        // Nobody listens if the handle is gone.
        let _ = self.events.send(LinkEvent::Ended { how }).await;
    }

    /// Carries messages until the process is reaped, and says how it ended.
    async fn attend(&self, mut spawned: Spawned, inbox: mpsc::Receiver<ToWorker>) -> String {
        self.switch.started(spawned.group.clone());
        let _ = self.events.send(LinkEvent::Started { pid: Some(spawned.pid) }).await;
        let words = LastWords::default();
        let (mut reading, complaining) = match self.carry(&mut spawned, inbox, words.clone()) {
            Ok(tasks) => tasks,
            Err(e) => {
                spawned.group.kill();
                exited(&mut spawned).await;
                return format!("had pipes that could not be used: {e}");
            }
        };
        let how = tokio::select! {
            read = &mut reading => after_reading(read, &mut spawned).await,
            exit = &mut spawned.exit => {
                // What it wrote before it died still counts.
                if timeout(DRAIN, &mut reading).await.is_err() {
                    reading.abort();
                }
                exit.unwrap_or(Exit::Unknown).to_string()
            }
        };
        // A process that shares the pipe may outlive the worker.
        let abort = complaining.abort_handle();
        if timeout(DRAIN, complaining).await.is_err() {
            abort.abort();
        }
        match words.get() {
            Some(words) => format!("{how}; its last words: {words}"),
            None => how,
        }
    }

    /// Starts the tasks of the three pipes; returns those of output and error.
    fn carry(
        &self,
        spawned: &mut Spawned,
        inbox: mpsc::Receiver<ToWorker>,
        words: LastWords,
    ) -> io::Result<(Reading, JoinHandle<()>)> {
        let absent = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = ChildStdin::from_std(spawned.stdin.take().ok_or_else(absent)?)?;
        let stdout = ChildStdout::from_std(spawned.stdout.take().ok_or_else(absent)?)?;
        let stderr = ChildStderr::from_std(spawned.stderr.take().ok_or_else(absent)?)?;
        tokio::spawn(write(stdin, inbox));
        let reading = tokio::spawn(read(stdout, self.events.clone()));
        Ok((reading, tokio::spawn(stderr::forward(self.rail, stderr, words))))
    }
}

/// Ends when the link is dropped, which ends the worker, or the worker closes its input.
async fn write(mut stdin: ChildStdin, mut inbox: mpsc::Receiver<ToWorker>) {
    while let Some(message) = inbox.recv().await {
        if pipe::send(&mut stdin, &message).await.is_err() {
            return;
        }
    }
}

/// Ends when the worker closes its output, writes nonsense, or nobody wants to know.
async fn read(mut stdout: ChildStdout, events: mpsc::Sender<LinkEvent>) -> Result<(), FrameError> {
    while let Some(message) = pipe::receive(&mut stdout).await? {
        if events.send(LinkEvent::Message(Box::new(message))).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The output ended first: usually because the process is about to end.
async fn after_reading(read: Result<Result<(), FrameError>, JoinError>, spawned: &mut Spawned) -> String {
    let nonsense = match read {
        Ok(Ok(()) | Err(FrameError::Truncated | FrameError::Io(_))) => None,
        Ok(Err(e @ (FrameError::TooLong { .. } | FrameError::Garbage { .. }))) => Some(e.to_string()),
        Err(e) => Some(format!("its reader failed: {e}")),
    };
    if let Some(nonsense) = nonsense {
        spawned.group.kill();
        exited(spawned).await;
        return format!("wrote something else than messages to its pipe ({nonsense}), killed");
    }
    match timeout(EXIT_GRACE, &mut spawned.exit).await {
        Ok(exit) => exit.unwrap_or(Exit::Unknown).to_string(),
        Err(_) => {
            spawned.group.kill();
            exited(spawned).await;
            "closed its pipe without ending, killed".to_owned()
        }
    }
}

async fn exited(spawned: &mut Spawned) -> Exit {
    (&mut spawned.exit).await.unwrap_or(Exit::Unknown)
}

/// How long the output of a dead process is read on: it is in the pipe already, so this only bounds the case that
/// somebody else holds the pipe.
const DRAIN: Duration = Duration::from_millis(200);

/// How long a process may take from closing its output to its end; the kernel closes files early in the exit.
const EXIT_GRACE: Duration = Duration::from_millis(500);
