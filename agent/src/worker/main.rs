//! The worker as a process: tied to its parent, placed on its processors, with a clean pipe.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tracing::level_filters::LevelFilter;

use super::args::{Args, Mode};
use super::serve;
use transport::data::backends;

/// Runs the worker that the arguments ask for; `args` are those after the program's name and the word `worker`.
///
/// Takes over the whole process: its affinity, its standard output, its log. Call it first thing in `main`.
pub fn main_from_args(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // The very first act: from here on the parent's death is this process's.
    if let Err(e) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return fail(EXIT_SETUP, format_args!("cannot be tied to the parent: {e}"));
    }
    let args = match Args::try_parse_from(std::iter::once(OsString::from("railmesh-worker")).chain(args)) {
        Ok(args) => args,
        Err(e) => {
            // Nothing can be done about a standard error that is closed.
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    // A parent that died before the call above has been replaced by another.
    if let Some(parent) = args.parent
        && getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent)
    {
        return fail(EXIT_ORPHAN, format_args!("process {parent} is not the parent"));
    }
    if let Some(cpus) = &args.cpus
        && let Err(e) = cpus.pin_this_thread()
    {
        return fail(EXIT_SETUP, format_args!("cannot use processors {cpus}: {e}"));
    }
    let output = match take_stdout() {
        Ok(output) => output,
        Err(e) => {
            return fail(EXIT_SETUP, format_args!("cannot keep standard output for messages: {e}"));
        }
    };
    log_to_stderr(args.log);
    let registry = Arc::new(backends());
    match args.mode {
        Mode::Serve => serve::run(io::stdin().lock(), output, registry),
        Mode::Probe => serve::probe(output, registry.as_ref()),
    }
}

/// Standard output under another number. What was standard output goes to standard error from here on, so that
/// nothing, a vendor library included, can print between two frames.
fn take_stdout() -> io::Result<File> {
    let frames = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(frames))
}

/// Lines that the agent passes on: it adds the time, and reads the level that comes first.
fn log_to_stderr(level: LevelFilter) {
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    log.without_time().with_ansi(false).init();
}

fn fail(code: u8, why: impl Display) -> ExitCode {
    eprintln!("worker: {why}");
    ExitCode::from(code)
}

/// The arguments make no sense.
pub const EXIT_USAGE: u8 = 2;

/// The process in `--parent` is not the parent: it died before this process could be tied to it.
pub const EXIT_ORPHAN: u8 = 3;

/// The kernel refused something that the worker needs before it can serve.
pub const EXIT_SETUP: u8 = 4;
