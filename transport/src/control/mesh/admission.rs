//! The hello of a comer: nothing else is read from it before it is welcome.

use std::net::SocketAddr;
use std::sync::Arc;

use bench_core::ids::{Epoch, NodeId};
use bench_core::message::{Hello, HelloReply, Refusal, Role};
use quinn::SendStream;
use rustls::pki_types::CertificateDer;
use tokio::time::timeout;
use tracing::debug;

use super::close::{CloseCode, canonical};
use super::link::{Connection, Direction, Link, Peer};
use super::{Shared, serve};
use crate::control::identity::{Holder, HolderError};
use crate::control::wire::{self, Blame, FrameKind, WireError};

/// Judges an authenticated connection; serves it to its end if it is welcome.
pub(super) async fn judge(shared: Arc<Shared>, quic: quinn::Connection) {
    let address = canonical(quic.remote_address());
    let (hello, reply) = match timeout(shared.limits.hello, read_hello(&quic)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(error)) if error.blame() == Blame::Sender => return serve::punish(&shared, &quic, &error),
        Ok(Err(error)) => return debug!("{address} left before its hello: {error}"),
        Err(_) => {
            quic.close(CloseCode::Misbehaviour.into(), b"no hello in time");
            return shared.alarm.raise(
                address,
                "connected and said no hello in time",
                "the connection is closed; what runs there is not a sound agent of this build",
            );
        }
    };
    match examine(&shared, &quic, &hello, address).await {
        Verdict::Welcome { link, epoch } => welcome(shared, link, epoch, reply).await,
        Verdict::Itself => {
            // The dialer learns from the answer that it has called itself, and hangs up.
            send_reply(&shared, reply, &welcome_message(&shared, None)).await;
            let _ = timeout(shared.limits.hello, quic.closed()).await;
        }
        Verdict::Refused(refusal) => refuse(&shared, &quic, reply, refusal).await,
    }
}

/// Whom a verified connection's certificate names.
pub(super) fn holder(quic: &quinn::Connection) -> Result<Holder, HolderError> {
    let chain =
        quic.peer_identity().and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
    match chain.as_deref().and_then(|chain| chain.first()) {
        Some(leaf) => Holder::of(leaf),
        None => Err(HolderError::Nameless),
    }
}

/// What became of a hello.
enum Verdict {
    Welcome { link: Arc<Link>, epoch: Option<Epoch> },
    Itself,
    Refused(Refusal),
}

async fn read_hello(quic: &quinn::Connection) -> Result<(Hello, SendStream), WireError> {
    let (send, mut recv) = quic.accept_bi().await.map_err(|e| WireError::Stream(e.into()))?;
    let hello = wire::read(&mut recv, &[FrameKind::Hello]).await?;
    Ok((hello, send))
}

/// Build and mesh first, since they explain most other differences; the question to a living rival last.
async fn examine(shared: &Shared, quic: &quinn::Connection, hello: &Hello, address: SocketAddr) -> Verdict {
    let (here, role) = (own_name(shared), &hello.role);
    let refusal = basics(shared, quic, hello, here).err();
    if let Some(refusal) = refusal {
        return Verdict::Refused(refusal);
    }
    let epoch = match shared.service.admit(role) {
        Ok(epoch) => epoch,
        Err(refusal) => return Verdict::Refused(refusal),
    };
    let peer = match role {
        Role::Client => Peer::Client { address },
        Role::Agent { node, boot, .. } => Peer::Agent { node: node.clone(), boot: *boot, address },
    };
    if let (Role::Agent { node, boot, .. }, Role::Agent { node: name, boot: own, .. }) = (role, &shared.role)
        && node == name
    {
        return match boot == own {
            true => Verdict::Itself,
            false => Verdict::Refused(Refusal::Duplicate {
                name: node.clone(),
                address: own_address(shared, quic),
                boot: *own,
            }),
        };
    }
    let link = Link::new(quic.clone(), peer, Direction::Inbound, None);
    match shared.registry.enter(&link, shared.limits.ping).await {
        Ok(()) => Verdict::Welcome { link, epoch },
        Err(taken) => Verdict::Refused(Refusal::Duplicate {
            name: link.peer.node().unwrap_or(here).clone(),
            address: taken.address.to_string(),
            boot: taken.boot,
        }),
    }
}

fn basics(shared: &Shared, quic: &quinn::Connection, hello: &Hello, here: &NodeId) -> Result<(), Refusal> {
    if hello.build != shared.build {
        return Err(Refusal::Build { node: here.clone(), theirs: shared.build, ours: hello.build });
    }
    let mesh = shared.identity.mesh_id();
    if hello.mesh != mesh {
        return Err(Refusal::Mesh { node: here.clone(), theirs: mesh, ours: hello.mesh });
    }
    let holder = holder(quic);
    match (&hello.role, &holder) {
        (Role::Client, _) => Ok(()),
        (Role::Agent { node, .. }, Ok(Holder::Node(certified))) if certified == node => Ok(()),
        (Role::Agent { node, .. }, holder) => Err(Refusal::Certificate {
            certificate: match holder {
                Ok(holder) => holder.to_string(),
                Err(error) => error.to_string(),
            },
            name: node.clone(),
        }),
    }
}

async fn welcome(shared: Arc<Shared>, link: Arc<Link>, epoch: Option<Epoch>, reply: SendStream) {
    send_reply(&shared, reply, &welcome_message(&shared, epoch)).await;
    shared.service.connected(Connection::new(Arc::clone(&link)));
    let reason = serve::run(Arc::clone(&shared), Arc::clone(&link)).await;
    shared.registry.leave(&link);
    shared.service.lost(&link.peer, &reason);
}

async fn refuse(shared: &Shared, quic: &quinn::Connection, reply: SendStream, refusal: Refusal) {
    shared.alarm.raise(quic.remote_address(), "refused and told", &refusal.to_string());
    send_reply(shared, reply, &HelloReply::Refused(refusal)).await;
    // The dialer hangs up when it has read why; closing first could overtake the answer.
    let _ = timeout(shared.limits.farewell, quic.closed()).await;
    quic.close(CloseCode::Refused.into(), b"the hello was refused");
}

/// Writes the answer to a hello. A dialer that does not take it finds its connection closed, which says enough.
async fn send_reply(shared: &Shared, mut stream: SendStream, reply: &HelloReply) {
    let frame =
        wire::frame(FrameKind::HelloReply, reply).expect("an answer to a hello is shorter than its limit");
    match timeout(shared.limits.hello, stream.write_all(&frame)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!("the answer to a hello was not taken: {error}"),
        Err(_) => debug!("the answer to a hello was not taken in time"),
    }
}

fn welcome_message(shared: &Shared, epoch: Option<Epoch>) -> HelloReply {
    match &shared.role {
        Role::Agent { node, boot, .. } => HelloReply::Welcome { node: node.clone(), boot: *boot, epoch },
        Role::Client => unreachable!("a client's endpoint accepts no connections"),
    }
}

fn own_name(shared: &Shared) -> &NodeId {
    match &shared.role {
        Role::Agent { node, .. } => node,
        Role::Client => unreachable!("a client's endpoint accepts no connections"),
    }
}

/// Where the peer reaches this agent: the address that its packets came to.
fn own_address(shared: &Shared, quic: &quinn::Connection) -> String {
    match (quic.local_ip(), shared.endpoint.local_addr()) {
        (Some(ip), Ok(local)) => canonical(SocketAddr::new(ip, local.port())).to_string(),
        (None, Ok(local)) => canonical(local).to_string(),
        (_, Err(_)) => "this host".to_owned(),
    }
}
