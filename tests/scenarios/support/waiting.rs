//! Waiting for a condition instead of for a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Asks `look` again and again until it gives something.
///
/// # Panics
/// With `what` and what was seen last, if `limit` passes.
pub(crate) fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if began.elapsed() > limit => {
                panic!("waited {limit:?} in vain for {what}; seen last:\n{seen}")
            }
            Err(_) => sleep(PAUSE),
        }
    }
}

/// Pause between two looks: short against everything that scenarios wait for.
const PAUSE: Duration = Duration::from_millis(20);

/// Longer than anything here takes on a busy machine; only a failure waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
