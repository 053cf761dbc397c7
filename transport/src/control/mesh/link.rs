//! One open connection: who is at the other end, asking it, and knowing when nobody needs it any more.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bench_core::ids::{BootId, Epoch, NodeId};
use bench_core::message::{Request, Response};
use tokio::sync::watch;

use super::CallError;
use super::close::{self, CloseCode};
use crate::control::wire::{self, Blame, FrameKind, WireError};

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An agent.
    Agent {
        /// Its name.
        node: NodeId,
        /// Its process.
        boot: BootId,
        /// Its UDP address.
        address: SocketAddr,
    },
    /// A command.
    Client {
        /// Its UDP address.
        address: SocketAddr,
    },
}

impl Peer {
    /// Its UDP address.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Agent { address, .. } | Self::Client { address } => *address,
        }
    }

    /// Its name, if it is an agent.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Agent { node, .. } => Some(node),
            Self::Client { .. } => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent { node, address, .. } => write!(f, "{node} at {address}"),
            Self::Client { address } => write!(f, "the client at {address}"),
        }
    }
}

/// An open connection with a member. Cheap to clone; dropping it does not close it, [`Connection::close`] does.
pub struct Connection {
    link: Arc<Link>,
}

impl Connection {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        link.usage.send_modify(|users| *users += 1);
        Self { link }
    }

    /// Asks and waits for the answer, at most `deadline`.
    ///
    /// # Errors
    /// [`CallError`]. After a deadline the other side may still carry out the request.
    pub async fn call(&self, request: &Request, deadline: Duration) -> Result<Response, CallError> {
        self.link.call(request, deadline).await
    }

    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.link.peer
    }

    /// The highest epoch that the other end had seen when it welcomed us; `None` if it had seen none, or came to us.
    pub fn epoch(&self) -> Option<Epoch> {
        self.link.epoch
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        !self.link.is_open()
    }

    /// Waits until it is closed, and says why.
    pub async fn closed(&self) -> String {
        let error = self.link.quic.closed().await;
        self.link.describe(&error)
    }

    /// Closes it; the other end is told the reason.
    pub fn close(&self, reason: &str) {
        self.link.close(CloseCode::Done, reason);
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.link))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.link.usage.send_modify(|users| *users -= 1);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.link.peer)
    }
}

/// Which side dialed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The other one.
    Inbound,
    /// This one.
    Outbound,
}

/// The connection itself, which tables and tasks hold without counting as users.
pub(crate) struct Link {
    pub(super) quic: quinn::Connection,
    pub(super) peer: Peer,
    pub(super) direction: Direction,
    epoch: Option<Epoch>,
    /// [`Connection`]s in somebody's hands, and requests being served.
    usage: watch::Sender<usize>,
    closed_here: OnceLock<String>,
}

impl Link {
    pub(super) fn new(
        quic: quinn::Connection,
        peer: Peer,
        direction: Direction,
        epoch: Option<Epoch>,
    ) -> Arc<Self> {
        Arc::new(Self {
            quic,
            peer,
            direction,
            epoch,
            usage: watch::Sender::new(0),
            closed_here: OnceLock::new(),
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.quic.close_reason().is_none()
    }

    pub(crate) fn close(&self, code: CloseCode, reason: &str) {
        if self.is_open() {
            self.closed_here.get_or_init(|| reason.to_owned());
            self.quic.close(code.into(), reason.as_bytes());
        }
    }

    /// Closes it as soon as nobody holds a [`Connection`] and no request is being served.
    pub(crate) async fn close_when_unused(&self, reason: &str) {
        let mut usage = self.usage.subscribe();
        tokio::select! {
            unused = usage.wait_for(|users| *users == 0) => {
                if unused.is_ok() {
                    self.close(CloseCode::Done, reason);
                }
            }
            _ = self.quic.closed() => {}
        }
    }

    pub(super) async fn call(&self, request: &Request, deadline: Duration) -> Result<Response, CallError> {
        let name = request_name(request);
        let frame = wire::frame(frame_kind(request), request).map_err(|source| CallError::Unsendable {
            peer: self.peer.to_string(),
            request: name,
            source,
        })?;
        let failed = match tokio::time::timeout(deadline, self.exchange(&frame)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => error,
            Err(_) => {
                return Err(CallError::Deadline { peer: self.peer.to_string(), request: name, deadline });
            }
        };
        match (self.quic.close_reason(), failed.blame()) {
            (Some(reason), _) => {
                Err(CallError::Closed { peer: self.peer.to_string(), reason: self.describe(&reason) })
            }
            (None, blame) => {
                if blame == Blame::Sender {
                    self.close(CloseCode::Misbehaviour, &failed.to_string());
                }
                Err(CallError::Answer { peer: self.peer.to_string(), request: name, source: failed })
            }
        }
    }

    pub(super) fn describe(&self, error: &quinn::ConnectionError) -> String {
        match (error, self.closed_here.get()) {
            (quinn::ConnectionError::LocallyClosed, Some(reason)) => format!("closed here: {reason}"),
            (error, _) => close::describe(error),
        }
    }

    /// Holds the connection in use while a request is served.
    pub(super) fn hold(self: &Arc<Self>) -> Connection {
        Connection::new(Arc::clone(self))
    }

    async fn exchange(&self, frame: &[u8]) -> Result<Response, WireError> {
        let (mut send, mut recv) = self.quic.open_bi().await.map_err(|e| WireError::Stream(e.into()))?;
        send.write_all(frame).await.map_err(|e| WireError::Stream(e.into()))?;
        // Fails only if the peer has stopped the stream, which the read shows better.
        let _ = send.finish();
        wire::read(&mut recv, &[FrameKind::Response, FrameKind::Batch]).await
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({}, {:?})", self.peer, self.direction)
    }
}

/// Which limit of size a request has.
fn frame_kind(request: &Request) -> FrameKind {
    match request {
        Request::StoreResult { .. } => FrameKind::Batch,
        Request::Ping
        | Request::Clock
        | Request::Probe { .. }
        | Request::Prepare(_)
        | Request::Start(_)
        | Request::Abort { .. }
        | Request::Collect { .. }
        | Request::Handshake { .. }
        | Request::Submit { .. }
        | Request::Watch { .. }
        | Request::Cancel { .. }
        | Request::Status
        | Request::Attend(_)
        | Request::Kept { .. }
        | Request::WhoCommands
        | Request::Raft { .. } => FrameKind::Request,
    }
}

/// The request's word in messages.
fn request_name(request: &Request) -> &'static str {
    match request {
        Request::Ping => "ping",
        Request::Clock => "clock",
        Request::Probe { .. } => "probe",
        Request::Prepare(_) => "prepare",
        Request::Start(_) => "start",
        Request::Abort { .. } => "abort",
        Request::Collect { .. } => "collect",
        Request::StoreResult { .. } => "store result",
        Request::Handshake { .. } => "handshake",
        Request::Submit { .. } => "submit",
        Request::Watch { .. } => "watch",
        Request::Cancel { .. } => "cancel",
        Request::Status => "status",
        Request::Attend(_) => "attendance",
        Request::Kept { .. } => "question for a kept result",
        Request::WhoCommands => "question who commands",
        Request::Raft { .. } => "question of an elector",
    }
}
