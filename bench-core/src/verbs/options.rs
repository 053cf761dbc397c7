//! The parameters that RDMA tests have beside size, window and number of queue pairs.

use serde::{Deserialize, Serialize};

use super::PathMtu;
use crate::units::Bytes;

/// How the queue pairs of a case are made and used. Names and defaults are perftest's where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RdmaOptions {
    /// Messages under way on each queue pair of a bandwidth test (perftest `-t`).
    pub depth: u16,
    /// Work requests handed over in one call (perftest `-l`).
    pub post_list: u16,
    /// Messages for one completion, bandwidth only (perftest `-Q`); `None`: 100 for messages up to 8 KiB, else 1.
    pub cq_mod: Option<u16>,
    /// Messages up to this many bytes travel inside the work request (perftest `-I`); `None`: 220 for latency tests,
    /// none for bandwidth tests, less where the device takes less.
    pub inline_bytes: Option<u16>,
    /// Path MTU (perftest `-m`); `None`: the smaller active MTU of both ports.
    #[serde(rename = "mtu_bytes")]
    pub mtu: Option<PathMtu>,
    /// Which GID of the port to use (perftest `-x`); `None`: chosen by rule.
    pub gid_index: Option<u8>,
    /// InfiniBand service level, on RoCE the priority of untagged frames (perftest `-S`).
    pub service_level: u8,
    /// Traffic class: on RoCE the DSCP in its upper six bits.
    pub traffic_class: u8,
    /// The flow label, 20 bits; on RoCE it decides the UDP source port, and so the path among equal ones.
    pub flow_label: u32,
    /// Whether all queue pairs of a cell use that label.
    pub flow_labels: FlowLabels,
    /// P_Key by value, its lower 15 bits; `None`: chosen by rule.
    pub pkey: Option<u16>,
    /// Local ACK timeout, 4.096 us x 2^this (perftest `-u`).
    pub timeout: u8,
    /// Retries of a packet that is not acknowledged.
    pub retry_count: u8,
    /// Retries where the peer has no receive posted; 7 means without end.
    pub rnr_retry: u8,
    /// Reads under way on each queue pair (perftest `-o`); `None`: what both devices allow.
    pub rd_atomic: Option<u8>,
    /// What memory the messages are in.
    pub memory: Memory,
}

/// Which flow labels the queue pairs of a cell use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowLabels {
    /// All the same: they share a path, as one flow of a training job does.
    Same,
    /// Each the next one: spread over equal paths, which tells a hash collision from a bad link.
    PerQueuePair,
}

/// What memory the messages of a cell are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Ordinary pages of the host.
    Host,
    /// Huge pages of the host.
    HugePages,
}

impl RdmaOptions {
    /// Messages for one completion of a bandwidth test with messages of this size: what was asked for, else perftest's
    /// rule; never more than are under way, since the last of them must tell of the others.
    pub fn completions_every(&self, size: Bytes) -> u16 {
        let customary = if size.get() > MOST_MODERATED_BYTES { 1 } else { 100 };
        self.cq_mod.unwrap_or(customary).clamp(1, self.depth.max(1))
    }
}

impl Default for RdmaOptions {
    fn default() -> Self {
        Self {
            depth: 128,
            post_list: 1,
            cq_mod: None,
            inline_bytes: None,
            mtu: None,
            gid_index: None,
            service_level: 0,
            traffic_class: 0,
            flow_label: 0,
            flow_labels: FlowLabels::Same,
            pkey: None,
            timeout: 14,
            retry_count: 7,
            rnr_retry: 6,
            rd_atomic: None,
            memory: Memory::Host,
        }
    }
}

/// Messages above this many bytes complete one by one (`MSG_SIZE_CQ_MOD_LIMIT` of perftest).
const MOST_MODERATED_BYTES: u64 = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_messages_share_completions_and_never_more_than_are_under_way() {
        let every = |cq_mod, depth, size| {
            RdmaOptions { cq_mod, depth, ..RdmaOptions::default() }.completions_every(Bytes(size))
        };
        assert_eq!(every(None, 128, 64), 100);
        assert_eq!(every(None, 128, 8192), 100);
        assert_eq!(every(None, 128, 8193), 1);
        assert_eq!(every(None, 16, 64), 16);
        assert_eq!(every(Some(200), 128, 1 << 20), 128);
        assert_eq!(every(Some(8), 128, 1 << 20), 8);
    }
}
