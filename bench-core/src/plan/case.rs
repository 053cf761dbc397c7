//! One test case: a kind of test with its size and parameters.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::{BitsPerSecond, Bytes};

/// A kind of test with every parameter resolved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestCase {
    /// What is measured.
    pub kind: TestKind,
    /// Message size: the block of a bandwidth test, the ping of a latency test.
    pub size: Bytes,
    /// Parallel connections of a bandwidth cell; 1 for latency.
    pub streams: u16,
    /// How a thread waits for data.
    pub wait: WaitMode,
    /// The measured window.
    pub window: Duration,
    /// Traffic before the window that is not counted.
    pub warmup: Duration,
    /// Whether received data is compared with what was sent.
    pub verify: Verify,
    /// Upper bound on the rate of a whole cell, kept by pacing at the source; `None` sends as fast as it goes.
    pub rate_limit: Option<BitsPerSecond>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// TCP bandwidth from source to destination, counted by the receiver.
    TcpBw,
    /// TCP ping-pong latency, RTT/2, timed by the initiator.
    TcpLat,
}

/// Whether a figure of a kind is better high or low, and how far sound cells of it scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// A rate: higher is better.
    Bandwidth,
    /// A time: lower is better.
    Latency,
}

/// How a thread waits for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Sleeps in the kernel until data arrives.
    Blocking,
    /// Asks again at once, on a core of its own.
    Spinning,
}

/// Whether received data is compared with what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Not compared; the result says `unchecked`.
    Off,
    /// Every byte outside the window, and sampled blocks inside it.
    Sampled,
}

impl TestKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::TcpBw, Self::TcpLat];

    /// The name in plans, flags, results and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpBw => "tcp_bw",
            Self::TcpLat => "tcp_lat",
        }
    }

    /// Which way is better.
    pub const fn spread(self) -> Spread {
        match self {
            Self::TcpBw => Spread::Bandwidth,
            Self::TcpLat => Spread::Latency,
        }
    }

    /// The message size where the plan names none: perftest's and sockperf's customary ones.
    pub const fn default_size(self) -> Bytes {
        match self {
            Self::TcpBw => Bytes(128 << 10),
            Self::TcpLat => Bytes(64),
        }
    }
}

impl fmt::Display for TestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl TestCase {
    /// The test with its size, such as `tcp_bw 64K`.
    pub fn title(&self) -> String {
        format!("{} {}", self.kind, self.size)
    }

    /// The case with its rate held at `pace`, if that is lower.
    #[must_use]
    pub fn held_at(self, pace: Option<BitsPerSecond>) -> Self {
        let rate_limit = match (self.rate_limit, pace) {
            (Some(limit), Some(pace)) => Some(if pace < limit { pace } else { limit }),
            (limit, pace) => limit.or(pace),
        };
        Self { rate_limit, ..self }
    }
}
