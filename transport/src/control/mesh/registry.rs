//! Which agents are connected, by name: no name twice, unless it is the same process.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench_core::ids::{BootId, NodeId};
use bench_core::message::Request;
use tracing::info;

use super::close::CloseCode;
use super::link::{Direction, Link, Peer};

/// Open connections with agents. A few each: one that it dialed, one that was dialed from here.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    living: Mutex<HashMap<NodeId, Vec<Arc<Link>>>>,
}

/// A living agent has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) address: SocketAddr,
    pub(crate) boot: BootId,
}

impl Registry {
    /// Enters a connection. A client's is not kept.
    ///
    /// Another process under the same name is asked for a sign of life first: if it gives one within `ping`, the
    /// newcomer stays out, else it is closed and the newcomer takes its place. The same process coming in again
    /// replaces its older inbound connection at once.
    pub(crate) async fn enter(&self, link: &Arc<Link>, ping: Duration) -> Result<(), Taken> {
        let Peer::Agent { node, boot, .. } = &link.peer else {
            return Ok(());
        };
        while let Step::Rival { rival, taken } = self.step(link, node, *boot) {
            match rival.call(&Request::Ping, ping).await {
                Ok(_) => return Err(taken),
                Err(error) => {
                    info!("{node} has a new process {boot}: {error}");
                    rival.close(CloseCode::Replaced, "a new process of this agent has come in");
                }
            }
        }
        Ok(())
    }

    /// Forgets a connection.
    pub(crate) fn leave(&self, link: &Arc<Link>) {
        let Some(node) = link.peer.node() else { return };
        let mut living = self.lock();
        if let Some(links) = living.get_mut(node) {
            links.retain(|other| !Arc::ptr_eq(other, link));
            if links.is_empty() {
                living.remove(node);
            }
        }
    }

    /// An open connection with this agent, the latest first.
    pub(crate) fn find(&self, node: &NodeId) -> Option<Arc<Link>> {
        let living = self.lock();
        let links = living.get(node)?;
        links.iter().rev().find(|link| link.is_open()).cloned()
    }

    /// Enters the link, or names the rival that must be asked first; one look under the lock.
    fn step(&self, link: &Arc<Link>, node: &NodeId, boot: BootId) -> Step {
        let mut living = self.lock();
        let links = living.entry(node.clone()).or_default();
        links.retain(|other| other.is_open());
        for other in links.iter() {
            match &other.peer {
                Peer::Agent { boot: theirs, address, .. } if *theirs != boot => {
                    return Step::Rival {
                        rival: Arc::clone(other),
                        taken: Taken { address: *address, boot: *theirs },
                    };
                }
                Peer::Agent { .. } | Peer::Client { .. } => {}
            }
        }
        if link.direction == Direction::Inbound {
            for older in links.iter().filter(|other| other.direction == Direction::Inbound) {
                older.close(CloseCode::Replaced, "this agent has connected anew");
            }
        }
        links.push(Arc::clone(link));
        Step::Entered
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, Vec<Arc<Link>>>> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one look at the table gave.
enum Step {
    Entered,
    Rival { rival: Arc<Link>, taken: Taken },
}
