//! Verbs with results: every function returns what it made, or [`VerbError`] with the errno decoded.

use std::ffi::c_int;
use std::ptr::NonNull;

use rustix::io::Errno;

use super::error::{Verb, VerbError};
use super::sys::{Context, Device, Symbols};

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
