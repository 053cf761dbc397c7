//! A completion queue.

use std::ptr::NonNull;
use std::sync::Arc;

use super::context::Context;
use super::error::{VerbError, leak};
use super::result;
use super::sys::{Cq, Wc};

/// A completion queue. Queue pairs hold an `Arc` of it.
pub(super) struct CompletionQueue {
    context: Arc<Context>,
    cq: NonNull<Cq>,
}

// SAFETY: libibverbs lets any thread destroy a queue and poll it, since drivers lock it.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// Takes over a queue that was just made.
    pub(super) fn new(context: Arc<Context>, cq: NonNull<Cq>) -> Self {
        Self { context, cq }
    }

    /// For the verb that makes a queue pair.
    pub(super) fn as_ptr(&self) -> NonNull<Cq> {
        self.cq
    }

    /// Takes completions, as many as there are and fit. libibverbs locks the queue.
    ///
    /// # Errors
    /// [`VerbError`] where the queue is broken, as after an overrun.
    #[inline]
    pub(super) fn poll<'a>(&self, room: &'a mut [Wc]) -> Result<&'a [Wc], VerbError> {
        // SAFETY: the queue lives as long as this value; drivers lock it.
        let count = unsafe { result::poll_cq(self.cq, room, self.context.name()) }?;
        Ok(&room[..count.min(room.len())])
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: queue pairs hold an `Arc`, so none uses it any more.
        let freed = unsafe { result::destroy_cq(self.context.symbols(), self.cq, self.context.name()) };
        leak(freed);
    }
}
