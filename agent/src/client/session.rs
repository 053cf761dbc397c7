//! A client's connection to an agent of the mesh.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bench_core::message::{Request, Response, Role};
use thiserror::Error;
use transport::control::identity::{KeyError, MeshKey};
use transport::control::mesh::{
    CallError, Connection, ControlError, DialError, Limits, Mesh, MeshConfig, NoService,
};
use transport::control::resolve::{ResolveError, Resolver};

use crate::build_id::build_hash;

/// A client's connection to an agent. Dropping it ends the connection, never a run.
#[derive(Debug)]
pub struct Client {
    mesh: Mesh,
    connection: Connection,
    target: String,
    addresses: Vec<SocketAddr>,
}

/// Why a client gets no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The target is not HOST:PORT.
    #[error("{target:?} is not HOST:PORT, such as gpu-001:7777")]
    Target {
        /// What was named.
        target: String,
    },
    /// The name has no address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The endpoint cannot be opened.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// No agent answers there, or it refuses.
    #[error("no agent at {target}: {source}")]
    Dial {
        /// What was named.
        target: String,
        /// Why.
        source: DialError,
    },
    /// The connection failed under a question.
    #[error("the agent at {target} was lost: {source}")]
    Call {
        /// What was named.
        target: String,
        /// Why.
        source: CallError,
    },
    /// The mesh has no coordinator that this agent reaches.
    #[error("the mesh has no coordinator: {reason}")]
    NoCoordinator {
        /// Why.
        reason: String,
    },
    /// The agent does not understand the question.
    #[error("the agent at {target} refused: {reason}")]
    Refused {
        /// What was named.
        target: String,
        /// Why.
        reason: String,
    },
}

impl Client {
    /// Connects to an agent at `target` with the mesh key in `key`, or as a loopback mesh without one. `target` is
    /// HOST:PORT, or several with commas between: the first that answers is taken, and the next when it is lost.
    ///
    /// # Errors
    /// [`ClientError`] with what to do.
    pub async fn connect(target: &str, key: Option<&Path>) -> Result<Self, ClientError> {
        let key = key.map(MeshKey::read).transpose()?;
        let addresses = addresses_of(target).await?;
        let first = addresses.first().ok_or_else(|| ClientError::Target { target: target.to_owned() })?;
        let any: SocketAddr = match (first.is_ipv4(), first.ip().is_loopback()) {
            (true, true) => ([127, 0, 0, 1], 0).into(),
            (true, false) => ([0, 0, 0, 0], 0).into(),
            (false, true) => ([0, 0, 0, 0, 0, 0, 0, 1], 0).into(),
            (false, false) => ([0_u16; 8], 0).into(),
        };
        let config = MeshConfig {
            listen: any,
            key,
            role: Role::Client,
            build: build_hash(),
            limits: Limits::default(),
        };
        let mesh = Mesh::bind(config, Arc::new(NoService))?;
        let connection = dial(&mesh, target, &addresses).await?;
        Ok(Self { mesh, connection, target: target.to_owned(), addresses })
    }

    /// Asks the agent.
    ///
    /// # Errors
    /// [`ClientError`] if the connection fails, or the answer is that the question cannot be answered.
    pub async fn call(&self, request: &Request, deadline: Duration) -> Result<Response, ClientError> {
        let target = self.target.clone();
        match self.connection.call(request, deadline).await {
            Ok(Response::NoCoordinator { reason }) => Err(ClientError::NoCoordinator { reason }),
            Ok(Response::Invalid { reason }) => Err(ClientError::Refused { target, reason }),
            Ok(response) => Ok(response),
            Err(source) => Err(ClientError::Call { target, source }),
        }
    }

    /// Connects again after the connection was lost, to another target first if there are several.
    ///
    /// # Errors
    /// [`ClientError::Dial`].
    pub async fn reconnect(&mut self) -> Result<(), ClientError> {
        self.addresses.rotate_left(1);
        self.connection = dial(&self.mesh, &self.target, &self.addresses).await?;
        Ok(())
    }

    /// Closes the connection and waits until the agent can know.
    pub async fn close(self) {
        self.connection.close("done");
        self.mesh.shutdown().await;
    }
}

/// The addresses of all targets that resolve; the last error if none does.
async fn addresses_of(targets: &str) -> Result<Vec<SocketAddr>, ClientError> {
    let (mut all, mut last) = (Vec::new(), None);
    for target in targets.split(',') {
        match addresses_of_one(target.trim()).await {
            Ok(addresses) => all.extend(addresses),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) if all.is_empty() => Err(error),
        Some(_) | None => Ok(all),
    }
}

async fn addresses_of_one(target: &str) -> Result<Vec<SocketAddr>, ClientError> {
    if let Ok(address) = target.parse() {
        return Ok(vec![address]);
    }
    let error = || ClientError::Target { target: target.to_owned() };
    let (host, port) = target.rsplit_once(':').ok_or_else(error)?;
    let port: u16 = port.parse().map_err(|_| error())?;
    let resolver = Resolver::system()?;
    let addresses = resolver.lookup(host).await?;
    Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

async fn dial(mesh: &Mesh, target: &str, addresses: &[SocketAddr]) -> Result<Connection, ClientError> {
    let mut last = None;
    for address in addresses {
        match mesh.dial(*address, None).await {
            Ok(connection) => return Ok(connection),
            Err(source) => last = Some(source),
        }
    }
    match last {
        Some(source) => Err(ClientError::Dial { target: target.to_owned(), source }),
        None => Err(ClientError::Target { target: target.to_owned() }),
    }
}
