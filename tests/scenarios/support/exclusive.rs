//! One measurement at a time: two meshes on one small machine would measure each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

static MACHINE: Mutex<()> = Mutex::new(());

/// The machine for this scenario alone, until the guard is dropped. A scenario that failed leaves it usable.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
