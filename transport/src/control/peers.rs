//! Connections to other agents on demand, at most so many at a time.
//!
//! The mesh is a star: agents keep connections to the electors only. For a cell's handshake two others talk directly,
//! through a connection that is opened when it is first needed and closed when others have been needed since.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bench_core::ids::NodeId;
use tokio::sync::watch;

use super::mesh::{Connection, DialError, Link, Mesh};

/// A bounded set of connections that were dialed on demand; the least recently used goes first.
///
/// A connection that is pushed out leaves the set at once, and is closed as soon as nobody uses it. Cheap to clone.
/// When the last clone is dropped, its connections are closed.
#[derive(Clone, Debug)]
pub struct PeerCache {
    inner: Arc<Inner>,
}

impl PeerCache {
    /// An empty cache of at most `bound` connections.
    pub fn new(mesh: Mesh, bound: NonZeroUsize) -> Self {
        Self { inner: Arc::new(Inner { mesh, bound, slots: Mutex::default() }) }
    }

    /// A connection to `node`, which listens at `addr`: any that is open already, else a new one.
    ///
    /// Callers that ask at the same time share one dial and its outcome.
    ///
    /// # Errors
    /// [`DialError`]. The next call tries anew.
    pub async fn get(&self, node: &NodeId, addr: SocketAddr) -> Result<Connection, DialError> {
        let mut dialing = match self.inner.look(node) {
            Look::Open(connection) => return Ok(connection),
            Look::Dialing(dialing) => dialing,
            Look::Absent(result) => {
                let dialing = result.subscribe();
                // A task of its own: who waits may give up without the others losing the dial.
                tokio::spawn(Arc::clone(&self.inner).dial(node.clone(), addr, result));
                dialing
            }
        };
        let outcome = dialing.wait_for(Option::is_some).await;
        match outcome.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            Ok(None) | Err(_) => {
                Err(DialError::Lost { address: addr, reason: "the dial was given up".to_owned() })
            }
        }
    }

    /// How many connections it holds.
    pub fn len(&self) -> usize {
        let slots = self.inner.lock();
        slots.by_node.values().filter(|slot| slot.link().is_some()).count()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bound of a cache unless told otherwise: the partners of a node on eight rails over several rounds, 4 MiB at the
/// 62 KiB that an idle connection was measured to cost.
pub const DEFAULT_BOUND: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");

#[derive(Debug)]
struct Inner {
    mesh: Mesh,
    bound: NonZeroUsize,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    by_node: HashMap<NodeId, Slot>,
    /// Counts uses; a slot's `used` is its value at the last one.
    clock: u64,
}

type Outcome = Option<Result<Connection, DialError>>;

#[derive(Debug)]
enum Slot {
    Dialing(watch::Receiver<Outcome>),
    Open { link: Arc<Link>, used: u64 },
}

impl Slot {
    fn link(&self) -> Option<&Arc<Link>> {
        match self {
            Self::Open { link, .. } => Some(link),
            Self::Dialing(_) => None,
        }
    }
}

enum Look {
    Open(Connection),
    Dialing(watch::Receiver<Outcome>),
    Absent(watch::Sender<Outcome>),
}

impl Inner {
    /// What there is for a node. If there is nothing, the caller has to dial: the slot says so to all others.
    fn look(&self, node: &NodeId) -> Look {
        let mut slots = self.lock();
        slots.clock += 1;
        let now = slots.clock;
        match slots.by_node.get_mut(node) {
            Some(Slot::Open { link, used }) if link.is_open() => {
                *used = now;
                return Look::Open(Connection::new(Arc::clone(link)));
            }
            Some(Slot::Dialing(dialing)) => return Look::Dialing(dialing.clone()),
            Some(Slot::Open { .. }) | None => {}
        }
        if let Some(connection) = self.mesh.connected_to(node) {
            return Look::Open(connection);
        }
        let (result, dialing) = watch::channel(None);
        slots.by_node.insert(node.clone(), Slot::Dialing(dialing));
        Look::Absent(result)
    }

    async fn dial(self: Arc<Self>, node: NodeId, addr: SocketAddr, result: watch::Sender<Outcome>) {
        let outcome = self.mesh.dial(addr, Some(&node)).await;
        match &outcome {
            Ok(connection) => self.keep(node, Arc::clone(connection.link())),
            Err(_) => {
                self.lock().by_node.remove(&node);
            }
        }
        result.send_replace(Some(outcome));
    }

    fn keep(&self, node: NodeId, link: Arc<Link>) {
        let mut slots = self.lock();
        slots.clock += 1;
        let used = slots.clock;
        slots.by_node.insert(node, Slot::Open { link, used });
        while let Some(evicted) = slots.evict(self.bound.get()) {
            tokio::spawn(async move { evicted.close_when_unused("not needed of late").await });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// Takes out the least recently used connection if there are more than `bound`.
    fn evict(&mut self, bound: usize) -> Option<Arc<Link>> {
        self.by_node.retain(|_, slot| slot.link().is_none_or(|link| link.is_open()));
        let open: Vec<(u64, &NodeId)> = self
            .by_node
            .iter()
            .filter_map(|(node, slot)| match slot {
                Slot::Open { used, .. } => Some((*used, node)),
                Slot::Dialing(_) => None,
            })
            .collect();
        if open.len() <= bound {
            return None;
        }
        let oldest = open.into_iter().min().map(|(_, node)| node.clone())?;
        self.by_node.remove(&oldest)?.link().cloned()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for slot in self.lock().by_node.values() {
            if let Some(link) = slot.link() {
                Connection::new(Arc::clone(link)).close("not needed any more");
            }
        }
    }
}

#[cfg(test)]
mod tests;
