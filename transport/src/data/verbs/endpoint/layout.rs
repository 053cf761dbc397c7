//! Where what lies in the memory of an end: the same at both ends, so that each knows where the other's messages are.
//!
//! ```text
//!  control page | message out, lane 0 | 1 | … | message in, lane 0 | 1 | …
//! ```

/// Places in an end's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of a message.
    message: usize,
    /// Queue pairs.
    lanes: usize,
}

impl Layout {
    /// For messages of this size on so many queue pairs.
    pub(super) fn new(message: usize, lanes: usize) -> Self {
        Self { message: message.max(1), lanes }
    }

    /// Bytes of a message.
    pub(super) fn message(&self) -> usize {
        self.message
    }

    /// Bytes in all; `None` where they are more than an address space has.
    pub(super) fn bytes(&self) -> Option<usize> {
        self.stride().checked_mul(self.lanes)?.checked_mul(2)?.checked_add(CONTROL_BYTES)
    }

    /// Where the messages lie that this end sends, or lets its peer read.
    pub(super) fn out(&self, lane: usize) -> usize {
        CONTROL_BYTES + lane * self.stride()
    }

    /// Where arriving messages lie.
    pub(super) fn incoming(&self, lane: usize) -> usize {
        CONTROL_BYTES + (self.lanes + lane) * self.stride()
    }

    /// Where the peer writes how many receives it has posted anew, 4 bytes.
    pub(super) fn credit(&self, lane: usize) -> usize {
        lane * CREDIT_BYTES
    }

    /// Where this end keeps that number for its peer.
    pub(super) fn own_credit(&self, lane: usize) -> usize {
        CONTROL_BYTES / 2 + lane * CREDIT_BYTES
    }

    /// Messages of a page and more begin on a page, smaller ones on a cache line, as those of perftest.
    fn stride(&self) -> usize {
        let unit = if self.message >= PAGE_BYTES { PAGE_BYTES } else { CACHE_LINE_BYTES };
        self.message.checked_next_multiple_of(unit).unwrap_or(usize::MAX)
    }
}

/// The first page: two tables of as many credits as there can be queue pairs.
const CONTROL_BYTES: usize = 2 * 256 * CREDIT_BYTES;
const CREDIT_BYTES: usize = 8;
const PAGE_BYTES: usize = 4096;
const CACHE_LINE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_all_of_it_is_inside() {
        for (message, lanes) in [(1, 1), (64, 256), (4095, 3), (4096, 2), (65_537, 4)] {
            let layout = Layout::new(message, lanes);
            let mut pieces: Vec<(usize, usize)> = (0..lanes)
                .flat_map(|lane| {
                    [
                        (layout.credit(lane), 4),
                        (layout.own_credit(lane), 4),
                        (layout.out(lane), message),
                        (layout.incoming(lane), message),
                    ]
                })
                .collect();
            pieces.sort_unstable();
            for pair in pieces.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{message} bytes, {lanes} lanes: {pair:?}");
            }
            let end = pieces.last().map(|(at, length)| at + length);
            assert!(end <= layout.bytes(), "{message} bytes, {lanes} lanes");
        }
        assert_eq!(Layout::new(usize::MAX / 2, 4).bytes(), None);
    }
}
