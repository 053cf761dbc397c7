//! An opened device.

use std::ptr::NonNull;

use super::error::leak;
use super::result;
use super::sys::{self, Symbols};

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

impl Context {
    /// Takes over a context that was just opened.
    pub(super) fn new(symbols: &'static Symbols, context: NonNull<sys::Context>, name: &str) -> Self {
        Self { symbols, context, name: name.to_owned() }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: whatever was made from it held an `Arc`, so nothing is left.
        let closed = unsafe { result::close_device(self.symbols, self.context, &self.name) };
        leak(closed);
    }
}
