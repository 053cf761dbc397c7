//! Pretended faults, for trials and the demo: a rail of this node whose rate is capped.

use std::collections::BTreeMap;
use std::str::FromStr;

use bench_core::ids::RailId;
use bench_core::units::BitsPerSecond;
use thiserror::Error;

/// The pretended faults of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Emulation {
    slow: BTreeMap<RailId, BitsPerSecond>,
}

impl Emulation {
    /// Adds one fault, written `slow=r1:100M`.
    ///
    /// # Errors
    /// [`EmulationError`] for anything else.
    pub fn add(&mut self, text: &str) -> Result<(), EmulationError> {
        let error = || EmulationError { text: text.to_owned() };
        let (rail, rate) =
            text.strip_prefix("slow=").and_then(|rest| rest.split_once(':')).ok_or_else(error)?;
        let rail: u16 = rail.trim_start_matches('r').parse().map_err(|_| error())?;
        let rate = BitsPerSecond::from_str(rate).map_err(|_| error())?;
        self.slow.insert(RailId(rail), rate);
        Ok(())
    }

    /// The pretended cap of a rail, for what this node sends and receives on it.
    pub fn pace_of(&self, rail: RailId) -> Option<BitsPerSecond> {
        self.slow.get(&rail).copied()
    }
}

/// A text that is no pretended fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no fault to pretend: write slow=RAIL:RATE, such as slow=r1:100M")]
pub struct EmulationError {
    /// The refused text.
    pub text: String,
}
