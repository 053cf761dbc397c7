//! The QUIC mesh: one UDP socket for both directions, mutual authentication, and a hello before anything else.
//!
//! ```text
//!  incoming ─accept─▶ TLS (5 s, 64 at once) ─admission─▶ registry ─▶ serve ─▶ Service::call
//!  dial ────────────▶ TLS ─────────────────── hello ───▶ registry ─▶ serve    Connection::call ─▶ Response
//! ```
//!
//! | task | owner | ends when | cancelling it is safe because |
//! |---|---|---|---|
//! | accept loop | the endpoint | the endpoint closes | handshakes are tasks of their own |
//! | handshake and hello | itself | admitted, refused or out of time | the connection closes with it |
//! | serve, one a connection | the connection | the connection closes | requests are tasks of their own |
//! | request | itself | the service has answered | never cancelled: a service runs to its end |
//!
//! All of them run on a current-thread runtime. What is asked and answered is the [`Service`]'s affair; only a ping is
//! answered here, since it asks for nothing but life.

mod accept;
mod admission;
mod alarm;
mod close;
mod dial;
mod endpoint;
mod error;
mod limits;
mod link;
mod registry;
mod serve;
#[cfg(test)]
pub(crate) mod tests;
mod tls;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bench_core::ids::{BuildHash, Epoch, NodeId};
use bench_core::message::{Refusal, Request, Response, Role};

use self::alarm::Alarm;
use self::close::CloseCode;
use self::registry::Registry;
use super::identity::{Holder, Identity, MeshKey};

pub use error::{CallError, ControlError, DialError, OwnKey, Prospect};
pub use limits::Limits;
pub(crate) use link::Link;
pub use link::{Connection, Peer};

/// How a process takes part in a mesh.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    /// Where to listen on UDP. An unspecified IPv6 address serves IPv4 too; port 0 means any.
    pub listen: SocketAddr,
    /// The mesh key. Without one, only loopback addresses are served and dialed.
    pub key: Option<MeshKey>,
    /// Who this process is. A client accepts no connections.
    pub role: Role,
    /// Its build; peers of another build are refused.
    pub build: BuildHash,
    /// Time and size limits.
    pub limits: Limits,
}

/// What an agent does with connections and requests.
pub trait Service: Send + Sync + 'static {
    /// Judges a hello whose build, mesh and certificate are right already. Returns the highest epoch seen here.
    ///
    /// # Errors
    /// The refusal that the other side is told, such as another roster or an unknown name.
    fn admit(&self, role: &Role) -> Result<Option<Epoch>, Refusal>;

    /// Answers a request. It runs to its end even if the asker has given up or the connection is lost.
    fn call(&self, peer: Peer, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>>;

    /// A peer has come in. Called before its first request, and not for connections that were dialed from here.
    fn connected(&self, connection: Connection);

    /// A peer that was [`Service::connected`] is gone, and why.
    fn lost(&self, peer: &Peer, reason: &str);
}

/// The service of a process that only asks: it admits nobody and answers that there is nothing to ask here.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoService;

impl Service for NoService {
    fn admit(&self, _role: &Role) -> Result<Option<Epoch>, Refusal> {
        Ok(None)
    }

    fn call(&self, _peer: Peer, _request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async { Response::Invalid { reason: "this is a client: ask an agent".to_owned() } })
    }

    fn connected(&self, _connection: Connection) {}

    fn lost(&self, _peer: &Peer, _reason: &str) {}
}

/// This process's end of the mesh. Cheap to clone; the last clone's drop closes everything at once,
/// [`Mesh::shutdown`] also lets the peers know.
#[derive(Clone, Debug)]
pub struct Mesh {
    owner: Arc<Owner>,
}

impl Mesh {
    /// Opens the socket and, for an agent, begins to accept.
    ///
    /// Needs a tokio runtime; a current-thread one will do.
    ///
    /// # Errors
    /// [`ControlError`] if an address other than loopback is to be served without a key, or the socket cannot be opened.
    pub fn bind(config: MeshConfig, service: Arc<dyn Service>) -> Result<Self, ControlError> {
        let MeshConfig { listen, key, role, build, limits } = config;
        let holder = match &role {
            Role::Agent { node, .. } => Holder::Node(node.clone()),
            Role::Client => Holder::Client,
        };
        let access = match &key {
            Some(_) => Access::Anywhere,
            None => Access::LoopbackOnly,
        };
        let identity = Identity::issue(&key.unwrap_or_else(MeshKey::loopback), holder)?;
        let endpoint = endpoint::open(listen, &role, access, &identity, &build, &limits)?;
        let shared = Arc::new(Shared {
            endpoint,
            identity,
            role,
            build,
            access,
            limits,
            registry: Registry::default(),
            alarm: Alarm::default(),
            service,
        });
        match &shared.role {
            Role::Agent { .. } => drop(tokio::spawn(accept::run(Arc::clone(&shared)))),
            Role::Client => {}
        }
        Ok(Self { owner: Arc::new(Owner { shared }) })
    }

    /// Connects to the agent at `addr` and says hello. With `expect`, another agent's answer is an error.
    ///
    /// # Errors
    /// [`DialError`]; [`DialError::prospect`] tells whether another try may help.
    pub async fn dial(&self, addr: SocketAddr, expect: Option<&NodeId>) -> Result<Connection, DialError> {
        dial::dial(&self.owner.shared, addr, expect).await
    }

    /// An open connection with this agent, whichever side dialed it.
    pub fn connected_to(&self, node: &NodeId) -> Option<Connection> {
        self.owner.shared.registry.find(node).map(Connection::new)
    }

    /// Closes all connections, tells the peers, and waits a moment until they know.
    pub async fn shutdown(&self) {
        let Shared { endpoint, limits, .. } = &*self.owner.shared;
        endpoint.close(CloseCode::Shutdown.into(), b"the agent stops");
        // Peers that do not hear it find out by their idle time-out.
        let _ = tokio::time::timeout(limits.farewell, endpoint.wait_idle()).await;
    }

    /// Where it listens.
    ///
    /// # Errors
    /// [`ControlError::Socket`] if the operating system does not say.
    pub fn local_addr(&self) -> Result<SocketAddr, ControlError> {
        Ok(self.owner.shared.endpoint.local_addr()?)
    }
}

/// Which addresses may take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// All: the key tells members from strangers.
    Anywhere,
    /// This host only: there is no key.
    LoopbackOnly,
}

impl Access {
    /// The key that goes with it.
    fn own_key(self) -> OwnKey {
        match self {
            Self::Anywhere => OwnKey::File,
            Self::LoopbackOnly => OwnKey::Loopback,
        }
    }

    fn allows(self, addr: SocketAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::LoopbackOnly => addr.ip().to_canonical().is_loopback(),
        }
    }
}

/// What all tasks of a mesh see.
struct Shared {
    endpoint: quinn::Endpoint,
    identity: Identity,
    role: Role,
    build: BuildHash,
    access: Access,
    limits: Limits,
    registry: Registry,
    alarm: Alarm,
    service: Arc<dyn Service>,
}

/// Closes the endpoint when no [`Mesh`] is left; the tasks hold [`Shared`] only, so they do not keep it open.
struct Owner {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owner").field("identity", &self.shared.identity).finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.endpoint.close(CloseCode::Shutdown.into(), b"the agent stops");
    }
}
