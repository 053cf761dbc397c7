//! Taking in connections: each handshake is a task with a time limit, so no peer can hold up another.

use std::sync::Arc;

use quinn::{ConnectionError, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::close::{TlsFault, describe};
use super::{Shared, admission};

/// Accepts until the endpoint is closed.
pub(super) async fn run(shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(shared.limits.handshakes));
    while let Some(incoming) = shared.endpoint.accept().await {
        let address = incoming.remote_address();
        if !shared.access.allows(address) {
            incoming.refuse();
            shared.alarm.raise(
                address,
                "refused, this mesh has no key and serves its own host only",
                "run `railmesh keygen mesh.key`, copy the file to every node and start with --key mesh.key",
            );
            continue;
        }
        if places.available_permits() <= shared.limits.handshakes / 2 && incoming.may_retry() {
            // Under load an address has to prove itself first: a flood from forged ones then takes no place.
            // It fails only for an address that has done so already.
            let _ = incoming.retry();
            continue;
        }
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        tokio::spawn(handshake(Arc::clone(&shared), incoming, place));
    }
}

async fn handshake(shared: Arc<Shared>, incoming: Incoming, place: OwnedSemaphorePermit) {
    let address = incoming.remote_address();
    let outcome = match incoming.accept() {
        Ok(connecting) => timeout(shared.limits.handshake, connecting).await,
        Err(error) => Ok(Err(error)),
    };
    drop(place);
    match outcome {
        Ok(Ok(quic)) => admission::judge(shared, quic).await,
        Ok(Err(error)) => {
            let (what, remedy) = explain(&error);
            shared.alarm.raise(address, &what, remedy);
        }
        Err(_) => shared.alarm.raise(
            address,
            "began a handshake and did not finish it in time",
            "if an agent runs there, a firewall or the path MTU loses its packets; else it is a stranger",
        ),
    }
}

/// What a failed handshake of a comer means, and what to do.
fn explain(error: &ConnectionError) -> (String, &'static str) {
    let (what, remedy) = match TlsFault::of(error) {
        Some(TlsFault::Key) => ("holds another mesh key", "give every node the same key file"),
        Some(TlsFault::NoCertificate) => (
            "shows no certificate",
            "it is not railmesh, or not of this build: nothing to do if it does not belong here",
        ),
        Some(TlsFault::Build) => ("runs another build", "copy the same file to every node"),
        Some(TlsFault::Other) | None => {
            return (
                format!("the handshake failed, {}", describe(error)),
                "nothing to do if it does not belong here",
            );
        }
    };
    (what.to_owned(), remedy)
}
