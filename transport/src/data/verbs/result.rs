//! Verbs with results: every function returns what it made, or [`VerbError`] with the errno decoded.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use rustix::io::Errno;

use super::error::{Verb, VerbError};
use super::sys::{
    self, Context, Cq, Device, DeviceAttr, Gid, GidEntry, Mr, Pd, PortAttr, Qp, QpAttr, QpInitAttr, RecvWr,
    SendWr, Symbols, Wc,
};

/// Devices of this node, and how many.
///
/// # Safety
/// The list must be given to [`free_device_list`] once, and its devices opened before.
pub(super) unsafe fn get_device_list(symbols: &Symbols) -> Result<(NonNull<*mut Device>, usize), VerbError> {
    let mut count: c_int = 0;
    // SAFETY: `count` lives over the call.
    let list = unsafe { (symbols.get_device_list)(&raw mut count) };
    let list = made(list, Verb::GetDeviceList, || "of this node".to_owned())?;
    Ok((list, usize::try_from(count).unwrap_or(0)))
}

/// Gives a list of devices back.
///
/// # Safety
/// `list` comes from [`get_device_list`] and is not used after.
pub(super) unsafe fn free_device_list(symbols: &Symbols, list: NonNull<*mut Device>) {
    // SAFETY: the caller's promise.
    unsafe { (symbols.free_device_list)(list.as_ptr()) };
}

/// Opens a device.
///
/// # Safety
/// `device` is of a list that was not freed; the context must be closed once.
pub(super) unsafe fn open_device(
    symbols: &Symbols,
    device: *mut Device,
    name: &str,
) -> Result<NonNull<Context>, VerbError> {
    // SAFETY: the caller's promise.
    let context = unsafe { (symbols.open_device)(device) };
    made(context, Verb::OpenDevice, || format!("of {name}"))
}

/// Closes a device.
///
/// # Safety
/// Nothing that was made from `context` is left, and it is not used after.
pub(super) unsafe fn close_device(
    symbols: &Symbols,
    context: NonNull<Context>,
    name: &str,
) -> Result<(), VerbError> {
    // SAFETY: the caller's promise.
    let code = unsafe { (symbols.close_device)(context.as_ptr()) };
    done(code, Verb::CloseDevice, || format!("of {name}"))
}

/// The device's limits.
///
/// # Safety
/// `context` is open.
pub(super) unsafe fn query_device(
    symbols: &Symbols,
    context: NonNull<Context>,
    name: &str,
) -> Result<DeviceAttr, VerbError> {
    let mut attr = MaybeUninit::<DeviceAttr>::zeroed();
    // SAFETY: the caller's promise; `attr` has the size that the verb fills in.
    let code = unsafe { (symbols.query_device)(context.as_ptr(), attr.as_mut_ptr()) };
    done(code, Verb::QueryDevice, || format!("of {name}"))?;
    // SAFETY: zeroed, then filled in; every field is a number.
    Ok(unsafe { attr.assume_init() })
}

/// A port's state.
///
/// # Safety
/// `context` is open.
pub(super) unsafe fn query_port(
    symbols: &Symbols,
    context: NonNull<Context>,
    port: u8,
    name: &str,
) -> Result<PortAttr, VerbError> {
    let mut attr = PortAttr::default();
    // SAFETY: the caller's promise.
    let code = unsafe { sys::query_port(symbols, context.as_ptr(), port, &mut attr) };
    done(code, Verb::QueryPort, || format!("of port {port} of {name}"))?;
    Ok(attr)
}

/// A row of the GID table with what it is; `None` where the library or the kernel is too old to tell what it is.
///
/// # Safety
/// `context` is open.
pub(super) unsafe fn query_gid_entry(
    symbols: &Symbols,
    context: NonNull<Context>,
    port: u8,
    index: u32,
    name: &str,
) -> Result<Option<GidEntry>, VerbError> {
    let Some(query) = symbols.query_gid_ex else {
        return Ok(None);
    };
    let mut entry = GidEntry::default();
    // SAFETY: the caller's promise; the size that is told is that of `entry`.
    let code =
        unsafe { query(context.as_ptr(), port.into(), index, &raw mut entry, 0, size_of::<GidEntry>()) };
    done(code, Verb::QueryGid, || format!("{index} of port {port} of {name}"))?;
    Ok(Some(entry))
}

/// A row of the GID table.
///
/// # Safety
/// `context` is open.
pub(super) unsafe fn query_gid(
    symbols: &Symbols,
    context: NonNull<Context>,
    port: u8,
    index: u32,
    name: &str,
) -> Result<Gid, VerbError> {
    let mut gid = Gid::default();
    // SAFETY: the caller's promise; `gid` lives over the call.
    let code = unsafe { (symbols.query_gid)(context.as_ptr(), port, index as c_int, &raw mut gid) };
    done(code, Verb::QueryGid, || format!("{index} of port {port} of {name}"))?;
    Ok(gid)
}

/// A row of the P_Key table.
///
/// # Safety
/// `context` is open.
pub(super) unsafe fn query_pkey(
    symbols: &Symbols,
    context: NonNull<Context>,
    port: u8,
    index: u16,
    name: &str,
) -> Result<u16, VerbError> {
    let mut pkey = 0;
    // SAFETY: the caller's promise; `pkey` lives over the call.
    let code = unsafe { (symbols.query_pkey)(context.as_ptr(), port, index.into(), &raw mut pkey) };
    done(code, Verb::QueryPkey, || format!("{index} of port {port} of {name}"))?;
    // The verb writes it in network byte order.
    Ok(u16::from_be(pkey))
}

/// Makes a protection domain.
///
/// # Safety
/// `context` is open and stays so until the domain is given back.
pub(super) unsafe fn alloc_pd(
    symbols: &Symbols,
    context: NonNull<Context>,
    name: &str,
) -> Result<NonNull<Pd>, VerbError> {
    // SAFETY: the caller's promise.
    let pd = unsafe { (symbols.alloc_pd)(context.as_ptr()) };
    made(pd, Verb::AllocPd, || format!("on {name}"))
}

/// Gives a protection domain back.
///
/// # Safety
/// Nothing that was made in it is left, and it is not used after.
pub(super) unsafe fn dealloc_pd(symbols: &Symbols, pd: NonNull<Pd>, name: &str) -> Result<(), VerbError> {
    // SAFETY: the caller's promise.
    let code = unsafe { (symbols.dealloc_pd)(pd.as_ptr()) };
    done(code, Verb::DeallocPd, || format!("on {name}"))
}

/// Registers memory.
///
/// # Safety
/// The memory lives until the registration is given back, and nothing in this process relies on its content meanwhile.
pub(super) unsafe fn reg_mr(
    symbols: &Symbols,
    pd: NonNull<Pd>,
    memory: *mut c_void,
    bytes: usize,
    access: u32,
    name: &str,
) -> Result<NonNull<Mr>, VerbError> {
    // SAFETY: the caller's promise.
    let mr = unsafe { (symbols.reg_mr)(pd.as_ptr(), memory, bytes, access as c_int) };
    made(mr, Verb::RegMr, || format!("of {bytes} bytes on {name}"))
}

/// Tries to register memory of another device by a DMA-BUF that does not exist: a driver that knows DMA-BUFs complains of
/// the descriptor (EBADF), one that does not says so. `None` where the library is too old to ask.
///
/// # Safety
/// `pd` lives.
pub(super) unsafe fn try_dmabuf(symbols: &Symbols, pd: NonNull<Pd>, name: &str) -> Option<VerbError> {
    let reg_dmabuf_mr = symbols.reg_dmabuf_mr?;
    // SAFETY: the caller's promise; no descriptor is -1, so nothing can be registered.
    let mr = unsafe { reg_dmabuf_mr(pd.as_ptr(), 0, 4096, 0, -1, 0) };
    made(mr, Verb::RegDmabufMr, || format!("on {name}")).err()
}

/// Gives a registration back.
///
/// # Safety
/// No request that uses it is under way, and it is not used after.
pub(super) unsafe fn dereg_mr(symbols: &Symbols, mr: NonNull<Mr>, name: &str) -> Result<(), VerbError> {
    // SAFETY: the caller's promise.
    let code = unsafe { (symbols.dereg_mr)(mr.as_ptr()) };
    done(code, Verb::DeregMr, || format!("on {name}"))
}

/// Makes a completion queue with room for at least this many.
///
/// # Safety
/// `context` is open and stays so until the queue is given back.
pub(super) unsafe fn create_cq(
    symbols: &Symbols,
    context: NonNull<Context>,
    entries: u32,
    name: &str,
) -> Result<NonNull<Cq>, VerbError> {
    // SAFETY: the caller's promise; no channel, no context of ours, vector 0, which every device has.
    let cq = unsafe {
        (symbols.create_cq)(context.as_ptr(), entries as c_int, ptr::null_mut(), ptr::null_mut(), 0)
    };
    made(cq, Verb::CreateCq, || format!("with {entries} entries on {name}"))
}

/// Gives a completion queue back.
///
/// # Safety
/// No queue pair uses it any more, and it is not used after.
pub(super) unsafe fn destroy_cq(symbols: &Symbols, cq: NonNull<Cq>, name: &str) -> Result<(), VerbError> {
    // SAFETY: the caller's promise.
    let code = unsafe { (symbols.destroy_cq)(cq.as_ptr()) };
    done(code, Verb::DestroyCq, || format!("on {name}"))
}

/// Makes a queue pair; `init` holds what it got.
///
/// # Safety
/// Domain and queues of `init` live until the queue pair is given back.
pub(super) unsafe fn create_qp(
    symbols: &Symbols,
    pd: NonNull<Pd>,
    init: &mut QpInitAttr,
    name: &str,
) -> Result<NonNull<Qp>, VerbError> {
    let asked = init.cap;
    // SAFETY: the caller's promise.
    let qp = unsafe { (symbols.create_qp)(pd.as_ptr(), init) };
    made(qp, Verb::CreateQp, || {
        format!(
            "with {} sends, {} receives and {} inline bytes on {name}",
            asked.max_send_wr, asked.max_recv_wr, asked.max_inline_data
        )
    })
}

/// Brings a queue pair into another state; `about` tells which, with the attributes.
///
/// # Safety
/// `qp` lives.
pub(super) unsafe fn modify_qp(
    symbols: &Symbols,
    qp: NonNull<Qp>,
    attr: &mut QpAttr,
    mask: u32,
    about: impl FnOnce() -> String,
) -> Result<(), VerbError> {
    // SAFETY: the caller's promise; `attr` lives over the call.
    let code = unsafe { (symbols.modify_qp)(qp.as_ptr(), attr, mask as c_int) };
    done(code, Verb::ModifyQp, about)
}

/// Gives a queue pair back.
///
/// # Safety
/// It is not used after.
pub(super) unsafe fn destroy_qp(symbols: &Symbols, qp: NonNull<Qp>, name: &str) -> Result<(), VerbError> {
    // SAFETY: the caller's promise.
    let code = unsafe { (symbols.destroy_qp)(qp.as_ptr()) };
    done(code, Verb::DestroyQp, || format!("on {name}"))
}

/// Takes completions, as many as there are and fit.
///
/// # Safety
/// As for [`sys::poll_cq`].
#[inline]
pub(super) unsafe fn poll_cq(
    cq: NonNull<Cq>,
    completions: &mut [Wc],
    name: &str,
) -> Result<usize, VerbError> {
    // SAFETY: the caller's promise.
    let count = unsafe { sys::poll_cq(cq.as_ptr(), completions) };
    usize::try_from(count).map_err(|_| VerbError {
        verb: Verb::PollCq,
        about: format!("on {name}"),
        errno: Errno::IO,
    })
}

/// Hands over a list of requests.
///
/// # Safety
/// As for [`sys::post_send`].
#[inline]
pub(super) unsafe fn post_send(qp: NonNull<Qp>, list: *mut SendWr, name: &str) -> Result<(), VerbError> {
    let mut bad = ptr::null_mut();
    // SAFETY: the caller's promise.
    let code = unsafe { sys::post_send(qp.as_ptr(), list, &mut bad) };
    done(code, Verb::PostSend, || format!("on {name}"))
}

/// Hands over a list of receives.
///
/// # Safety
/// As for [`sys::post_recv`].
#[inline]
pub(super) unsafe fn post_recv(qp: NonNull<Qp>, list: *mut RecvWr, name: &str) -> Result<(), VerbError> {
    let mut bad = ptr::null_mut();
    // SAFETY: the caller's promise.
    let code = unsafe { sys::post_recv(qp.as_ptr(), list, &mut bad) };
    done(code, Verb::PostRecv, || format!("on {name}"))
}

/// A pointer that a verb made; null means that errno tells why not.
fn made<T>(pointer: *mut T, verb: Verb, about: impl FnOnce() -> String) -> Result<NonNull<T>, VerbError> {
    NonNull::new(pointer).ok_or_else(|| VerbError { verb, about: about(), errno: last_errno() })
}

/// The code of a verb: 0 for success, else an errno, or -1 with errno set.
fn done(code: c_int, verb: Verb, about: impl FnOnce() -> String) -> Result<(), VerbError> {
    match code {
        0 => Ok(()),
        1.. => Err(VerbError { verb, about: about(), errno: Errno::from_raw_os_error(code) }),
        _ => Err(VerbError { verb, about: about(), errno: last_errno() }),
    }
}

/// What the last call of this thread left in errno. A library that fails without setting it fails with EIO here.
fn last_errno() -> Errno {
    let last = std::io::Error::last_os_error();
    Errno::from_io_error(&last).filter(|errno| errno.raw_os_error() != 0).unwrap_or(Errno::IO)
}
