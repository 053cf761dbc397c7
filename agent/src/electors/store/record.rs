//! Checksummed records: what a torn write or a flipped bit leaves behind is never taken for one.
//!
//! ```text
//!  length of the body (4) │ CRC-32C of the length (4) │ CRC-32C of the body (4) │ body (postcard)
//! ```
//! The length has a checksum of its own, so that a damaged one is not mistaken for a record that was cut off.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A message as one record.
pub(crate) fn seal<T: Serialize>(message: &T) -> Vec<u8> {
    let body = postcard::to_stdvec(message).expect("what the electors store has an encoding");
    let length = u32::try_from(body.len()).expect("a record is far below 4 GiB").to_le_bytes();
    let mut record = Vec::with_capacity(HEADER_BYTES + body.len());
    record.extend_from_slice(&length);
    record.extend_from_slice(&crc32c::crc32c(&length).to_le_bytes());
    record.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
    record.extend_from_slice(&body);
    record
}

/// The message of a file that holds exactly one record.
///
/// # Errors
/// [`Damage`] for anything else.
pub(crate) fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Damage> {
    match next(bytes)? {
        Next::Record { message, rest: [] } => Ok(message),
        Next::Record { rest, .. } => Err(Damage::Surplus { bytes: rest.len() }),
        Next::End | Next::Torn { .. } => Err(Damage::Short),
    }
}

/// What is at the front of a sequence of records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a, T> {
    /// A record, and what follows it.
    Record {
        /// Its message.
        message: T,
        /// The bytes behind it.
        rest: &'a [u8],
    },
    /// Nothing.
    End,
    /// The front of a record: its append never returned.
    Torn {
        /// How much of it is there.
        bytes: usize,
    },
}

/// The record at the front of `bytes`.
///
/// # Errors
/// [`Damage`] if there is something that no append leaves behind.
pub(crate) fn next<T: DeserializeOwned>(bytes: &[u8]) -> Result<Next<'_, T>, Damage> {
    if bytes.is_empty() {
        return Ok(Next::End);
    }
    let torn = Next::Torn { bytes: bytes.len() };
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(torn);
    };
    let [length, length_sum, body_sum] = words(header);
    if crc32c::crc32c(&length.to_le_bytes()) != length_sum {
        return Err(Damage::Length);
    }
    let Some((body, rest)) = rest.split_at_checked(length as usize) else {
        return Ok(torn);
    };
    if crc32c::crc32c(body) != body_sum {
        return Err(Damage::Checksum);
    }
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(Next::Record { message, rest }),
        Ok((_, surplus)) => Err(Damage::Surplus { bytes: surplus.len() }),
        Err(_) => Err(Damage::Unreadable),
    }
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Damage {
    /// The file is shorter than its record.
    #[error("it ends early")]
    Short,
    /// The length's checksum does not fit.
    #[error("a length has another checksum")]
    Length,
    /// The body's checksum does not fit.
    #[error("a record has another checksum")]
    Checksum,
    /// The checksums fit, the message does not.
    #[error("a record is no message of this build")]
    Unreadable,
    /// There is more than there should be.
    #[error("{bytes} bytes too many")]
    Surplus {
        /// How many.
        bytes: usize,
    },
    /// A file that belongs to the others is not there.
    #[error("it is missing")]
    Missing,
    /// The records are sound and do not follow each other.
    #[error("record {index} does not follow the one before it")]
    Gap {
        /// The log index that does not fit.
        index: u64,
    },
}

fn words(header: &[u8; HEADER_BYTES]) -> [u32; 3] {
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    [word(0), word(4), word(8)]
}

/// Length, its checksum, the body's checksum.
pub(crate) const HEADER_BYTES: usize = 12;
