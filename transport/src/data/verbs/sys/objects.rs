//! The objects that libibverbs allocates, as far as a caller may look into them.
//!
//! All of them live behind pointers that the library hands out; none is ever made or moved here.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::attributes::PortAttr;
use super::work::{RecvWr, SendWr, Wc};

/// `struct ibv_device`: a device of this node, opened or not.
#[repr(C)]
pub(crate) struct Device {
    _ops: [*mut c_void; 2],
    /// `enum ibv_node_type`, signed.
    pub(crate) node_type: c_int,
    /// `enum ibv_transport_type`, signed: 0 (`IBV_TRANSPORT_IB`) for InfiniBand and RoCE.
    pub(crate) transport_type: c_int,
    /// The device's name, such as `mlx5_0`, with a final zero.
    pub(crate) name: [c_char; 64],
    /// The name below `/dev/infiniband`, such as `uverbs0`, with a final zero.
    pub(crate) dev_name: [c_char; 64],
    /// The path of the uverbs device in sysfs, with a final zero.
    pub(crate) dev_path: [c_char; 256],
    /// The path of the device in sysfs, with a final zero.
    pub(crate) ibdev_path: [c_char; 256],
}

/// `struct ibv_context_ops`: the functions of the driver that the header's inline functions call.
#[repr(C)]
pub(crate) struct ContextOps {
    _before_poll_cq: [*mut c_void; 11],
    pub(crate) poll_cq: Option<unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int>,
    _before_post_send: [*mut c_void; 13],
    pub(crate) post_send: Option<unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int>,
    pub(crate) post_recv: Option<unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int>,
    _after_post_recv: [*mut c_void; 5],
}

/// `struct ibv_context`: an opened device.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) device: *mut Device,
    pub(crate) ops: ContextOps,
    pub(crate) cmd_fd: c_int,
    /// Readable when an asynchronous event waits.
    pub(crate) async_fd: c_int,
    pub(crate) num_comp_vectors: c_int,
    _mutex: libc::pthread_mutex_t,
    /// `UINTPTR_MAX` where this context is the end of a [`VerbsContext`].
    pub(crate) abi_compat: *mut c_void,
}

/// The extended form of `query_port`, with the size of the caller's structure.
pub(crate) type QueryPort = unsafe extern "C" fn(*mut Context, u8, *mut PortAttr, usize) -> c_int;

/// `struct verbs_context`: the extended operations, which lie in memory before the context that callers know.
///
/// It grows at its beginning, so only the distance of a field from the end is fixed, and `sz` says how much there is.
#[repr(C)]
pub(crate) struct VerbsContext {
    pub(crate) query_port: Option<QueryPort>,
    _before_size: [*mut c_void; 38],
    /// Bytes of this structure as the library was built.
    pub(crate) sz: usize,
    /// The context that callers know.
    pub(crate) context: Context,
}

/// `struct ibv_pd`: a protection domain.
#[repr(C)]
pub(crate) struct Pd {
    pub(crate) context: *mut Context,
    pub(crate) handle: u32,
}

/// `struct ibv_mr`: a memory region.
#[repr(C)]
pub(crate) struct Mr {
    pub(crate) context: *mut Context,
    pub(crate) pd: *mut Pd,
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    pub(crate) handle: u32,
    /// The key for this end's queue pairs.
    pub(crate) lkey: u32,
    /// The key for the peer's.
    pub(crate) rkey: u32,
}

/// `struct ibv_cq`: a completion queue.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) context: *mut Context,
    pub(crate) channel: *mut c_void,
    pub(crate) cq_context: *mut c_void,
    pub(crate) handle: u32,
    /// Entries that it has; at least as many as were asked for.
    pub(crate) cqe: c_int,
    _mutex: libc::pthread_mutex_t,
    _cond: libc::pthread_cond_t,
    _comp_events_completed: u32,
    _async_events_completed: u32,
}

/// `struct ibv_qp`: a queue pair.
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) context: *mut Context,
    pub(crate) qp_context: *mut c_void,
    pub(crate) pd: *mut Pd,
    pub(crate) send_cq: *mut Cq,
    pub(crate) recv_cq: *mut Cq,
    pub(crate) srq: *mut c_void,
    pub(crate) handle: u32,
    /// Its number, 24 bits: how the peer addresses it.
    pub(crate) qp_num: u32,
    pub(crate) state: c_uint,
    pub(crate) qp_type: c_uint,
    _mutex: libc::pthread_mutex_t,
    _cond: libc::pthread_cond_t,
    _events_completed: u32,
}
