//! What one end of a cell measured.

mod bandwidth;
mod histogram;
mod latency;
mod window;

use serde::{Deserialize, Serialize};

pub use bandwidth::{BandwidthSample, Mark, SliceStats};
pub use histogram::{Histogram, HistogramError, Percentiles};
pub use latency::{LatencySample, RttShare};
pub use window::Window;

/// What one end measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Measurement {
    /// Bytes over time. The receiver's sample is the cell's bandwidth, the sender's only confirms it.
    Bandwidth(BandwidthSample),
    /// Times of single exchanges, from the initiator.
    Latency(LatencySample),
    /// The responder of a latency test: how many exchanges it answered.
    Responder {
        /// Exchanges answered inside the window.
        answered: u64,
    },
    /// The end that a one-sided operation passes by: its memory was there, nothing told it what happened.
    Passive {
        /// Result of the data check: of what lies in its memory at the end.
        check: DataCheck,
    },
}

/// Whether received data was compared with what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DataCheck {
    /// Not asked for.
    Unchecked,
    /// Compared and equal.
    Equal {
        /// Bytes compared.
        bytes: u64,
    },
    /// A byte differed.
    Different {
        /// Position of the first wrong byte in the stream.
        offset: u64,
        /// What was sent.
        expected: u8,
        /// What arrived.
        got: u8,
    },
}
