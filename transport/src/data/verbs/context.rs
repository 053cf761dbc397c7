//! An opened device, and what can be asked of it.

use std::ptr::NonNull;
use std::sync::Arc;

use bench_core::verbs::{Gid, GidKind, GidRow, PkeyRow};

use super::completion_queue::CompletionQueue;
use super::error::{VerbError, leak};
use super::protection_domain::ProtectionDomain;
use super::result;
use super::sys::{self, DeviceAttr, PortAttr, Symbols};

/// An opened device. Everything that is made from it holds an `Arc` of it, so it is closed last.
pub(super) struct Context {
    symbols: &'static Symbols,
    context: NonNull<sys::Context>,
    name: String,
}

// SAFETY: libibverbs locks what threads share of a context; it may be used and closed by any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// A row of the GID table as the device has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GidTableRow {
    /// The row.
    pub(super) row: GidRow,
    /// Index of its network device in this network namespace, where the kernel tells of one.
    pub(super) netdev: Option<u32>,
}

impl Context {
    /// Takes over a context that was just opened.
    pub(super) fn new(symbols: &'static Symbols, context: NonNull<sys::Context>, name: &str) -> Self {
        Self { symbols, context, name: name.to_owned() }
    }

    /// The device's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The library that opened it.
    pub(super) fn symbols(&self) -> &'static Symbols {
        self.symbols
    }

    /// The device's limits.
    ///
    /// # Errors
    /// [`VerbError`].
    pub(super) fn limits(&self) -> Result<DeviceAttr, VerbError> {
        // SAFETY: open as long as this value lives.
        unsafe { result::query_device(self.symbols, self.context, &self.name) }
    }

    /// A port's state.
    ///
    /// # Errors
    /// [`VerbError`], such as EINVAL for a port that the device does not have.
    pub(super) fn port(&self, port: u8) -> Result<PortAttr, VerbError> {
        // SAFETY: as above.
        unsafe { result::query_port(self.symbols, self.context, port, &self.name) }
    }

    /// A row of a port's GID table; `None` for an empty one.
    ///
    /// # Errors
    /// [`VerbError`] for an index outside the table.
    pub(super) fn gid(
        &self,
        port: u8,
        index: u8,
        otherwise: GidKind,
    ) -> Result<Option<GidTableRow>, VerbError> {
        // SAFETY: as above.
        let entry =
            unsafe { result::query_gid_entry(self.symbols, self.context, port, index.into(), &self.name) };
        // An empty row is ENODATA there, and a kernel without that query (before 5.10) fails in other ways.
        if let Ok(Some(entry)) = entry {
            let gid = Gid(entry.gid.raw);
            let kind = match entry.gid_type {
                0 => GidKind::InfiniBand,
                1 => GidKind::RoceV1,
                _ => GidKind::RoceV2,
            };
            let netdev = Some(entry.ndev_ifindex).filter(|index| *index != 0);
            return Ok((!gid.is_zero()).then_some(GidTableRow { row: GidRow { index, gid, kind }, netdev }));
        }
        // SAFETY: as above.
        let gid = unsafe { result::query_gid(self.symbols, self.context, port, index.into(), &self.name) }?;
        let gid = Gid(gid.raw);
        let row = GidRow { index, gid, kind: otherwise };
        Ok((!gid.is_zero()).then_some(GidTableRow { row, netdev: None }))
    }

    /// The used rows of a port's P_Key table.
    ///
    /// # Errors
    /// [`VerbError`].
    pub(super) fn pkeys(&self, port: u8, rows: u16) -> Result<Vec<PkeyRow>, VerbError> {
        let mut pkeys = Vec::new();
        for index in 0..rows {
            // SAFETY: as above.
            let value = unsafe { result::query_pkey(self.symbols, self.context, port, index, &self.name) }?;
            if value & 0x7fff != 0 {
                pkeys.push(PkeyRow { index, value });
            }
        }
        Ok(pkeys)
    }

    /// Makes a protection domain.
    ///
    /// # Errors
    /// [`VerbError`].
    pub(super) fn protection_domain(self: &Arc<Self>) -> Result<Arc<ProtectionDomain>, VerbError> {
        // SAFETY: the domain holds this context.
        let pd = unsafe { result::alloc_pd(self.symbols, self.context, &self.name) }?;
        Ok(Arc::new(ProtectionDomain::new(Arc::clone(self), pd)))
    }

    /// Makes a completion queue with room for at least this many.
    ///
    /// # Errors
    /// [`VerbError`], such as ENOMEM where the limit of locked memory is low.
    pub(super) fn completion_queue(
        self: &Arc<Self>,
        entries: u32,
    ) -> Result<Arc<CompletionQueue>, VerbError> {
        // SAFETY: the queue holds this context.
        let cq = unsafe { result::create_cq(self.symbols, self.context, entries, &self.name) }?;
        Ok(Arc::new(CompletionQueue::new(Arc::clone(self), cq)))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: whatever was made from it held an `Arc`, so nothing is left.
        let closed = unsafe { result::close_device(self.symbols, self.context, &self.name) };
        leak(closed);
    }
}
