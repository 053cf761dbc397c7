//! What `verbs.h` has as inline functions: calls through the tables of an opened device.

use std::ffi::c_int;
use std::mem::{offset_of, size_of};

use rustix::io::Errno;

use super::attributes::PortAttr;
use super::objects::{Context, Cq, Qp, QueryPort, VerbsContext};
use super::symbols::Symbols;
use super::work::{RecvWr, SendWr, Wc};

/// `verbs_get_ctx_op(context, query_port)`: the extended operation, where library and driver have it.
///
/// # Safety
/// `context` was opened by the library and is not closed.
unsafe fn extended_query_port(context: *mut Context) -> Option<QueryPort> {
    // SAFETY: the caller's promise.
    if unsafe { (*context).abi_compat } as usize != usize::MAX {
        return None;
    }
    let extended = context.wrapping_byte_sub(offset_of!(VerbsContext, context)).cast::<VerbsContext>();
    let needed = size_of::<VerbsContext>() - offset_of!(VerbsContext, query_port);
    // SAFETY: `abi_compat` says that the context is the end of a `verbs_context`; `sz` lies right before the context.
    if unsafe { (*extended).sz } < needed {
        return None;
    }
    // SAFETY: `sz` says that the structure reaches up to this field.
    unsafe { (*extended).query_port }
}

/// `ibv_query_port`: the extended operation with the size of the structure, else the library's first one, which knows
/// the structure up to `port_cap_flags2`. Returns an errno, 0 for success.
///
/// # Safety
/// `context` was opened by the library of `symbols` and is not closed.
pub(crate) unsafe fn query_port(
    symbols: &Symbols,
    context: *mut Context,
    port: u8,
    attr: &mut PortAttr,
) -> c_int {
    *attr = PortAttr::default();
    // SAFETY: the caller's promise.
    match unsafe { extended_query_port(context) } {
        // SAFETY: `attr` has the size that is told.
        Some(query_port) => unsafe { query_port(context, port, attr, size_of::<PortAttr>()) },
        // SAFETY: the first operation writes less than the structure has.
        None => unsafe { (symbols.query_port)(context, port, attr) },
    }
}

/// `ibv_poll_cq`: how many completions were written to `completions`; negative on a broken queue.
///
/// # Safety
/// `cq` is a living completion queue that no other thread polls now.
#[inline]
pub(crate) unsafe fn poll_cq(cq: *mut Cq, completions: &mut [Wc]) -> c_int {
    // SAFETY: a living queue's context is open.
    let Some(poll_cq) = (unsafe { (*(*cq).context).ops.poll_cq }) else {
        return -1;
    };
    // SAFETY: the slice has room for as many as are asked for.
    unsafe { poll_cq(cq, completions.len() as c_int, completions.as_mut_ptr()) }
}

/// `ibv_post_send`. Returns an errno, 0 for success; `bad` is the first request that was not taken.
///
/// # Safety
/// `qp` is a living queue pair that no other thread posts to now; the list of requests ends, and what it points to lives
/// until the call returns, registered memory until the completions.
#[inline]
pub(crate) unsafe fn post_send(qp: *mut Qp, list: *mut SendWr, bad: &mut *mut SendWr) -> c_int {
    // SAFETY: a living queue pair's context is open.
    match unsafe { (*(*qp).context).ops.post_send } {
        // SAFETY: the caller's promise.
        Some(post_send) => unsafe { post_send(qp, list, bad) },
        None => Errno::OPNOTSUPP.raw_os_error(),
    }
}

/// `ibv_post_recv`. Returns an errno, 0 for success.
///
/// # Safety
/// As for [`post_send`].
#[inline]
pub(crate) unsafe fn post_recv(qp: *mut Qp, list: *mut RecvWr, bad: &mut *mut RecvWr) -> c_int {
    // SAFETY: a living queue pair's context is open.
    match unsafe { (*(*qp).context).ops.post_recv } {
        // SAFETY: the caller's promise.
        Some(post_recv) => unsafe { post_recv(qp, list, bad) },
        None => Errno::OPNOTSUPP.raw_os_error(),
    }
}
