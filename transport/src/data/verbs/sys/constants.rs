//! Numbers of `verbs.h` that are used.

use std::ffi::{c_int, c_uint};

/// `IBV_NODE_CA`: an InfiniBand or RoCE device.
pub(crate) const NODE_CA: c_int = 1;

/// `IBV_QPT_RC`: a reliable connection.
pub(crate) const QPT_RC: c_uint = 2;

/// `enum ibv_qp_state`.
pub(crate) mod qp_state {
    pub(crate) const INIT: u32 = 1;
    pub(crate) const RTR: u32 = 2;
    pub(crate) const RTS: u32 = 3;
    pub(crate) const ERR: u32 = 6;
}

/// `enum ibv_qp_attr_mask`.
pub(crate) mod qp_mask {
    pub(crate) const STATE: u32 = 1;
    pub(crate) const ACCESS_FLAGS: u32 = 1 << 3;
    pub(crate) const PKEY_INDEX: u32 = 1 << 4;
    pub(crate) const PORT: u32 = 1 << 5;
    pub(crate) const AV: u32 = 1 << 7;
    pub(crate) const PATH_MTU: u32 = 1 << 8;
    pub(crate) const TIMEOUT: u32 = 1 << 9;
    pub(crate) const RETRY_CNT: u32 = 1 << 10;
    pub(crate) const RNR_RETRY: u32 = 1 << 11;
    pub(crate) const RQ_PSN: u32 = 1 << 12;
    pub(crate) const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    pub(crate) const MIN_RNR_TIMER: u32 = 1 << 15;
    pub(crate) const SQ_PSN: u32 = 1 << 16;
    pub(crate) const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub(crate) const DEST_QPN: u32 = 1 << 20;
}

/// `enum ibv_access_flags`.
pub(crate) mod access {
    pub(crate) const LOCAL_WRITE: u32 = 1;
    pub(crate) const REMOTE_WRITE: u32 = 1 << 1;
    pub(crate) const REMOTE_READ: u32 = 1 << 2;
}

/// `enum ibv_wr_opcode`.
pub(crate) mod opcode {
    pub(crate) const RDMA_WRITE: u32 = 0;
    pub(crate) const RDMA_WRITE_WITH_IMM: u32 = 1;
    pub(crate) const SEND: u32 = 2;
    pub(crate) const RDMA_READ: u32 = 4;
}

/// `enum ibv_send_flags`.
pub(crate) mod send_flag {
    pub(crate) const SIGNALED: u32 = 1 << 1;
    pub(crate) const INLINE: u32 = 1 << 3;
}

/// Set in [`super::work::Wc::opcode`] where a receive completed (`IBV_WC_RECV`).
pub(crate) const WC_RECV: u32 = 1 << 7;

/// `IBV_WC_RECV_RDMA_WITH_IMM`: a write with immediate arrived.
pub(crate) const WC_RECV_RDMA_WITH_IMM: u32 = WC_RECV + 1;

/// `IBV_WC_SUCCESS`.
pub(crate) const WC_SUCCESS: u32 = 0;

/// `IBV_QPF_GRH_REQUIRED` in `ibv_port_attr.flags`.
pub(crate) const PORT_GRH_REQUIRED: u8 = 1;

/// `IBV_LINK_LAYER_INFINIBAND`; 0 (unspecified) is InfiniBand too, from kernels before 2.6.37.
pub(crate) const LINK_LAYER_INFINIBAND: u8 = 1;

/// `IBV_LINK_LAYER_ETHERNET`.
pub(crate) const LINK_LAYER_ETHERNET: u8 = 2;
