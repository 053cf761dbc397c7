//! The measured stretch of time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{ClockOffset, Mono};

/// A stretch of time on one clock, start included, end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// First instant.
    pub start: Mono,
    /// First instant after it; never before `start`.
    pub end: Mono,
}

impl Window {
    /// The window from `start` on that is `length` long.
    pub fn new(start: Mono, length: Duration) -> Self {
        Self { start, end: start.after(length) }
    }

    /// How long it is.
    pub fn length(&self) -> Duration {
        self.end.since(self.start)
    }

    /// Whether `at` lies in it.
    pub fn contains(&self, at: Mono) -> bool {
        self.start <= at && at < self.end
    }

    /// The same stretch on the reference clock.
    #[must_use]
    pub fn to_reference(&self, clock: ClockOffset) -> Self {
        Self { start: clock.to_reference(self.start), end: clock.to_reference(self.end) }
    }

    /// The stretch that both share; `None` where they share none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let both = Self { start: self.start.max(other.start), end: self.end.min(other.end) };
        (both.start < both.end).then_some(both)
    }
}
