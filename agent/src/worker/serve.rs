//! The worker's loop: reads messages, passes them to the tasks, writes answers.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use bench_core::message::FromWorker;
use tracing::{debug, error};

use super::registry::Registry;
use super::tasks::{Handled, Outbox, Tasks};
use crate::build_id::build_hash;
use crate::pipe::{self, FrameError};

/// Serves one agent until it closes `input`. The calling thread is the reader: it answers pings even while cells run.
///
/// Tasks that are under way when this returns go on until the process ends, so return from `main` next.
///
/// Writing is done by whichever thread has an answer, one frame at a time; if the pipe is full it waits for the agent.
/// A pipe that breaks means that the agent is gone: whichever thread finds it ends the process with [`EXIT_PIPE`].
pub fn run(
    mut input: impl Read,
    output: impl Write + Send + 'static,
    registry: Arc<dyn Registry>,
) -> ExitCode {
    let pipe = Arc::new(PipeOutbox(Mutex::new(output)));
    pipe.send(ready(registry.as_ref()));
    let outbox: Arc<dyn Outbox> = Arc::<PipeOutbox<_>>::clone(&pipe);
    let tasks = Tasks::new(registry, outbox);
    loop {
        match pipe::read_frame(&mut input) {
            Ok(Some(message)) => match tasks.handle(message) {
                Handled::Silently => {}
                Handled::Answer(answer) => pipe.send(*answer),
                Handled::Stuck(task) => {
                    error!("task {} was aborted and does not stop, so the whole worker ends", task.0);
                    return ExitCode::from(EXIT_STUCK);
                }
            },
            Ok(None) => {
                debug!("the agent closed the pipe");
                return ExitCode::SUCCESS;
            }
            Err(e) => {
                error!("cannot read from the agent: {e}");
                return ExitCode::from(EXIT_PIPE);
            }
        }
    }
}

/// Writes one `Ready` with build and capabilities.
pub fn probe(mut output: impl Write, registry: &dyn Registry) -> ExitCode {
    match pipe::write_frame(&mut output, &ready(registry)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            error!("cannot write to the agent: {e}");
            ExitCode::from(EXIT_PIPE)
        }
    }
}

/// The first message of a worker.
pub(super) fn ready(registry: &dyn Registry) -> FromWorker {
    FromWorker::Ready { build: build_hash(), capabilities: registry.capabilities() }
}

struct PipeOutbox<W>(Mutex<W>);

impl<W: Write + Send> Outbox for PipeOutbox<W> {
    fn send(&self, message: FromWorker) {
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match pipe::write_frame(&mut *pipe, &message) {
            Ok(()) => {}
            Err(e) => {
                error!("cannot write to the agent: {}", with_source(&e));
                std::process::exit(i32::from(EXIT_PIPE));
            }
        }
    }
}

fn with_source(error: &FrameError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The pipe to the agent broke, or brought something else than messages.
pub const EXIT_PIPE: u8 = 5;

/// A task did not stop long after it was aborted.
pub const EXIT_STUCK: u8 = 6;
