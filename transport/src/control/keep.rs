//! Keeping one connection open: dial, report, wait for its end, dial again.
//!
//! ```text
//!  dial ──ok──▶ Up ──closed──▶ Down ──┐
//!   ▲  └─error──▶ Failed ─────────────┤  prospect None: GivenUp, the end
//!   └───────────── wait (backoff) ◀───┘
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use bench_core::ids::NodeId;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::backoff::{Backoff, BackoffPolicy};
use super::mesh::{Connection, DialError, Mesh, Prospect};
use super::random;

/// News of a kept connection.
#[derive(Debug)]
pub enum LinkEvent {
    /// It is open.
    Up(Connection),
    /// It was open and is lost; it will be dialed again.
    Down {
        /// Why.
        reason: String,
    },
    /// A try failed; there will be another. The caller decides how long a [`Prospect::Uncertain`] error may last.
    Failed {
        /// Why.
        error: DialError,
        /// When the next try begins.
        retry_in: Duration,
    },
    /// A try failed and no other will follow, since somebody has to change something first.
    GivenUp {
        /// Why.
        error: DialError,
    },
}

/// A connection that is kept open until this is dropped, which closes it.
#[derive(Debug)]
pub struct KeptConnection {
    events: mpsc::Receiver<LinkEvent>,
    task: AbortHandle,
}

impl KeptConnection {
    /// Keeps a connection to `addr` open, where `expect` should answer if it is given.
    ///
    /// The channel holds [`EVENT_DEPTH`] events. When it is full, a failed try is not reported, and all else waits for
    /// room before the next dial: an open connection works on meanwhile.
    pub fn start(mesh: Mesh, addr: SocketAddr, expect: Option<NodeId>, policy: BackoffPolicy) -> Self {
        let (sender, events) = mpsc::channel(EVENT_DEPTH);
        let task = tokio::spawn(keep(mesh, addr, expect, policy, sender)).abort_handle();
        Self { events, task }
    }

    /// The next event; `None` after [`LinkEvent::GivenUp`].
    pub async fn next(&mut self) -> Option<LinkEvent> {
        self.events.recv().await
    }
}

impl Drop for KeptConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Events that wait for the owner: an owner that is a few events behind still loses none.
pub const EVENT_DEPTH: usize = 16;

async fn keep(
    mesh: Mesh,
    addr: SocketAddr,
    expect: Option<NodeId>,
    policy: BackoffPolicy,
    events: mpsc::Sender<LinkEvent>,
) {
    let mut backoff = Backoff::new(policy);
    loop {
        let wait = match mesh.dial(addr, expect.as_ref()).await {
            Ok(connection) => {
                let opened = Instant::now();
                let Ok(reason) = hold(connection, &events).await else {
                    return;
                };
                // One that breaks at once is a failure too, else two sides could open and close without pause.
                if opened.elapsed() >= policy.longest() {
                    backoff.reset();
                }
                if events.send(LinkEvent::Down { reason }).await.is_err() {
                    return;
                }
                next_wait(&mut backoff)
            }
            Err(error) if error.prospect() == Prospect::None => {
                // Without an owner there is nobody to tell.
                let _ = events.send(LinkEvent::GivenUp { error }).await;
                return;
            }
            Err(error) => {
                let retry_in = next_wait(&mut backoff);
                match events.try_send(LinkEvent::Failed { error, retry_in }) {
                    Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => retry_in,
                    Err(mpsc::error::TrySendError::Closed(_)) => return,
                }
            }
        };
        sleep(wait).await;
    }
}

/// Reports a connection and waits for its end; `Err` if there is no owner any more.
async fn hold(connection: Connection, events: &mpsc::Sender<LinkEvent>) -> Result<String, OwnerGone> {
    let guard = CloseOnDrop(connection);
    events.send(LinkEvent::Up(guard.0.clone())).await.map_err(|_| OwnerGone)?;
    Ok(guard.0.closed().await)
}

struct OwnerGone;

/// Closes the connection when the task ends, also when it is aborted.
struct CloseOnDrop(Connection);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close("not needed any more");
    }
}

fn next_wait(backoff: &mut Backoff) -> Duration {
    // Without random bytes the whole step is waited.
    let random = random::bytes().map_or(u64::MAX, u64::from_le_bytes);
    backoff.wait(random)
}

#[cfg(test)]
mod tests;
