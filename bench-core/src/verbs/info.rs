//! What an end of an RDMA cell tells its peer before both connect.

use serde::{Deserialize, Serialize};

use super::{GidRow, PathMtu, PkeyRow};
use crate::topology::LinkLayer;

/// Where and how an end of an RDMA cell is reached. Travels over the authenticated mesh only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerbsInfo {
    /// The device and, if it is not the first, its port, such as `mlx5_4`: for messages.
    pub device: String,
    /// What runs on the wire.
    pub link_layer: LinkLayer,
    /// The port's LID; 0 on RoCE.
    pub lid: u16,
    /// Whether packets need a global route header on this port.
    pub grh: Grh,
    /// GIDs that may be used, the preferred ones first.
    pub gids: Vec<GidRow>,
    /// P_Keys of the port.
    pub pkeys: Vec<PkeyRow>,
    /// The port's active MTU.
    pub mtu: PathMtu,
    /// Reads that a queue pair of the device can have under way.
    pub max_reads_out: u8,
    /// Reads that a queue pair of the device can answer at the same time.
    pub max_reads_in: u8,
    /// Receives that it keeps posted on each queue pair; 0 where the test needs none.
    pub receives: u32,
    /// Its queue pairs; the n-th of one end talks to the n-th of the other.
    pub queue_pairs: Vec<QueuePairAddress>,
    /// Its registered memory.
    pub memory: RemoteMemory,
    /// 128 random bits of this attempt, which seed the data that this end sends.
    pub seed: [u8; 16],
}

/// Whether packets need a global route header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grh {
    /// Only where the subnets differ.
    BetweenSubnets,
    /// Always: the port asks for it (`IBV_QPF_GRH_REQUIRED`, as virtual functions do), or it is RoCE.
    Always,
}

/// How a queue pair is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePairAddress {
    /// Its number, 24 bits.
    pub number: u32,
    /// The first packet sequence number that it sends, 24 bits.
    pub psn: u32,
}

/// Memory that the peer may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteMemory {
    /// Its first address in the owner's process.
    pub address: u64,
    /// The key that admits to it.
    pub rkey: u32,
    /// How much.
    pub bytes: u64,
}
