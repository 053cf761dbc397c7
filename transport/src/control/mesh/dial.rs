//! Dialing: TLS, then hello, then the connection may be used.
//!
//! A TLS 1.3 client believes it is connected before the server has judged its certificate, so a refusal for a wrong
//! key may arrive while the hello's answer is awaited. Both places map errors alike.

use std::net::SocketAddr;
use std::sync::Arc;

use bench_core::ids::{BootId, Epoch, NodeId};
use bench_core::message::{Hello, HelloReply, Role};
use quinn::ConnectionError;
use tokio::time::timeout;

use super::admission::holder;
use super::close::{CloseCode, TlsFault, canonical, describe, is_turned_away};
use super::link::{Connection, Direction, Link, Peer};
use super::{DialError, Shared, serve};
use crate::control::identity::{AGENT_SERVER_NAME, Holder};
use crate::control::wire::{self, FrameKind, WireError};

pub(super) async fn dial(
    shared: &Arc<Shared>,
    address: SocketAddr,
    expect: Option<&NodeId>,
) -> Result<Connection, DialError> {
    let address = canonical(address);
    if !shared.access.allows(address) {
        return Err(DialError::NoKey { address });
    }
    let quic = connect(shared, address).await?;
    let welcomed = greet(shared, &quic, address, expect).await;
    let (node, boot, epoch) = welcomed.inspect_err(|_| quic.close(CloseCode::Done.into(), b""))?;
    let peer = Peer::Agent { node, boot, address };
    let link = Link::new(quic, peer, Direction::Outbound, epoch);
    enter(shared, &link).await?;
    let connection = Connection::new(Arc::clone(&link));
    tokio::spawn(serve_until_closed(Arc::clone(shared), link));
    Ok(connection)
}

/// Who answered: its name, its process, the highest epoch it has seen.
type Welcome = (NodeId, BootId, Option<Epoch>);

async fn connect(shared: &Shared, address: SocketAddr) -> Result<quinn::Connection, DialError> {
    let connecting = shared
        .endpoint
        .connect(address, AGENT_SERVER_NAME)
        .map_err(|error| DialError::Unusable { address, reason: error.to_string() })?;
    match timeout(shared.limits.handshake, connecting).await {
        Ok(Ok(quic)) => Ok(quic),
        Ok(Err(ConnectionError::TimedOut)) | Err(_) => Err(DialError::Silent { address }),
        Ok(Err(error)) => Err(explain(shared, address, &error)),
    }
}

/// Says hello and checks who answers.
async fn greet(
    shared: &Shared,
    quic: &quinn::Connection,
    address: SocketAddr,
    expect: Option<&NodeId>,
) -> Result<Welcome, DialError> {
    // The other side may first have to find out whether an older process of ours is dead.
    let limit = shared.limits.hello + shared.limits.ping;
    let reply = match timeout(limit, exchange(shared, quic)).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => {
            return Err(match quic.close_reason() {
                Some(reason) => explain(shared, address, &reason),
                None => DialError::Lost { address, reason: error.to_string() },
            });
        }
        Err(_) => {
            return Err(DialError::Lost { address, reason: format!("no answer within {limit:?}") });
        }
    };
    let (node, boot, epoch) = match reply {
        HelloReply::Welcome { node, boot, epoch } => (node, boot, epoch),
        HelloReply::Refused(refusal) => return Err(DialError::Refused { address, refusal }),
    };
    let certified = holder(quic);
    if certified != Ok(Holder::Node(node.clone())) {
        return Err(DialError::Lost {
            address,
            reason: format!("it says it is {node} and its certificate does not"),
        });
    }
    if matches!(&shared.role, Role::Agent { boot: own, .. } if *own == boot) {
        return Err(DialError::Itself { address });
    }
    match expect {
        Some(expected) if *expected != node => {
            Err(DialError::OtherNode { address, expected: expected.clone(), found: node })
        }
        Some(_) | None => Ok((node, boot, epoch)),
    }
}

async fn exchange(shared: &Shared, quic: &quinn::Connection) -> Result<HelloReply, WireError> {
    let hello = Hello { role: shared.role.clone(), build: shared.build, mesh: shared.identity.mesh_id() };
    let frame = wire::frame(FrameKind::Hello, &hello)?;
    let (mut send, mut recv) = quic.open_bi().await.map_err(|e| WireError::Stream(e.into()))?;
    send.write_all(&frame).await.map_err(|e| WireError::Stream(e.into()))?;
    // Fails only if the peer has stopped the stream, which the read shows better.
    let _ = send.finish();
    wire::read(&mut recv, &[FrameKind::HelloReply]).await
}

/// Enters the connection in the registry: the agent there may bear a name that a living one has.
async fn enter(shared: &Shared, link: &Arc<Link>) -> Result<(), DialError> {
    shared.registry.enter(link, shared.limits.ping).await.map_err(|taken| {
        let refusal = bench_core::message::Refusal::Duplicate {
            name: link.peer.node().expect("who is dialed is an agent").clone(),
            address: taken.address.to_string(),
            boot: taken.boot,
        };
        link.close(CloseCode::Refused, &refusal.to_string());
        DialError::Refused { address: link.peer.address(), refusal }
    })
}

async fn serve_until_closed(shared: Arc<Shared>, link: Arc<Link>) {
    // Who dialed learns the reason from `Connection::closed`.
    let _ = serve::run(Arc::clone(&shared), Arc::clone(&link)).await;
    shared.registry.leave(&link);
}

fn explain(shared: &Shared, address: SocketAddr, error: &ConnectionError) -> DialError {
    match TlsFault::of(error) {
        Some(TlsFault::Key | TlsFault::NoCertificate) => {
            DialError::Key { address, own: shared.access.own_key() }
        }
        Some(TlsFault::Build) => DialError::Build { address },
        Some(TlsFault::Other) | None if is_turned_away(error) => DialError::TurnedAway { address },
        Some(TlsFault::Other) | None => DialError::Lost { address, reason: describe(error) },
    }
}
