//! What the tests are written with: agents, raw peers, and a relay that can be cut.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench_core::ids::{BootId, BuildHash, Epoch, Generation, NodeId, RosterHash};
use bench_core::message::{Hello, HelloReply, Refusal, Request, Response, Role};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::control::identity::{AGENT_SERVER_NAME, Holder, Identity, MeshKey};
use crate::control::mesh::{Connection, Limits, Mesh, MeshConfig, Peer, Service, tls};
use crate::control::wire::{self, FrameKind};

pub(crate) const BUILD: BuildHash = BuildHash([7; 16]);
pub(crate) const ROSTER: RosterHash = RosterHash([1; 16]);
pub(crate) const EPOCH: Epoch = Epoch { term: 3, elector: 1 };
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Longer than anything here takes on a busy machine; only a failure waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub(crate) fn role(name: &str, boot: u8) -> Role {
    Role::Agent { node: node(name), boot: BootId([boot; 16]), roster: ROSTER, generation: Generation(0) }
}

pub(crate) fn limits() -> Limits {
    Limits { handshake: 3 * SECOND, hello: SECOND / 2, ping: SECOND / 2, ..Limits::default() }
}

pub(crate) fn config(role: Role, key: Option<&MeshKey>) -> MeshConfig {
    MeshConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        key: key.cloned(),
        role,
        build: BUILD,
        limits: limits(),
    }
}

/// An agent with a service that records what happens to it.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) mesh: Mesh,
    pub(crate) addr: SocketAddr,
    pub(crate) service: Arc<Recorder>,
}

pub(crate) fn agent(name: &str, boot: u8, key: &MeshKey) -> Agent {
    start(config(role(name, boot), Some(key)))
}

pub(crate) fn start(config: MeshConfig) -> Agent {
    let service = Arc::new(Recorder::default());
    let mesh = Mesh::bind(config, Arc::clone(&service) as Arc<dyn Service>).unwrap();
    let addr = mesh.local_addr().unwrap();
    Agent { mesh, addr, service }
}

/// Whether a connection still carries a question and its answer.
pub(crate) async fn answers(connection: &Connection) -> bool {
    matches!(connection.call(&Request::Ping, PATIENCE).await, Ok(Response::Pong))
}

/// Answers `Status` with who asked, `Watch` after its wait, `Probe` with more than a message holds.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) connected: Mutex<Vec<Connection>>,
    pub(crate) lost: Mutex<Vec<String>>,
}

impl Recorder {
    pub(crate) fn connections(&self) -> Vec<Connection> {
        self.connected.lock().unwrap().clone()
    }

    /// Waits until `count` losses were reported, and returns the reasons.
    pub(crate) async fn losses(&self, count: usize) -> Vec<String> {
        eventually(|| self.lost.lock().unwrap().len() >= count).await;
        self.lost.lock().unwrap().clone()
    }
}

impl Service for Recorder {
    fn admit(&self, role: &Role) -> Result<Option<Epoch>, Refusal> {
        match role {
            Role::Agent { node, .. } if node.as_str() == "stranger" => {
                Err(Refusal::Unknown { node: self::node("here"), name: node.clone() })
            }
            Role::Agent { .. } | Role::Client => Ok(Some(EPOCH)),
        }
    }

    fn call(&self, peer: Peer, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move {
            match request {
                Request::Status => Response::Invalid { reason: peer.to_string() },
                Request::Watch { wait, .. } => {
                    tokio::time::sleep(wait).await;
                    Response::Done
                }
                Request::Probe { .. } => {
                    Response::NoCoordinator { reason: "x".repeat(FrameKind::Response.limit() + 1) }
                }
                other => unreachable!("no test asks {other:?}"),
            }
        })
    }

    fn connected(&self, connection: Connection) {
        self.connected.lock().unwrap().push(connection);
    }

    fn lost(&self, _peer: &Peer, reason: &str) {
        self.lost.lock().unwrap().push(reason.to_owned());
    }
}

/// Why a connection was closed, which it has to be soon.
pub(crate) async fn ended(connection: &Connection) -> String {
    timeout(PATIENCE, connection.closed()).await.expect("it is closed in time")
}

pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("the condition came true in time");
}

/// A peer with a valid certificate and bare QUIC, to say what no agent says.
pub(crate) struct Raw {
    _endpoint: quinn::Endpoint,
    pub(crate) quic: quinn::Connection,
}

impl Raw {
    pub(crate) async fn connect(addr: SocketAddr, key: &MeshKey, name: &str) -> Self {
        let identity = Identity::issue(key, Holder::Node(node(name))).unwrap();
        Self::with(addr, tls::client(&identity, &BUILD).unwrap()).await
    }

    pub(crate) async fn with(addr: SocketAddr, crypto: quinn::crypto::rustls::QuicClientConfig) -> Self {
        let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = quinn::ClientConfig::new(Arc::new(crypto));
        let quic = endpoint.connect_with(config, addr, AGENT_SERVER_NAME).unwrap();
        let quic = timeout(PATIENCE, quic).await.unwrap().unwrap();
        Self { _endpoint: endpoint, quic }
    }

    /// Sends bytes on a stream of their own; ends the stream if told so.
    pub(crate) async fn send(&self, bytes: &[u8]) -> (quinn::SendStream, quinn::RecvStream) {
        let (mut send, recv) = self.quic.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        (send, recv)
    }

    pub(crate) async fn hello(&self, hello: &Hello) -> HelloReply {
        let (mut send, mut recv) = self.send(&wire::frame(FrameKind::Hello, hello).unwrap()).await;
        send.finish().unwrap();
        wire::read(&mut recv, &[FrameKind::HelloReply]).await.unwrap()
    }

    /// Why the other side closed.
    pub(crate) async fn closed(&self) -> quinn::ConnectionError {
        timeout(PATIENCE, self.quic.closed()).await.expect("the agent closes")
    }
}

pub(crate) fn hello(key: &MeshKey, role: Role) -> Hello {
    Hello { role, build: BUILD, mesh: Identity::issue(key, Holder::Client).unwrap().mesh_id() }
}

/// Passes packets between a dialer and an agent until it is cut: then either seems dead to the other, without a word.
pub(crate) struct Relay {
    pub(crate) addr: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Relay {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        back.connect(target).await.unwrap();
        let addr = front.local_addr().unwrap();
        let cut = Arc::new(AtomicBool::new(false));
        tokio::spawn(pass(front, back, Arc::clone(&cut)));
        Self { addr, cut }
    }

    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

async fn pass(front: UdpSocket, back: UdpSocket, cut: Arc<AtomicBool>) {
    let (mut out, mut home) = (vec![0; 65_536], vec![0; 65_536]);
    let mut dialer = None;
    loop {
        tokio::select! {
            Ok((bytes, from)) = front.recv_from(&mut out) => {
                dialer = Some(from);
                if !cut.load(Ordering::Relaxed) {
                    back.send(&out[..bytes]).await.ok();
                }
            }
            Ok(bytes) = back.recv(&mut home) => {
                if let (false, Some(dialer)) = (cut.load(Ordering::Relaxed), dialer) {
                    front.send_to(&home[..bytes], dialer).await.ok();
                }
            }
        }
    }
}
