//! The data that is sent, and the comparison of what arrived.
//!
//! With [`Verify::Sampled`] a stream repeats a pseudo-random pattern whose period is no power of two. A byte depends on
//! its position in the stream, so a flipped byte is seen, and so is a block that is lost, doubled or swapped. The whole
//! period lies in memory: sending and comparing cost what they cost without it, a copy and a `memcmp`.

use bench_core::fabric::Rng;
use bench_core::measure::DataCheck;
use bench_core::plan::Verify;

use super::Token;
use super::buffer::PageBuffer;
use super::sampler::Stage;

/// What a stream carries.
#[derive(Debug)]
pub(in crate::data) struct Payload {
    /// One period and one block more, so that a block that begins anywhere in the period is one slice.
    bytes: PageBuffer,
    block: usize,
    repeat: Repeat,
}

#[derive(Clone, Copy, Debug)]
enum Repeat {
    /// Every block is the first: nobody compares.
    Block,
    /// After [`PERIOD`] bytes.
    Period,
}

impl Payload {
    /// The data of stream `index` in blocks of `block` bytes. Both ends build the same from the token.
    pub(in crate::data) fn new(token: &Token, index: u16, block: usize, verify: Verify) -> Self {
        let (head, tail) = token.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let mut rng = Rng::of(&[word(head), word(tail), index.into()]);
        let (period, length, repeat) = match verify {
            Verify::Off => (block, block, Repeat::Block),
            Verify::Sampled => (PERIOD, PERIOD + block, Repeat::Period),
        };
        let mut bytes = Vec::with_capacity(length + size_of::<u64>());
        while bytes.len() < period {
            bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
        }
        bytes.truncate(period);
        while bytes.len() < length {
            let missing = length - bytes.len();
            bytes.extend_from_within(..missing.min(period));
        }
        Self { bytes: PageBuffer::from(bytes.as_slice()), block, repeat }
    }

    /// The block that begins at this position of the stream.
    #[inline]
    pub(in crate::data) fn block(&self, position: u64) -> &[u8] {
        let start = self.start(position);
        &self.bytes[start..start + self.block]
    }

    fn start(&self, position: u64) -> usize {
        match self.repeat {
            Repeat::Block => 0,
            Repeat::Period => (position % PERIOD as u64) as usize,
        }
    }
}

/// Compares what arrives: all of it outside the window, one receive of [`SAMPLE_EVERY`] inside.
#[derive(Debug)]
pub(in crate::data) struct Checker {
    payload: Option<Payload>,
    position: u64,
    receives: u64,
    compared: u64,
    different: Option<DataCheck>,
}

impl Checker {
    /// A checker that compares with `payload`, if it is asked to.
    pub(in crate::data) fn new(payload: Payload, verify: Verify) -> Self {
        Self {
            payload: match verify {
                Verify::Off => None,
                Verify::Sampled => Some(payload),
            },
            position: 0,
            receives: 0,
            compared: 0,
            different: None,
        }
    }

    /// Takes the next bytes of the stream: at most one block.
    #[inline]
    pub(in crate::data) fn take(&mut self, data: &[u8], stage: Stage) {
        if let Some(payload) = &self.payload {
            self.receives += 1;
            let wanted = match stage {
                Stage::Before | Stage::After => true,
                Stage::Inside => self.receives.is_multiple_of(SAMPLE_EVERY),
            };
            if wanted && self.different.is_none() {
                let start = payload.start(self.position);
                let expected = &payload.bytes[start..start + data.len()];
                self.different = difference(expected, data, self.position);
                self.compared += data.len() as u64;
            }
        }
        self.position += data.len() as u64;
    }

    /// The result over the stream's life.
    pub(in crate::data) fn result(&self) -> DataCheck {
        match (&self.payload, self.different) {
            (None, _) => DataCheck::Unchecked,
            (Some(_), Some(different)) => different,
            (Some(_), None) => DataCheck::Equal { bytes: self.compared },
        }
    }
}

/// One result for a cell: the first difference, else the sum of what was compared.
pub(in crate::data) fn combined(checks: impl IntoIterator<Item = DataCheck>) -> DataCheck {
    checks
        .into_iter()
        .reduce(|all, next| match (all, next) {
            (DataCheck::Different { .. }, _) => all,
            (_, DataCheck::Different { .. }) => next,
            (DataCheck::Equal { bytes: a }, DataCheck::Equal { bytes: b }) => {
                DataCheck::Equal { bytes: a + b }
            }
            (DataCheck::Unchecked, _) | (_, DataCheck::Unchecked) => DataCheck::Unchecked,
        })
        .unwrap_or(DataCheck::Unchecked)
}

/// The first byte in which both differ; `position` is that of the first byte in its stream.
pub(in crate::data) fn difference(expected: &[u8], got: &[u8], position: u64) -> Option<DataCheck> {
    if expected == got {
        return None;
    }
    let at = expected.iter().zip(got).position(|(e, g)| e != g)?;
    Some(DataCheck::Different { offset: position + at as u64, expected: expected[at], got: got[at] })
}

/// Bytes after which the pattern repeats: 2^19 + 21, a prime. It shares no factor with a block size, so a stream that
/// lost or doubled blocks does not look right again before 2^19 of them; and it still fits a core's level 2 cache.
const PERIOD: usize = 524_309;

/// Inside the window one receive of this many is compared: a `memcmp` costs about a third of the copy that the
/// receive made, so this costs about 2 % of the receiver's time.
pub(in crate::data) const SAMPLE_EVERY: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = [7; 16];
    const BLOCK: usize = 1 << 16;

    fn payload(index: u16) -> Payload {
        Payload::new(&TOKEN, index, BLOCK, Verify::Sampled)
    }

    fn check(blocks: &[Vec<u8>]) -> DataCheck {
        let mut checker = Checker::new(payload(0), Verify::Sampled);
        blocks.iter().for_each(|block| checker.take(block, Stage::Before));
        checker.result()
    }

    fn stream(blocks: u64) -> Vec<Vec<u8>> {
        let sender = payload(0);
        (0..blocks).map(|i| sender.block(i * BLOCK as u64).to_vec()).collect()
    }

    #[test]
    fn what_was_sent_compares_equal_over_many_periods() {
        let bytes = 40 * BLOCK as u64;
        assert!(bytes > 4 * PERIOD as u64);
        assert_eq!(check(&stream(40)), DataCheck::Equal { bytes });
    }

    #[test]
    fn a_flipped_byte_is_named_with_its_position() {
        let mut blocks = stream(20);
        let expected = blocks[11][123];
        blocks[11][123] ^= 0x10;
        assert_eq!(
            check(&blocks),
            DataCheck::Different { offset: 11 * BLOCK as u64 + 123, expected, got: expected ^ 0x10 }
        );
    }

    #[test]
    fn lost_doubled_and_swapped_blocks_and_foreign_streams_are_seen() {
        let mut lost = stream(20);
        lost.remove(8);
        let mut doubled = stream(20);
        doubled.insert(8, doubled[8].clone());
        let mut swapped = stream(20);
        swapped.swap(3, 11);
        let foreign = vec![payload(1).block(0).to_vec()];
        for wrong in [lost, doubled, swapped, foreign] {
            assert!(matches!(check(&wrong), DataCheck::Different { .. }));
        }
    }

    #[test]
    fn inside_the_window_only_samples_are_compared() {
        let sender = payload(0);
        let mut checker = Checker::new(payload(0), Verify::Sampled);
        for i in 0..SAMPLE_EVERY * 3 {
            checker.take(sender.block(i * BLOCK as u64), Stage::Inside);
        }
        assert_eq!(checker.result(), DataCheck::Equal { bytes: 3 * BLOCK as u64 });
    }

    #[test]
    fn one_difference_outweighs_every_equal_stream() {
        let different = DataCheck::Different { offset: 1, expected: 2, got: 3 };
        let equal = DataCheck::Equal { bytes: 10 };
        assert_eq!(combined([equal, different, equal]), different);
        assert_eq!(combined([equal, equal]), DataCheck::Equal { bytes: 20 });
        assert_eq!(combined([]), DataCheck::Unchecked);
    }

    #[test]
    fn a_block_longer_than_the_period_is_filled() {
        let big = Payload::new(&TOKEN, 0, 3 * PERIOD, Verify::Sampled);
        let block = big.block(5);
        assert_eq!(block.len(), 3 * PERIOD);
        assert_eq!(block[0], block[PERIOD]);
    }
}
