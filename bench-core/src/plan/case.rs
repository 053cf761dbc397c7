//! One test case: a kind of test with its size and parameters.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cell::End;
use crate::units::{BitsPerSecond, Bytes};
use crate::verbs::{Operation, RdmaOptions};

/// A kind of test with every parameter resolved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestCase {
    /// What is measured.
    pub kind: TestKind,
    /// Message size: the block of a bandwidth test, the ping of a latency test.
    pub size: Bytes,
    /// Parallel connections, or queue pairs, of a bandwidth cell; 1 for latency.
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
    /// The parameters of an RDMA test; `None` for every other.
    pub rdma: Option<RdmaOptions>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// TCP bandwidth from source to destination, counted by the receiver.
    TcpBw,
    /// TCP ping-pong latency, RTT/2, timed by the initiator.
    TcpLat,
    /// RDMA write bandwidth, counted by the source, since the destination is not told.
    WriteBw,
    /// RDMA write ping-pong latency, RTT/2: each end watches its memory.
    WriteLat,
    /// Bandwidth of RDMA write with immediate, counted by the destination.
    WriteImmBw,
    /// Ping-pong latency of RDMA write with immediate, RTT/2.
    WriteImmLat,
    /// RDMA read bandwidth: the destination reads from the source and counts.
    ReadBw,
    /// RDMA read latency: the source reads from the destination; the whole round trip.
    ReadLat,
    /// Send bandwidth, counted by the destination.
    SendBw,
    /// Send ping-pong latency, RTT/2.
    SendLat,
}

/// What moves the data of a kind of test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// TCP sockets.
    Tcp,
    /// This operation on reliable-connection queue pairs.
    Rdma(Operation),
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
    pub const ALL: [Self; 10] = [
        Self::TcpBw,
        Self::TcpLat,
        Self::WriteBw,
        Self::WriteLat,
        Self::WriteImmBw,
        Self::WriteImmLat,
        Self::ReadBw,
        Self::ReadLat,
        Self::SendBw,
        Self::SendLat,
    ];

    /// The kinds of a plan that names none: those that every node can measure.
    pub const DEFAULT: [Self; 2] = [Self::TcpBw, Self::TcpLat];

    /// The name in plans, flags, results and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpBw => "tcp_bw",
            Self::TcpLat => "tcp_lat",
            Self::WriteBw => "write_bw",
            Self::WriteLat => "write_lat",
            Self::WriteImmBw => "write_imm_bw",
            Self::WriteImmLat => "write_imm_lat",
            Self::ReadBw => "read_bw",
            Self::ReadLat => "read_lat",
            Self::SendBw => "send_bw",
            Self::SendLat => "send_lat",
        }
    }

    /// Which way is better.
    pub const fn spread(self) -> Spread {
        match self {
            Self::TcpBw | Self::WriteBw | Self::WriteImmBw | Self::ReadBw | Self::SendBw => Spread::Bandwidth,
            Self::TcpLat | Self::WriteLat | Self::WriteImmLat | Self::ReadLat | Self::SendLat => {
                Spread::Latency
            }
        }
    }

    /// What moves the data.
    pub const fn means(self) -> Means {
        match self {
            Self::TcpBw | Self::TcpLat => Means::Tcp,
            Self::WriteBw | Self::WriteLat => Means::Rdma(Operation::Write),
            Self::WriteImmBw | Self::WriteImmLat => Means::Rdma(Operation::WriteImm),
            Self::ReadBw | Self::ReadLat => Means::Rdma(Operation::Read),
            Self::SendBw | Self::SendLat => Means::Rdma(Operation::Send),
        }
    }

    /// The end whose figure is the cell's: the receiver of a bandwidth test, or the source where the receiver is not
    /// told; the initiator of a latency test.
    pub const fn observer(self) -> End {
        match self {
            Self::TcpBw | Self::WriteImmBw | Self::ReadBw | Self::SendBw => End::Destination,
            Self::WriteBw
            | Self::TcpLat
            | Self::WriteLat
            | Self::WriteImmLat
            | Self::ReadLat
            | Self::SendLat => End::Source,
        }
    }

    /// The message size where the plan names none: iperf3's, sockperf's and perftest's customary ones.
    pub const fn default_size(self) -> Bytes {
        match (self.means(), self.spread()) {
            (Means::Tcp, Spread::Bandwidth) => Bytes(128 << 10),
            (Means::Tcp, Spread::Latency) => Bytes(64),
            (Means::Rdma(_), Spread::Bandwidth) => Bytes(64 << 10),
            (Means::Rdma(_), Spread::Latency) => Bytes(8),
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
