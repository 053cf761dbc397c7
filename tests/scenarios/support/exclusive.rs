//! One measurement at a time: two meshes on one small machine would measure each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::setpriority_process;

static MACHINE: Mutex<()> = Mutex::new(());

/// The machine for this scenario alone, until the guard is dropped. A scenario that failed leaves it usable.
///
/// Where it may (as root), this thread goes before whatever else runs on the machine; its processes inherit that.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    // Without the right to it, the scenarios run as every user's processes do.
    let _: Result<_, _> = setpriority_process(None, NICENESS);
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Above builds and editors, below what keeps a machine alive.
const NICENESS: i32 = -10;
