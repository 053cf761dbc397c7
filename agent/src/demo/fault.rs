//! The faults that a demo can have.

use std::str::FromStr;

use bench_core::ids::RailId;
use thiserror::Error;

/// A fault of the demo's mesh; nodes count from 1 as in their names n1, n2 …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoFault {
    /// One rail of one node runs at a tenth of the rate, in both directions.
    Slow {
        /// The node.
        node: u8,
        /// Its rail.
        rail: RailId,
    },
    /// A node's agent is never started.
    Absent {
        /// The node.
        node: u8,
    },
    /// A node's agent and workers are killed in a round.
    Kill {
        /// The node.
        node: u8,
    },
    /// A node's agent and workers are stopped in a round, as a hung machine would be.
    Stop {
        /// The node.
        node: u8,
    },
}

impl DemoFault {
    /// The node that it strikes.
    pub fn node(self) -> u8 {
        match self {
            Self::Slow { node, .. } | Self::Absent { node } | Self::Kill { node } | Self::Stop { node } => {
                node
            }
        }
    }
}

impl FromStr for DemoFault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let error = || FaultError { text: text.to_owned() };
        let (kind, target) = text.split_once('=').ok_or_else(error)?;
        let number = |name: &str| name.strip_prefix('n').unwrap_or(name).parse::<u8>().map_err(|_| error());
        match kind {
            "slow" => {
                let (node, rail) = target.split_once(':').ok_or_else(error)?;
                let rail = rail.strip_prefix('r').unwrap_or(rail).parse().map_err(|_| error())?;
                Ok(Self::Slow { node: number(node)?, rail: RailId(rail) })
            }
            "absent" => Ok(Self::Absent { node: number(target)? }),
            "kill" => Ok(Self::Kill { node: number(target)? }),
            "stop" => Ok(Self::Stop { node: number(target)? }),
            _ => Err(error()),
        }
    }
}

/// A text that is no fault of a demo.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no fault: write slow=n2:r1, absent=n3, kill=n3 or stop=n3")]
pub struct FaultError {
    /// The refused text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_as_written() {
        assert_eq!("slow=n2:r1".parse(), Ok(DemoFault::Slow { node: 2, rail: RailId(1) }));
        assert_eq!("kill=n3".parse(), Ok(DemoFault::Kill { node: 3 }));
        for bad in ["slow=n2", "slow", "break=n1", "kill=x"] {
            assert!(bad.parse::<DemoFault>().is_err(), "{bad}");
        }
    }
}
