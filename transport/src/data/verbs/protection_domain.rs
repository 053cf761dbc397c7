//! A protection domain: what memory and queue pairs must share to be used together.

use std::ptr::NonNull;
use std::sync::Arc;

use super::context::Context;
use super::error::leak;
use super::result;
use super::sys::Pd;

/// A protection domain. Memory regions and queue pairs hold an `Arc` of it.
pub(super) struct ProtectionDomain {
    context: Arc<Context>,
    pd: NonNull<Pd>,
}

// SAFETY: libibverbs lets any thread use and free a domain; it is never changed.
unsafe impl Send for ProtectionDomain {}
// SAFETY: as above.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Takes over a domain that was just made.
    pub(super) fn new(context: Arc<Context>, pd: NonNull<Pd>) -> Self {
        Self { context, pd }
    }

    /// The device.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// For the verbs that make something in it.
    pub(super) fn as_ptr(&self) -> NonNull<Pd> {
        self.pd
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: whatever was made in it held an `Arc`, so nothing is left.
        let freed = unsafe { result::dealloc_pd(self.context.symbols(), self.pd, self.context.name()) };
        leak(freed);
    }
}
