//! Serving a connection: each stream that the peer opens is one request.

use std::sync::Arc;

use bench_core::message::{Request, Response};
use quinn::{RecvStream, SendStream};
use tokio::time::timeout;
use tracing::debug;

use super::Shared;
use super::close::CloseCode;
use super::link::{Link, Peer};
use crate::control::wire::{self, Blame, FrameKind, WireError};

/// Answers requests until the connection is closed, and says why it was.
pub(super) async fn run(shared: Arc<Shared>, link: Arc<Link>) -> String {
    loop {
        match link.quic.accept_bi().await {
            Ok((send, recv)) => {
                tokio::spawn(answer(Arc::clone(&shared), Arc::clone(&link), send, recv));
            }
            Err(error) => return link.describe(&error),
        }
    }
}

/// Closes a connection whose peer broke the rules, with one warning.
pub(super) fn punish(shared: &Shared, quic: &quinn::Connection, error: &WireError) {
    shared.alarm.raise(
        quic.remote_address(),
        &error.to_string(),
        "the connection is closed; what runs there is not a sound agent of this build",
    );
    quic.close(CloseCode::Misbehaviour.into(), error.to_string().as_bytes());
}

async fn answer(shared: Arc<Shared>, link: Arc<Link>, mut send: SendStream, mut recv: RecvStream) {
    let _in_use = link.hold();
    let allowed: &[FrameKind] = match link.peer {
        Peer::Agent { .. } => &[FrameKind::Request, FrameKind::Batch],
        Peer::Client { .. } => &[FrameKind::Request],
    };
    let reading = wire::read(&mut recv, allowed);
    let request = match timeout(shared.limits.request, reading).await {
        Ok(Ok(request)) => request,
        Ok(Err(error)) if error.blame() == Blame::Sender => return punish(&shared, &link.quic, &error),
        Ok(Err(error)) => return debug!("{} gave up a request: {error}", link.peer),
        Err(_) => return debug!("{} did not finish a request in time", link.peer),
    };
    let response = match request {
        Request::Ping => Response::Pong,
        request => shared.service.call(link.peer.clone(), request).await,
    };
    match encode(&response) {
        Ok(frame) => {
            if let Err(error) = send.write_all(&frame).await {
                debug!("{} did not take an answer: {error}", link.peer);
            }
        }
        Err(error) => debug!("an answer for {} cannot be written: {error}", link.peer),
    }
}

/// The answer's frame; one that is too long becomes the reason why there is none.
fn encode(response: &Response) -> Result<Vec<u8>, WireError> {
    wire::frame(frame_kind(response), response).or_else(|error| {
        let reason = format!("the answer cannot be sent: {error}");
        wire::frame(FrameKind::Response, &Response::Invalid { reason })
    })
}

fn frame_kind(response: &Response) -> FrameKind {
    match response {
        Response::Observations(_) | Response::Records(_) | Response::Inventory(_) => FrameKind::Batch,
        Response::Pong
        | Response::Clock { .. }
        | Response::NoSuchRails { .. }
        | Response::Prepared(_)
        | Response::Done
        | Response::Handshake(_)
        | Response::Submitted(_)
        | Response::Status(_)
        | Response::Attended(_)
        | Response::AlreadyOver { .. }
        | Response::Commander(_)
        | Response::Raft { .. }
        | Response::StaleEpoch { .. }
        | Response::NoCoordinator { .. }
        | Response::UnknownRun { .. }
        | Response::Invalid { .. }
        | Response::Refused(_) => FrameKind::Response,
    }
}
