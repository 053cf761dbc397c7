//! Memory of this process that the device and the peer may read and write.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use bench_core::verbs::{Memory, RemoteMemory};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::error::{VerbError, leak};
use super::protection_domain::ProtectionDomain;
use super::result;
use super::sys::constants::access;
use super::sys::{Mr, Sge};

/// Pages of their own. Nothing else of this process lies in them, since a peer writes there when it likes.
struct Pages {
    start: NonNull<c_void>,
    bytes: usize,
}

/// Registered memory. Its content is only ever copied out and in: no reference into it exists, because the device
/// changes it at any time.
pub(super) struct Region {
    pd: Arc<ProtectionDomain>,
    mr: NonNull<Mr>,
    pages: Pages,
    lkey: u32,
    rkey: u32,
}

// SAFETY: the pages belong to this value alone, and the registration may be used and freed by any thread.
unsafe impl Send for Region {}
// SAFETY: lists of requests share it with their endpoint, and an endpoint with all that it owns is on one thread at a
// time; so copies in and out race with the device only, as they must.
unsafe impl Sync for Region {}

/// Why there is no region.
#[derive(Debug)]
pub(super) enum NoRegion {
    /// The kernel gives no such pages.
    Pages {
        /// How much was asked for.
        bytes: usize,
        /// Why.
        errno: Errno,
    },
    /// The device does not take them.
    Registration(VerbError),
}

impl Pages {
    fn map(bytes: usize, memory: Memory) -> Result<Self, Errno> {
        let (flags, unit) = match memory {
            Memory::Host => (MapFlags::PRIVATE, PAGE_BYTES),
            Memory::HugePages => (MapFlags::PRIVATE | MapFlags::HUGETLB, HUGE_PAGE_BYTES),
        };
        let bytes = bytes.checked_next_multiple_of(unit).ok_or(Errno::NOMEM)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) }?;
        NonNull::new(start).map(|start| Self { start, bytes }).ok_or(Errno::NOMEM)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it any more.
        if let Err(errno) = unsafe { munmap(self.start.as_ptr(), self.bytes) } {
            tracing::warn!("{} bytes could not be unmapped: {errno}", self.bytes);
        }
    }
}

impl Region {
    /// Maps and registers `bytes` zero bytes, rounded up to whole pages.
    ///
    /// # Errors
    /// [`NoRegion`].
    pub(super) fn new(pd: &Arc<ProtectionDomain>, bytes: usize, memory: Memory) -> Result<Self, NoRegion> {
        let pages = Pages::map(bytes, memory).map_err(|errno| NoRegion::Pages { bytes, errno })?;
        let allowed = access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ;
        let (symbols, name) = (pd.context().symbols(), pd.context().name());
        // SAFETY: the pages are unmapped after the registration is given back, and hold nothing but messages.
        let mr =
            unsafe { result::reg_mr(symbols, pd.as_ptr(), pages.start.as_ptr(), pages.bytes, allowed, name) }
                .map_err(NoRegion::Registration)?;
        // SAFETY: a registration that was just made; these are plain fields.
        let (lkey, rkey) = unsafe { ((*mr.as_ptr()).lkey, (*mr.as_ptr()).rkey) };
        Ok(Self { pd: Arc::clone(pd), mr, pages, lkey, rkey })
    }

    /// What the peer needs to reach it.
    pub(super) fn remote(&self) -> RemoteMemory {
        RemoteMemory { address: self.address(), rkey: self.rkey, bytes: self.pages.bytes as u64 }
    }

    /// A piece of it for a request.
    ///
    /// # Panics
    /// If it does not lie inside.
    pub(super) fn piece(&self, offset: usize, length: usize) -> Sge {
        self.within(offset, length);
        Sge { addr: self.address() + offset as u64, length: length as u32, lkey: self.lkey }
    }

    /// Copies bytes in.
    ///
    /// # Panics
    /// If they do not fit.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        let start = self.within(offset, bytes.len());
        // SAFETY: inside the pages; a device that writes there at the same time mixes bytes and nothing else.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// If there are not so many.
    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) {
        let start = self.within(offset, bytes.len());
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(start, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// One byte that the device may write, in a way that sees what it wrote last.
    ///
    /// # Panics
    /// If it does not lie inside.
    #[inline]
    pub(super) fn load_byte(&self, offset: usize) -> u8 {
        let at = self.within(offset, 1);
        // SAFETY: inside the pages, which live; a byte is always aligned.
        unsafe { AtomicU8::from_ptr(at) }.load(Ordering::Acquire)
    }

    /// Four bytes that the device may write.
    ///
    /// # Panics
    /// If they do not lie inside or are not aligned.
    #[inline]
    pub(super) fn load_u32(&self, offset: usize) -> u32 {
        let at = self.within(offset, 4).cast::<u32>();
        assert!(at.is_aligned(), "offset {offset} is not a multiple of 4");
        // SAFETY: inside the pages, which live, and aligned.
        unsafe { AtomicU32::from_ptr(at) }.load(Ordering::Acquire)
    }

    /// Stores one byte.
    ///
    /// # Panics
    /// If it does not lie inside.
    #[inline]
    pub(super) fn store_byte(&self, offset: usize, value: u8) {
        let at = self.within(offset, 1);
        // SAFETY: as for `load_byte`.
        unsafe { AtomicU8::from_ptr(at) }.store(value, Ordering::Release);
    }

    fn address(&self) -> u64 {
        self.pages.start.as_ptr() as u64
    }

    #[inline]
    fn within(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(
            offset.checked_add(length).is_some_and(|end| end <= self.pages.bytes),
            "{length} bytes at {offset} lie outside a region of {}",
            self.pages.bytes
        );
        self.pages.start.as_ptr().cast::<u8>().wrapping_add(offset)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let context = self.pd.context();
        // SAFETY: an endpoint drops its queue pairs first, so no request is under way.
        let freed = unsafe { result::dereg_mr(context.symbols(), self.mr, context.name()) };
        leak(freed);
    }
}

/// The smallest page of the processors that this runs on.
const PAGE_BYTES: usize = 4096;
/// The huge page that `MAP_HUGETLB` gives by default on these processors.
const HUGE_PAGE_BYTES: usize = 2 << 20;
