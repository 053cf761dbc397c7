//! Frames on a stream: what kind, how long, then a message in postcard. The one place that knows the encoding.
//!
//! ```text
//!  kind (1 byte) │ length of the body (4 bytes, big endian) │ body (postcard) │ end of stream
//! ```
//!
//! The length is checked against the kind's limit before a byte of the body is taken, and memory grows only with
//! bytes that arrived: an announced length costs nothing. Each stream direction carries exactly one frame.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A `Hello`.
    Hello,
    /// A `HelloReply`.
    HelloReply,
    /// A `Request`.
    Request,
    /// A `Response` without results.
    Response,
    /// A `Response` or an agent's `Request` with results: observations, records, an inventory.
    Batch,
}

impl FrameKind {
    /// The longest body, bytes.
    pub const fn limit(self) -> usize {
        match self {
            Self::Hello | Self::HelloReply => MAX_HELLO_BYTES,
            Self::Request | Self::Response => MAX_CONTROL_BYTES,
            Self::Batch => MAX_BATCH_BYTES,
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Hello => b'H',
            Self::HelloReply => b'W',
            Self::Request => b'Q',
            Self::Response => b'A',
            Self::Batch => b'B',
        }
    }
}

/// A message as bytes.
///
/// # Errors
/// [`WireError::Encode`] if a type cannot be written, such as a sequence of unknown length.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    postcard::to_stdvec(message).map_err(WireError::Encode)
}

/// A message out of exactly these bytes.
///
/// # Errors
/// [`WireError::Garbage`] if they are no such message, [`WireError::Trailing`] if bytes are left over.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (message, rest) = postcard::take_from_bytes(bytes).map_err(WireError::Garbage)?;
    match rest.len() {
        0 => Ok(message),
        bytes => Err(WireError::Trailing { bytes }),
    }
}

/// A whole frame, ready to be written.
///
/// # Errors
/// [`WireError::TooLong`] if the message exceeds the limit of its kind.
pub fn frame<T: Serialize>(kind: FrameKind, message: &T) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![kind.byte(), 0, 0, 0, 0];
    frame = postcard::to_extend(message, frame).map_err(WireError::Encode)?;
    let bytes = frame.len() - HEADER_BYTES;
    let length = check_length(kind, bytes)?;
    frame[1..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

/// Reads one frame of one of the `allowed` kinds and the end of the stream after it.
///
/// # Errors
/// [`WireError`]; see [`WireError::blame`] for whose fault it is.
pub async fn read<R, T>(stream: &mut R, allowed: &[FrameKind]) -> Result<T, WireError>
where
    R: AsyncRead + Unpin,
    T: DeserializeOwned,
{
    let mut header = [0; HEADER_BYTES];
    read_exactly(stream, &mut header).await?;
    let [byte, length @ ..] = header;
    let kind = *allowed.iter().find(|kind| kind.byte() == byte).ok_or(WireError::Kind { byte })?;
    let length = u32::from_be_bytes(length) as usize;
    check_length(kind, length)?;
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body).await.map_err(WireError::Stream)?;
    if body.len() < length {
        return Err(WireError::Truncated);
    }
    match stream.read(&mut [0]).await.map_err(WireError::Stream)? {
        0 => decode(&body),
        bytes => Err(WireError::Trailing { bytes }),
    }
}

/// Why a frame was not read or written.
#[derive(Debug, Error)]
pub enum WireError {
    /// The message cannot be written in this encoding.
    #[error("the message cannot be encoded")]
    Encode(#[source] postcard::Error),
    /// A frame of a kind that does not belong here.
    #[error("a frame of kind {byte:#04x} where another one belongs")]
    Kind {
        /// The kind's byte.
        byte: u8,
    },
    /// A body longer than its kind may be.
    #[error("a message of {bytes} bytes where at most {limit} are allowed")]
    TooLong {
        /// Its announced or real length.
        bytes: usize,
        /// The limit of its kind.
        limit: usize,
    },
    /// The body is no message of the expected type.
    #[error("a message that cannot be read")]
    Garbage(#[source] postcard::Error),
    /// Bytes after the message.
    #[error("a message with {bytes} or more bytes too many")]
    Trailing {
        /// How many were seen.
        bytes: usize,
    },
    /// The stream ended before the frame did.
    #[error("the message ends early")]
    Truncated,
    /// The stream broke.
    #[error("the stream broke: {0}")]
    Stream(#[source] io::Error),
}

/// Whose fault an unread frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The sender broke the rules: no sound agent of this build does that.
    Sender,
    /// The network, or a sender that gave up.
    Circumstances,
}

impl WireError {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Kind { .. } | Self::TooLong { .. } | Self::Garbage(_) | Self::Trailing { .. } => {
                Blame::Sender
            }
            Self::Encode(_) | Self::Truncated | Self::Stream(_) => Blame::Circumstances,
        }
    }
}

async fn read_exactly<R: AsyncRead + Unpin>(stream: &mut R, bytes: &mut [u8]) -> Result<(), WireError> {
    match stream.read_exact(bytes).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(WireError::Truncated),
        Err(error) => Err(WireError::Stream(error)),
    }
}

fn check_length(kind: FrameKind, bytes: usize) -> Result<u32, WireError> {
    match u32::try_from(bytes) {
        Ok(length) if bytes <= kind.limit() => Ok(length),
        Ok(_) | Err(_) => Err(WireError::TooLong { bytes, limit: kind.limit() }),
    }
}

/// Kind and length.
const HEADER_BYTES: usize = 5;

/// A hello has three hashes and a name: below 200 bytes. What a peer may send before it is judged is kept small.
const MAX_HELLO_BYTES: usize = 4 << 10;

/// A prepare for one agent has one entry a cell, and a round has at most one cell a rail and neighbour: 1 MiB holds
/// thousands of them.
const MAX_CONTROL_BYTES: usize = 1 << 20;

/// Observations carry histograms (2 KiB each as bytes): 16 MiB holds the cells of a round of one agent many times.
const MAX_BATCH_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use bench_core::message::{Request, Response};
    use bench_core::time::Mono;

    use super::*;

    async fn read_request(bytes: &[u8]) -> Result<Request, WireError> {
        read(&mut &bytes[..], &[FrameKind::Request]).await
    }

    #[tokio::test]
    async fn a_frame_reads_back() {
        let frame = frame(FrameKind::Request, &Request::Status).unwrap();
        assert_eq!(read_request(&frame).await.unwrap(), Request::Status);
        let clock = Response::Clock { now: Mono::from_nanos(u64::MAX) };
        assert_eq!(decode::<Response>(&encode(&clock).unwrap()).unwrap(), clock);
    }

    #[tokio::test]
    async fn every_damage_has_its_own_error() {
        let good = frame(FrameKind::Request, &Request::Status).unwrap();
        let longer = [&good[..], b"x"].concat();
        let mut inner = good.clone();
        inner[4] += 1;
        inner.push(0);
        let garbage = [b'Q', 0, 0, 0, 2, 0xff, 0xff];
        let cut = &good[..good.len() - 1];
        assert!(matches!(read_request(&longer).await, Err(WireError::Trailing { .. })));
        assert!(matches!(read_request(&inner).await, Err(WireError::Trailing { .. })));
        assert!(matches!(read_request(&garbage).await, Err(WireError::Garbage(_))));
        assert!(matches!(read_request(cut).await, Err(WireError::Truncated)));
        assert!(matches!(read_request(b"").await, Err(WireError::Truncated)));
        assert!(matches!(read_request(b"GET / HTTP/1.1\r\n").await, Err(WireError::Kind { byte: b'G' })));
    }

    // The reader that never ends proves that nothing of an oversize body is waited for.
    #[tokio::test]
    async fn an_announced_four_gibibytes_is_refused_before_any_of_it_is_read() {
        let header = [b'Q', 0xff, 0xff, 0xff, 0xff];
        let mut endless = (&header[..]).chain(tokio::io::repeat(0));
        let error = read::<_, Request>(&mut endless, &[FrameKind::Request]).await.unwrap_err();
        assert!(
            matches!(error, WireError::TooLong { bytes: 0xffff_ffff, limit } if limit == MAX_CONTROL_BYTES)
        );
        assert_eq!(error.blame(), Blame::Sender);
    }

    #[test]
    fn a_message_above_the_limit_of_its_kind_is_not_sent() {
        let reason = "x".repeat(MAX_CONTROL_BYTES);
        let message = Response::Invalid { reason };
        assert!(matches!(frame(FrameKind::Response, &message), Err(WireError::TooLong { .. })));
        assert!(frame(FrameKind::Batch, &message).is_ok());
    }
}
