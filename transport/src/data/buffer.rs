//! Memory that the kernel copies from and to: it begins on a page, as that of every tool does whose figures are compared.
//!
//! A vector of a megabyte begins 16 bytes after a page, where the allocator keeps its header, and a copy to such an
//! address is slower (docs/benchmarks.md has the pairs).

use std::ops::{Deref, DerefMut};

/// Bytes that begin on a page.
#[derive(Debug)]
pub(in crate::data) struct PageBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl PageBuffer {
    /// `length` zero bytes.
    pub(in crate::data) fn zeroed(length: usize) -> Self {
        let memory = vec![0; length + PAGE_BYTES];
        // `align_offset` may give up by its contract; then the bytes begin where they begin.
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        Self { start: if start <= PAGE_BYTES { start } else { 0 }, memory, length }
    }
}

impl From<&[u8]> for PageBuffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl DerefMut for PageBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// The smallest page of the processors that this runs on.
const PAGE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_on_a_page_and_holds_what_it_was_made_from() {
        for length in [1, 64, 4096, 131_072, 1 << 20] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let buffer = PageBuffer::from(bytes.as_slice());
            assert_eq!(buffer.as_ptr() as usize % PAGE_BYTES, 0, "{length}");
            assert_eq!(*buffer, *bytes);
        }
    }
}
