//! What the machine must know of its mesh.

use std::time::Duration;

use bench_core::ids::{NodeId, NodeIndex};

/// What the machine must know of its mesh. Fixed for a mesh generation.
#[derive(Clone, Debug)]
pub struct Config {
    /// The roster in order.
    pub roster: Vec<NodeId>,
    /// The electors in order: a majority of them holds every decision and every result.
    pub electors: Vec<NodeIndex>,
    /// Rails of this node. All nodes of a run need as many, so a plan that names another is refused at once.
    pub rails: u16,
    /// How long a run waits for members that have not joined, from the election on.
    pub join_timeout: Duration,
}

/// How long a node may take to tell its inventory: it reads sysfs and starts one probe process.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a new coordinator waits for nodes that it has not heard a word of. They may have died with the old one;
/// they still take part when they answer later. Part of the 3 s from a kill to the first start of the new epoch.
pub(crate) const RECOVERY_PATIENCE: Duration = Duration::from_millis(800);

/// How long it waits for the journals of nodes that have begun to answer: as long as one answer may take.
pub(crate) const RECOVERY_LIMIT: Duration = COLLECT_TIMEOUT;

/// How long an elector may take to keep one batch of a result: 8 MiB over 1 Gb/s and a slow disk.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause before an elector that did not keep a batch is asked again.
pub(crate) const STORE_PAUSE: Duration = Duration::from_millis(500);

/// How long a majority of the electors may take to keep a result before the run ends without it: six tries of an
/// elector that does not answer.
pub(crate) const STORE_LIMIT: Duration = Duration::from_secs(30);

/// How long after a round's last traffic its observations may take to arrive. Above the worker supervision's own
/// limits (2 s peer grace, 5 s without a pong), so that a hung worker is named by its agent and not by this deadline.
pub(crate) const FINISH_GRACE: Duration = Duration::from_secs(10);

/// How much longer than an agent's own limit the coordinator waits for a round to be armed.
pub(crate) const PREPARE_GRACE: Duration = Duration::from_secs(2);

/// How long a returned node may take to send what its journal holds.
pub(crate) const COLLECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time from sending `start` to the first traffic that a run begins with: the message must reach every agent and every
/// worker's thread must be woken before the instant. Measured on a loaded 2-core machine with 8 agents: 99 % within 2 ms.
pub(crate) const START_LEAD: Duration = Duration::from_millis(3);

/// Longest such time: a mesh that takes longer to tell a start is not one to measure in rounds.
pub(crate) const MAX_START_LEAD: Duration = Duration::from_millis(100);

/// Shortest time that an end keeps sending after its window; the clock error comes on top, twice.
pub(crate) const MIN_TAIL: Duration = Duration::from_millis(1);

/// Largest clock error that lead and tail allow for; a larger one makes the round's figures `not concurrent` anyway.
pub(crate) const MAX_CLOCK_ERROR: Duration = Duration::from_millis(50);

/// How long an agent may take to forget a round.
pub(crate) const ABORT_TIMEOUT: Duration = Duration::from_secs(5);
