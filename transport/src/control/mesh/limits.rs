//! Every limit of the mesh, with its default and the reason for it.

use std::time::Duration;

/// Limits of time and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a TLS handshake may take, either side.
    pub handshake: Duration,
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
            hello: Duration::from_secs(5),
            ping: Duration::from_secs(2),
            request: Duration::from_secs(10),
            farewell: Duration::from_secs(1),
            idle: Duration::from_secs(15),
            keep_alive: Duration::from_secs(4),
            handshakes: 64,
            streams: 64,
        }
    }
}
