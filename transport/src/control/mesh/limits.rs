//! Every limit of the mesh, with its default and the reason for it.

use std::time::Duration;

/// Limits of time and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a TLS handshake may take, either side.
    pub handshake: Duration,
    /// Round trip assumed before one is measured: a handshake's first packet is sent again after three of these, then
    /// six and so on. QUIC's default of 333 ms (RFC 9002 section 6.2.2) is made for the internet; here it would cost an
    /// agent that starts before its elector, and an election that loses a packet, a whole second.
    pub first_rtt: Duration,
    /// How long a peer may take from the handshake's end to its whole hello.
    pub hello: Duration,
    /// How long the living holder of a name has to answer when another process claims it.
    pub ping: Duration,
    /// How long a request may take to arrive once its stream is open.
    pub request: Duration,
    /// How long [`super::Mesh::shutdown`] waits for peers to learn of it, and a refused peer has to read why.
    pub farewell: Duration,
    /// Silence after which a connection is lost.
    pub idle: Duration,
    /// Silence after which a connection sends a sign of life.
    pub keep_alive: Duration,
    /// TLS handshakes at once.
    pub handshakes: usize,
    /// Requests at once that a peer may have open on one connection.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            first_rtt: Duration::from_millis(10),
            hello: Duration::from_secs(5),
            ping: Duration::from_secs(2),
            request: Duration::from_secs(10),
            farewell: Duration::from_secs(1),
            idle: Duration::from_secs(15),
            keep_alive: Duration::from_secs(4),
            handshakes: 256,
            streams: 64,
        }
    }
}
