//! The node's monotonic clock.

use bench_core::time::Mono;
use rustix::time::{ClockId, clock_gettime};

/// Now, on CLOCK_MONOTONIC: the clock that every process of a node shares.
pub fn now() -> Mono {
    let time = clock_gettime(ClockId::Monotonic);
    Mono::from_nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}
