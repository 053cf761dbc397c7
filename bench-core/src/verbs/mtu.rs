//! The path MTU of RDMA.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Largest payload of one RDMA packet, as `enum ibv_mtu` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub enum PathMtu {
    /// 256 bytes.
    B256,
    /// 512 bytes.
    B512,
    /// 1024 bytes: what fits into an Ethernet frame of 1500.
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes: InfiniBand, and Ethernet with jumbo frames.
    B4096,
}

/// A number that is no path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is no path MTU, it can be 256, 512, 1024, 2048 or 4096")]
pub struct NoPathMtu(pub u16);

impl PathMtu {
    /// Every one, smallest first.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// In bytes.
    pub const fn bytes(self) -> u16 {
        match self {
            Self::B256 => 256,
            Self::B512 => 512,
            Self::B1024 => 1_024,
            Self::B2048 => 2_048,
            Self::B4096 => 4_096,
        }
    }
}

impl TryFrom<u16> for PathMtu {
    type Error = NoPathMtu;

    fn try_from(bytes: u16) -> Result<Self, NoPathMtu> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes).ok_or(NoPathMtu(bytes))
    }
}

impl From<PathMtu> for u16 {
    fn from(mtu: PathMtu) -> Self {
        mtu.bytes()
    }
}
