//! The bytes of a record: `length: u32 le`, `crc32c: u32 le` over length and body, postcard body.
//!
//! A kill tears at most the last record, which [`read`] reports as [`JournalRead::torn_tail`]. Anything else that
//! does not check is a [`DamagedRecord`]; reading goes on at the next record that does.

use crate::record::Observation;

/// What a journal held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournalRead {
    /// Every sound record, in the order of the file.
    pub observations: Vec<Observation>,
    /// Stretches that were skipped because they do not check.
    pub damaged: Vec<DamagedRecord>,
    /// Offset in bytes of a last record that is not whole: what a kill while appending leaves.
    pub torn_tail: Option<usize>,
}

/// A stretch of a journal that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRecord {
    /// Where it begins, in bytes.
    pub offset: usize,
    /// How many bytes were skipped.
    pub skipped: usize,
    /// What was wrong with the first record of it.
    pub reason: DamageReason,
}

/// Why a record does not check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageReason {
    /// The length is zero, above [`MAX_RECORD_BYTES`] or beyond the end.
    Length {
        /// The length as written.
        bytes: u32,
    },
    /// Length and body do not have the checksum.
    Checksum,
    /// The checksum is right but the body is no observation of this build.
    Body,
}

/// The bytes of one record.
pub fn encode(observation: &Observation) -> Vec<u8> {
    let body = postcard::to_stdvec(observation).expect("every part of an observation has a known length");
    let length = u32::try_from(body.len())
        .expect("marks, histogram and evidence of an observation are far below 4 GiB")
        .to_le_bytes();
    let checksum = checksum(length, &body).to_le_bytes();
    [&length[..], &checksum[..], &body[..]].concat()
}

/// Reads every sound record of a journal and says where there is none.
pub fn read(bytes: &[u8]) -> JournalRead {
    let mut journal = JournalRead::default();
    let mut budget = RESYNC_BUDGET_BYTES;
    let mut offset = 0;
    while offset < bytes.len() {
        match record(bytes, offset) {
            Ok((observation, next)) => {
                journal.observations.push(observation);
                offset = next;
            }
            Err(fault) => match resume(bytes, offset, &fault, &mut budget) {
                Some(next) => {
                    journal.damaged.push(DamagedRecord {
                        offset,
                        skipped: next - offset,
                        reason: fault.reason,
                    });
                    offset = next;
                }
                None => {
                    journal.torn_tail = Some(offset);
                    break;
                }
            },
        }
    }
    journal
}

/// What is wrong at an offset, and where the record ends if its length can be believed.
struct Fault {
    reason: DamageReason,
    end: Option<usize>,
}

fn record(bytes: &[u8], offset: usize) -> Result<(Observation, usize), Fault> {
    let (body, end) = checked_body(bytes, offset)?;
    match postcard::take_from_bytes::<Observation>(body) {
        Ok((observation, [])) => Ok((observation, end)),
        Ok(_) | Err(_) => Err(Fault { reason: DamageReason::Body, end: Some(end) }),
    }
}

fn checked_body(bytes: &[u8], offset: usize) -> Result<(&[u8], usize), Fault> {
    let rest = &bytes[offset..];
    let unbelievable = |bytes| Fault { reason: DamageReason::Length { bytes }, end: None };
    let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
        return Err(unbelievable(0));
    };
    let [l0, l1, l2, l3, c0, c1, c2, c3] = *header;
    let length = [l0, l1, l2, l3];
    let count = u32::from_le_bytes(length);
    if count == 0 || count > MAX_RECORD_BYTES || count as usize > rest.len() {
        return Err(unbelievable(count));
    }
    let body = &rest[..count as usize];
    let end = offset + HEADER_BYTES + body.len();
    if checksum(length, body) == u32::from_le_bytes([c0, c1, c2, c3]) {
        Ok((body, end))
    } else {
        Err(Fault { reason: DamageReason::Checksum, end: Some(end) })
    }
}

/// Where reading goes on after a fault: at the next sound record, else behind this one if its length fits. `None` if
/// nothing sound follows a length that cannot be true: a torn tail.
///
/// The length alone is not followed, because a damaged one may lead to a later record and pass over a sound one.
fn resume(bytes: &[u8], offset: usize, fault: &Fault, budget: &mut usize) -> Option<usize> {
    (offset + 1..bytes.len())
        .take_while(|at| spend(bytes, *at, budget))
        .find(|at| checked_body(bytes, *at).is_ok())
        .or(fault.end)
}

/// Takes the cost of checking at `at` from the budget; false once it is used up.
fn spend(bytes: &[u8], at: usize, budget: &mut usize) -> bool {
    let length = bytes[at..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    let checked = length <= MAX_RECORD_BYTES as usize && length <= bytes.len() - at;
    *budget = budget.saturating_sub(if checked { length } else { 0 } + 1);
    *budget > 0
}

fn checksum(length: [u8; 4], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length), body)
}

/// Longest body that is believed, bytes: far above the 300 KiB of a full histogram, and the limit of a result batch
/// on the wire (DESIGN section 4).
pub const MAX_RECORD_BYTES: u32 = 16 << 20;

/// Length and checksum, bytes.
const HEADER_BYTES: usize = 8;

/// Bytes that are checksummed at most while looking for the next sound record: keeps a file of noise from taking
/// quadratic time. 1 GiB takes about a tenth of a second with the processor's crc32 instruction.
const RESYNC_BUDGET_BYTES: usize = 1 << 30;
