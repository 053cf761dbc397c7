//! Times of single exchanges.

use serde::{Deserialize, Serialize};

use super::{DataCheck, Histogram, Window};

/// What the initiator of a latency cell timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySample {
    /// The window on this end's clock.
    pub window: Window,
    /// Every exchange that began inside the window, in nanoseconds after applying `share`.
    pub histogram: Histogram,
    /// Which part of the round trip the figures are.
    pub share: RttShare,
    /// Result of the data check.
    pub check: DataCheck,
}

/// Which part of a round trip a latency figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RttShare {
    /// Half of the round trip: write, send and TCP. Right only where both directions are alike.
    Half,
    /// The whole round trip: read.
    Full,
}
