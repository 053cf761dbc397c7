//! The journal of observations: one record's bytes, and the union of many journals.
//!
//! Each end of a cell appends what it measured before it reports it, so a killed coordinator, network or client
//! loses nothing. Files, syncing and rotation are the agent's; here are only [`encode`], [`read`] and [`merge()`].
//!
//! ```text
//!  Observation ──encode──▶ | length u32 | crc32c u32 | postcard body |  ──read──▶ Observation ──merge──▶ Merged
//! ```

mod codec;
mod merge;

#[cfg(test)]
mod tests;

pub use codec::{DamageReason, DamagedRecord, JournalRead, MAX_RECORD_BYTES, encode, read};
pub use merge::{AttemptEnds, AttemptKey, Merged, MergedCell, Standing, merge};
