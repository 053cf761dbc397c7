//! What goes wrong when opening, dialing and calling, in words that name a remedy.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bench_core::ids::NodeId;
use bench_core::message::Refusal;
use thiserror::Error;

use crate::control::identity::IdentityError;
use crate::control::wire::WireError;

/// Why a mesh cannot be opened.
#[derive(Debug, Error)]
pub enum ControlError {
    /// An address that others can reach, without a key.
    #[error(
        "without a mesh key only loopback addresses are served, not {address}: \
         run `railmesh keygen mesh.key`, copy the file to every node and start with --key mesh.key"
    )]
    NoKey {
        /// The address that was to be served.
        address: SocketAddr,
    },
    /// The address cannot be had.
    #[error("failed to listen on UDP {address}: does another agent run here? stop it or choose another port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The socket fails.
    #[error("the control socket fails")]
    Socket(#[from] io::Error),
    /// No certificate.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// TLS refuses its own configuration.
    #[error("TLS cannot be configured: {reason}")]
    Tls {
        /// Why.
        reason: String,
    },
}

/// Why there is no connection to an address. Clones are given to all who wait for one dial.
#[derive(Clone, Debug, Error)]
pub enum DialError {
    /// No answer at all.
    #[error(
        "nobody answers at {address} (UDP): is the agent running there, and does every firewall in between let UDP port {} pass?",
        address.port()
    )]
    Silent {
        /// The address.
        address: SocketAddr,
    },
    /// The other side was reached and refused before TLS.
    #[error(
        "{address} turns this node away: it has no mesh key and serves its own host only (start it with --key), \
         or too many peers connect to it at once"
    )]
    TurnedAway {
        /// The address.
        address: SocketAddr,
    },
    /// Another mesh key.
    #[error("{address} holds another mesh key: {}", own.remedy())]
    Key {
        /// The address.
        address: SocketAddr,
        /// The key of this side.
        own: OwnKey,
    },
    /// Another build.
    #[error("{address} runs another build: copy the same file to every node")]
    Build {
        /// The address.
        address: SocketAddr,
    },
    /// The hello was refused.
    #[error("{address} refuses: {refusal}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// Why.
        refusal: Refusal,
    },
    /// An agent of another name answers.
    #[error(
        "{found} answers at {address} where {expected} should: does the name resolve to the right address, \
         and has the agent there the right --name?"
    )]
    OtherNode {
        /// The address.
        address: SocketAddr,
        /// Who should be there.
        expected: NodeId,
        /// Who is.
        found: NodeId,
    },
    /// The address is this process's own.
    #[error("{address} is this agent itself")]
    Itself {
        /// The address.
        address: SocketAddr,
    },
    /// Without a key, only loopback addresses are dialed.
    #[error(
        "without a mesh key only loopback addresses are dialed, not {address}: \
         give the mesh's key file with --key"
    )]
    NoKey {
        /// The address.
        address: SocketAddr,
    },
    /// The connection was made and lost before the hello's answer.
    #[error("{address} did not answer the hello: {reason}")]
    Lost {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: String,
    },
    /// The address cannot be dialed from this socket.
    #[error("{address} cannot be dialed from here: {reason}")]
    Unusable {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: String,
    },
}

/// Whether another try may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// The cause may pass by itself.
    Good,
    /// It may pass while names and rosters settle; who waits must know how long.
    Uncertain,
    /// Not before somebody changes something.
    None,
}

impl DialError {
    /// Whether another try may help.
    pub fn prospect(&self) -> Prospect {
        match self {
            Self::Silent { .. } | Self::TurnedAway { .. } | Self::Lost { .. } => Prospect::Good,
            Self::OtherNode { .. } => Prospect::Uncertain,
            Self::Key { .. }
            | Self::Build { .. }
            | Self::Itself { .. }
            | Self::NoKey { .. }
            | Self::Unusable { .. } => Prospect::None,
            Self::Refused { refusal, .. } => match refusal {
                Refusal::Roster { .. } | Refusal::Unknown { .. } => Prospect::Uncertain,
                Refusal::Build { .. }
                | Refusal::Mesh { .. }
                | Refusal::Duplicate { .. }
                | Refusal::Certificate { .. } => Prospect::None,
            },
        }
    }
}

/// The key that a process came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnKey {
    /// One of a file.
    File,
    /// None: the well-known one of loopback meshes.
    Loopback,
}

impl OwnKey {
    fn remedy(self) -> &'static str {
        match self {
            Self::File => "give every node, and every client with --key, the same key file",
            Self::Loopback => {
                "this side has none; name the mesh's key file with --key mesh.key, or with RAILMESH_KEY=mesh.key"
            }
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum CallError {
    /// The answer did not come in time.
    #[error("{peer} did not answer {request} within {deadline:?}")]
    Deadline {
        /// Who was asked.
        peer: String,
        /// What.
        request: &'static str,
        /// How long was waited.
        deadline: Duration,
    },
    /// The connection is gone.
    #[error("the connection to {peer} is lost: {reason}")]
    Closed {
        /// Who was asked.
        peer: String,
        /// Why.
        reason: String,
    },
    /// The request cannot be sent.
    #[error("{request} to {peer} cannot be sent")]
    Unsendable {
        /// Who should have been asked.
        peer: String,
        /// What.
        request: &'static str,
        /// Why.
        source: WireError,
    },
    /// What came back is no answer.
    #[error("the answer of {peer} to {request} cannot be used")]
    Answer {
        /// Who was asked.
        peer: String,
        /// What.
        request: &'static str,
        /// Why.
        source: WireError,
    },
}
