//! How a connection ends: the codes that we send, and what the ends of others mean.

use std::net::SocketAddr;

use quinn::{ConnectionError, TransportErrorCode, VarInt};

/// Why this side closes a connection. The number goes over the wire; the text beside it is what people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseCode {
    /// Done with it.
    Done,
    /// The hello was refused.
    Refused,
    /// The peer broke the rules.
    Misbehaviour,
    /// Another connection of the same agent, or its next process, took its place.
    Replaced,
    /// The process ends.
    Shutdown,
}

impl From<CloseCode> for VarInt {
    fn from(code: CloseCode) -> Self {
        Self::from_u32(match code {
            CloseCode::Done => 0,
            CloseCode::Refused => 1,
            CloseCode::Misbehaviour => 2,
            CloseCode::Replaced => 3,
            CloseCode::Shutdown => 4,
        })
    }
}

/// What a failed TLS handshake means to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsFault {
    /// The certificate does not stem from our key, or ours not from theirs.
    Key,
    /// No certificate was shown.
    NoCertificate,
    /// No common ALPN protocol: it carries the build.
    Build,
    /// Something else.
    Other,
}

impl TlsFault {
    /// The fault in an error of either side; `None` if TLS was not at fault.
    pub(crate) fn of(error: &ConnectionError) -> Option<Self> {
        match error {
            ConnectionError::TransportError(error) => Self::from_code(error.code),
            ConnectionError::ConnectionClosed(close) => Self::from_code(close.error_code),
            ConnectionError::VersionMismatch
            | ConnectionError::ApplicationClosed(_)
            | ConnectionError::Reset
            | ConnectionError::TimedOut
            | ConnectionError::LocallyClosed
            | ConnectionError::CidsExhausted => None,
        }
    }

    /// QUIC carries a TLS alert as 0x100 plus its number (RFC 9001 section 4.8, RFC 8446 section 6).
    fn from_code(code: TransportErrorCode) -> Option<Self> {
        let alert = u64::from(code).checked_sub(0x100).filter(|alert| *alert <= 0xff)?;
        Some(match alert {
            BAD_CERTIFICATE | CERTIFICATE_UNKNOWN | UNKNOWN_CA | DECRYPT_ERROR => Self::Key,
            CERTIFICATE_REQUIRED => Self::NoCertificate,
            NO_APPLICATION_PROTOCOL => Self::Build,
            _ => Self::Other,
        })
    }
}

/// Whether the other side's QUIC refused the connection before TLS (RFC 9000 section 20.1).
pub(crate) fn is_turned_away(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::CONNECTION_REFUSED)
}

/// Why a connection ended, for people.
pub(crate) fn describe(error: &ConnectionError) -> String {
    match error {
        ConnectionError::TimedOut => "no sign of life".to_owned(),
        ConnectionError::Reset => "the process at the other end was replaced".to_owned(),
        ConnectionError::LocallyClosed => "closed here".to_owned(),
        ConnectionError::ApplicationClosed(close) => match String::from_utf8_lossy(&close.reason) {
            text if text.is_empty() => "closed by the peer".to_owned(),
            text => format!("closed by the peer: {text}"),
        },
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::CidsExhausted => error.to_string(),
    }
}

/// An address as people write it: an IPv4 peer of a dual-stack socket is an IPv4 peer.
pub(crate) fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

/// TLS alerts (RFC 8446 section 6): rustls answers a foreign signature with `decrypt_error`.
const BAD_CERTIFICATE: u64 = 42;
const CERTIFICATE_UNKNOWN: u64 = 46;
const UNKNOWN_CA: u64 = 48;
const DECRYPT_ERROR: u64 = 51;
const CERTIFICATE_REQUIRED: u64 = 116;
const NO_APPLICATION_PROTOCOL: u64 = 120;
