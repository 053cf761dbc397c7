//! `railmesh worker`: the measuring process, where it was built into this file.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the worker.
#[cfg(feature = "worker")]
pub(crate) fn run(args: Vec<OsString>) -> ExitCode {
    crate::worker::main_from_args(args)
}

/// Says that this file has no worker in it.
#[cfg(not(feature = "worker"))]
pub(crate) fn run(_args: Vec<OsString>) -> ExitCode {
    eprintln!("error: this is the control-only agent; the worker is the file railmesh-worker beside it");
    crate::cli::Exit::Usage.into()
}
