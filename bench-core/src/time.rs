//! Time as data: a monotonic instant of one node and the offset between two nodes' clocks.
//!
//! Wall time never appears here. Nodes at bring-up have wrong clocks, so wall time is only a label.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds on the monotonic clock of one node (CLOCK_MONOTONIC, origin unspecified).
///
/// Two values compare only when they come from the same node; [`ClockOffset`] carries one over to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mono(u64);

impl Mono {
    /// An instant `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self` plus `wait`, held at the end of the scale.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// `self` minus `wait`, held at zero.
    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// One exchange with the node that owns the reference clock (the coordinator).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSample {
    /// When the question left, on the local clock.
    pub sent: Mono,
    /// When the answer was made, on the reference clock.
    pub reference: Mono,
    /// When the answer arrived, on the local clock.
    pub received: Mono,
}

/// How far the local monotonic clock is ahead of the reference clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Local minus reference, nanoseconds.
    pub offset_ns: i64,
    /// Half of the round trip that gave the offset, nanoseconds: the true offset lies within ± this.
    pub error_ns: u64,
}

impl ClockOffset {
    /// The offset of the sample with the smallest round trip; `None` without a sample.
    ///
    /// The smallest round trip bounds the error best (Cristian's algorithm: error ≤ RTT/2).
    pub fn from_samples(samples: &[ClockSample]) -> Option<Self> {
        samples.iter().filter(|s| s.received >= s.sent).min_by_key(|s| s.received.since(s.sent)).map(|s| {
            let half = s.received.since(s.sent).as_nanos() as u64 / 2;
            let middle = s.sent.as_nanos().saturating_add(half);
            Self { offset_ns: middle.wrapping_sub(s.reference.as_nanos()).cast_signed(), error_ns: half }
        })
    }

    /// A local instant on the reference clock.
    pub fn to_reference(self, local: Mono) -> Mono {
        Mono(local.0.wrapping_sub(self.offset_ns.cast_unsigned()))
    }

    /// A reference instant on the local clock.
    pub fn to_local(self, reference: Mono) -> Mono {
        Mono(reference.0.wrapping_add(self.offset_ns.cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_decides_the_offset() {
        let sample = |sent, reference, received| ClockSample {
            sent: Mono::from_nanos(sent),
            reference: Mono::from_nanos(reference),
            received: Mono::from_nanos(received),
        };
        let offset = ClockOffset::from_samples(&[sample(1_000, 90, 9_000), sample(10_000, 500, 10_200)]);
        assert_eq!(offset, Some(ClockOffset { offset_ns: 9_600, error_ns: 100 }));
        assert_eq!(ClockOffset::from_samples(&[]), None);
    }

    #[test]
    fn a_local_clock_days_behind_the_reference_round_trips() {
        let day = 86_400 * 1_000_000_000_u64;
        let offset = ClockOffset { offset_ns: -(3 * day).cast_signed(), error_ns: 1 };
        let reference = Mono::from_nanos(5 * day);
        assert_eq!(offset.to_local(reference), Mono::from_nanos(2 * day));
        assert_eq!(offset.to_reference(offset.to_local(reference)), reference);
    }
}
