//! The process's runtime: one thread, signals and random numbers.

use std::future::Future;
use std::io;

use bench_core::ids::{BootId, RunId};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::signal::unix::{SignalKind, signal};

/// Runs `task` on a current-thread runtime.
///
/// # Errors
/// The task's own, or the kernel's refusal of an event queue.
pub(crate) fn block_on<T, E: From<io::Error>>(task: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(task)
}

/// Returns at the next SIGINT or SIGTERM; never where the kernel refuses the handler.
pub(crate) async fn interrupted() {
    let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
    }
}

/// Has the kernel end this process when its parent thread ends; ends it now if that has happened already.
pub(crate) fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    match rustix::process::getppid() {
        Some(parent) if !parent.is_init() => Ok(()),
        Some(_) | None => Err(io::Error::other("the parent process is gone")),
    }
}

/// A new id of a run.
pub(crate) fn random_run_id() -> RunId {
    RunId(random_16())
}

/// A new id of a process.
pub(crate) fn random_boot_id() -> BootId {
    BootId(random_16())
}

fn random_16() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        // Blocks until the pool is seeded, so it only fails with EINTR.
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}
