//! Work requests and completions: what the hot loops write and read.

use std::ffi::{c_int, c_uint};
use std::ptr;

/// `struct ibv_sge`: a piece of registered memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

/// The `rdma` form of `ibv_send_wr.wr`, padded to the size of the union.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RdmaTarget {
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u32,
    _rest_of_the_union: [u64; 2],
}

/// `struct ibv_send_wr`. Of its unions only the forms for reliable connections are named.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut Self,
    pub(crate) sg_list: *mut Sge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: c_uint,
    pub(crate) send_flags: c_uint,
    /// Immediate data in network byte order.
    pub(crate) imm_data: u32,
    pub(crate) rdma: RdmaTarget,
    _xrc: u32,
    _bind_or_tso: [u64; 6],
}

/// `struct ibv_recv_wr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvWr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut Self,
    pub(crate) sg_list: *mut Sge,
    pub(crate) num_sge: c_int,
}

/// `struct ibv_wc`: a completion. Where `status` is not success only `wr_id`, `status`, `vendor_err` and `qp_num` hold.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wc {
    pub(crate) wr_id: u64,
    pub(crate) status: c_uint,
    pub(crate) opcode: c_uint,
    pub(crate) vendor_err: u32,
    pub(crate) byte_len: u32,
    /// Immediate data in network byte order.
    pub(crate) imm_data: u32,
    pub(crate) qp_num: u32,
    pub(crate) src_qp: u32,
    pub(crate) wc_flags: c_uint,
    pub(crate) pkey_index: u16,
    pub(crate) slid: u16,
    pub(crate) sl: u8,
    pub(crate) dlid_path_bits: u8,
}

impl RdmaTarget {
    /// Memory of the peer.
    pub(crate) fn new(remote_addr: u64, rkey: u32) -> Self {
        Self { remote_addr, rkey, _rest_of_the_union: [0; 2] }
    }
}

impl Default for SendWr {
    fn default() -> Self {
        Self {
            wr_id: 0,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: 0,
            opcode: 0,
            send_flags: 0,
            imm_data: 0,
            rdma: RdmaTarget::default(),
            _xrc: 0,
            _bind_or_tso: [0; 6],
        }
    }
}

impl Default for RecvWr {
    fn default() -> Self {
        Self { wr_id: 0, next: ptr::null_mut(), sg_list: ptr::null_mut(), num_sge: 0 }
    }
}
