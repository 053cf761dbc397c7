//! The framing of the pipe between an agent and its worker: a length (u32, little-endian), then a postcard body.
//!
//! The worker's side is synchronous, the agent's asynchronous; both refuse a frame above [`MAX_FRAME`] before they
//! allocate anything for it.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest body in bytes. The largest message, a finished cell with its histogram (216 KiB of counts before
/// encoding) or 256 marks, fits several times.
pub const MAX_FRAME: usize = 1 << 20;

/// Why a frame could not be read or written.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The length is above [`MAX_FRAME`]: a defect, or something other than frames was written to the pipe.
    #[error("a frame of {bytes} bytes, the limit is {MAX_FRAME}")]
    TooLong {
        /// The length that was announced.
        bytes: usize,
    },
    /// The pipe ended inside a frame.
    #[error("the pipe ended inside a frame")]
    Truncated,
    /// The body is not a message, or has bytes after it.
    #[error("a frame of {bytes} bytes that is no message")]
    Garbage {
        /// Length of the body.
        bytes: usize,
        /// What the decoder said; `None` if bytes were left over.
        #[source]
        source: Option<postcard::Error>,
    },
    /// The operating system refused.
    #[error("the pipe broke")]
    Io(#[from] io::Error),
}

/// A message as one frame, length included.
///
/// # Errors
/// [`FrameError::TooLong`] if it does not fit a frame.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, vec![0; LENGTH_BYTES])
        .map_err(|source| FrameError::Garbage { bytes: 0, source: Some(source) })?;
    let bytes = frame.len() - LENGTH_BYTES;
    if bytes > MAX_FRAME {
        return Err(FrameError::TooLong { bytes });
    }
    let length = u32::try_from(bytes).expect("a frame's limit fits 32 bits");
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Reads one message; `None` if the pipe ended between two frames.
///
/// # Errors
/// [`FrameError`] if what arrived is no frame. The pipe cannot be used after that.
pub fn read_frame<T: DeserializeOwned>(pipe: &mut impl Read) -> Result<Option<T>, FrameError> {
    let mut length = [0; LENGTH_BYTES];
    let mut filled = 0;
    while filled < LENGTH_BYTES {
        match pipe.read(&mut length[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(FrameError::Truncated),
            Ok(bytes) => filled += bytes,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    let mut body = vec![0; body_length(length)?];
    pipe.read_exact(&mut body).map_err(inside_frame)?;
    decode(&body).map(Some)
}

/// Writes one message and flushes it.
///
/// # Errors
/// [`FrameError`] if it does not fit a frame or the pipe is broken.
pub fn write_frame<T: Serialize>(pipe: &mut impl Write, message: &T) -> Result<(), FrameError> {
    pipe.write_all(&encode(message)?)?;
    Ok(pipe.flush()?)
}

/// Like [`read_frame`], for the agent. Not cancel safe: a dropped read may have taken part of a frame.
///
/// # Errors
/// As [`read_frame`].
pub async fn receive<T: DeserializeOwned>(
    pipe: &mut (impl AsyncRead + Unpin),
) -> Result<Option<T>, FrameError> {
    let mut length = [0; LENGTH_BYTES];
    let mut filled = 0;
    while filled < LENGTH_BYTES {
        match pipe.read(&mut length[filled..]).await? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(FrameError::Truncated),
            bytes => filled += bytes,
        }
    }
    let mut body = vec![0; body_length(length)?];
    pipe.read_exact(&mut body).await.map_err(inside_frame)?;
    decode(&body).map(Some)
}

/// Like [`write_frame`], for the agent. Not cancel safe: a dropped write may have left part of a frame.
///
/// # Errors
/// As [`write_frame`].
pub async fn send<T: Serialize>(pipe: &mut (impl AsyncWrite + Unpin), message: &T) -> Result<(), FrameError> {
    pipe.write_all(&encode(message)?).await?;
    Ok(pipe.flush().await?)
}

fn body_length(length: [u8; LENGTH_BYTES]) -> Result<usize, FrameError> {
    let bytes = u32::from_le_bytes(length) as usize;
    if bytes > MAX_FRAME {
        return Err(FrameError::TooLong { bytes });
    }
    Ok(bytes)
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    let bytes = body.len();
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        Ok(_) => Err(FrameError::Garbage { bytes, source: None }),
        Err(source) => Err(FrameError::Garbage { bytes, source: Some(source) }),
    }
}

fn inside_frame(error: io::Error) -> FrameError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => FrameError::Truncated,
        _ => FrameError::Io(error),
    }
}

/// Length of a length: u32.
const LENGTH_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use bench_core::message::ToWorker;

    use super::*;

    fn read(mut bytes: &[u8]) -> Result<Option<ToWorker>, FrameError> {
        read_frame(&mut bytes)
    }

    #[test]
    fn a_message_survives_the_pipe_in_pieces_of_any_size() {
        let message = ToWorker::Ping { number: u64::MAX };
        let frame = encode(&message).unwrap();
        let mut pieces = frame
            .chunks(1)
            .map(io::Cursor::new)
            .fold(Box::new(io::empty()) as Box<dyn Read>, |before, piece| Box::new(before.chain(piece)));
        assert_eq!(read_frame(&mut pieces).unwrap(), Some(message));
        assert_eq!(read_frame::<ToWorker>(&mut pieces).unwrap(), None);
    }

    #[test]
    fn a_cut_frame_is_told_from_a_closed_pipe() {
        let frame = encode(&ToWorker::Ping { number: 300 }).unwrap();
        for cut in 1..frame.len() {
            assert!(matches!(read(&frame[..cut]), Err(FrameError::Truncated)), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(matches!(read(b"\x02\0\0\0\xff\xff"), Err(FrameError::Garbage { source: Some(_), .. })));
        let mut longer = encode(&ToWorker::Ping { number: 1 }).unwrap();
        longer.push(0);
        longer[0] += 1;
        assert!(matches!(read(&longer), Err(FrameError::Garbage { source: None, .. })));
    }

    #[test]
    fn a_length_above_the_limit_is_refused_before_its_body_is_read() {
        let length = (MAX_FRAME as u32 + 1).to_le_bytes();
        assert!(matches!(read(&length), Err(FrameError::TooLong { bytes }) if bytes == MAX_FRAME + 1));
        assert!(matches!(encode(&vec![0_u8; MAX_FRAME]), Err(FrameError::TooLong { .. })));
    }

    #[tokio::test]
    async fn both_ends_speak_the_same_frames() {
        let message = ToWorker::Ping { number: 7 };
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &message).unwrap();
        let mut pipe = bytes.as_slice();
        assert_eq!(receive(&mut pipe).await.unwrap(), Some(message.clone()));
        assert_eq!(receive::<ToWorker>(&mut pipe).await.unwrap(), None);
        let mut sent = Vec::new();
        send(&mut sent, &message).await.unwrap();
        assert_eq!(sent, bytes);
    }
}
