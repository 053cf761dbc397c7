//! Where the simulated endpoints of one process meet: addresses, ports, and who runs at the same time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bench_core::cell::End;
use bench_core::fabric::{Concurrency, Fabric, Reachability};
use bench_core::ids::{NodeIndex, RailId};
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::time::Mono;

use crate::clock;
use crate::data::{LONGEST_SLEEP, Stop, cancelled};

/// A modelled fabric with the addresses of its ports.
#[derive(Debug)]
pub struct SimNetwork {
    fabric: Fabric,
    addresses: BTreeMap<IpAddr, (NodeIndex, RailId)>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_port: u64,
    flows: BTreeMap<u64, Flow>,
    /// The flows that run through each port of the fabric.
    running: BTreeMap<(RailId, NodeIndex, End), Vec<u64>>,
}

/// One cell between its two endpoints.
#[derive(Debug)]
struct Flow {
    rail: RailId,
    dst: NodeIndex,
    src: Option<(NodeIndex, Reachability)>,
    source: EndState,
    destination: EndState,
    /// The most cells that ran through its ports while it did.
    peak: Concurrency,
    /// The concurrency that the first end computed with: the second must not come to another figure.
    settled: Option<Concurrency>,
}

/// How far one end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndState {
    Waiting,
    Running,
    Complete,
    /// Dropped before it was complete.
    Gone,
}

/// What came of a source's connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Both ends are armed.
    Made {
        /// The destination's node.
        dst: NodeIndex,
    },
    /// No such port, or one of another rail, or one that has its source.
    Refused,
    /// The model lets nothing pass between the two.
    Cut,
}

/// Whether the other end is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerEnd {
    /// It is, or has ended well.
    Present,
    /// It was dropped before its measurement.
    Gone,
}

impl SimNetwork {
    /// A network of `fabric`, in which each address is a port of a node on a rail.
    pub fn new(
        fabric: Fabric,
        addresses: impl IntoIterator<Item = (IpAddr, NodeIndex, RailId)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            fabric,
            addresses: addresses.into_iter().map(|(address, node, rail)| (address, (node, rail))).collect(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(super) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub(super) fn place_of(&self, address: IpAddr) -> Option<(NodeIndex, RailId)> {
        let spec = self.fabric.spec();
        self.addresses
            .get(&address)
            .copied()
            .filter(|(node, rail)| node.0 < spec.nodes && rail.0 < spec.rails)
    }

    /// Opens a port at a destination.
    pub(super) fn open(&self, dst: NodeIndex, rail: RailId) -> u64 {
        let mut state = self.lock();
        let port = state.next_port;
        state.next_port += 1;
        let flow = Flow {
            rail,
            dst,
            src: None,
            source: EndState::Waiting,
            destination: EndState::Waiting,
            peak: Concurrency::ALONE,
            settled: None,
        };
        state.flows.insert(port, flow);
        port
    }

    /// Connects a source to a port.
    pub(super) fn link(&self, port: u64, src: NodeIndex, rail: RailId) -> Link {
        let mut state = self.lock();
        let Some(flow) = state.flows.get_mut(&port).filter(|flow| flow.rail == rail && flow.src.is_none())
        else {
            return Link::Refused;
        };
        let reachability = self.fabric.reachability(rail, src, flow.dst);
        flow.src = Some((src, reachability));
        self.changed.notify_all();
        match reachability {
            Reachability::Open => Link::Made { dst: flow.dst },
            Reachability::Cut => {
                flow.source = EndState::Gone;
                Link::Cut
            }
        }
    }

    /// Waits until a source has connected to a port.
    pub(super) fn accept(
        &self,
        port: u64,
        deadline: Mono,
        stop: &Stop,
    ) -> Result<(NodeIndex, Reachability), Failure> {
        let mut state = self.lock();
        loop {
            if let Some(source) = state.flows.get(&port).and_then(|flow| flow.src) {
                return Ok(source);
            }
            let left = deadline.since(clock::now());
            if stop.is_set() {
                return Err(cancelled(Phase::Connect));
            }
            if left.is_zero() {
                return Err(Failure {
                    kind: FailureKind::Timeout,
                    phase: Phase::Connect,
                    detail: format!("nobody connected to simulated port {port} in time"),
                    remedy: Some("look at the source's end of this cell".to_owned()),
                });
            }
            (state, _) = self
                .changed
                .wait_timeout(state, left.min(LONGEST_SLEEP))
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that one end runs. The first end of a flow raises the concurrency of everyone at its two ports.
    pub(super) fn enter(&self, port: u64, end: End) {
        let state = &mut *self.lock();
        let Some(flow) = state.flows.get_mut(&port) else {
            return;
        };
        let first = flow.source != EndState::Running && flow.destination != EndState::Running;
        *flow.end(end) = EndState::Running;
        let Some((src, _)) = flow.src.filter(|_| first) else {
            return;
        };
        for (node, side) in [(src, End::Source), (flow.dst, End::Destination)] {
            let sharers = state.running.entry((flow.rail, node, side)).or_default();
            if !sharers.contains(&port) {
                sharers.push(port);
            }
        }
        let (rail, dst) = (flow.rail, flow.dst);
        state.raise_peaks(rail, src, End::Source);
        state.raise_peaks(rail, dst, End::Destination);
    }

    /// What a running end needs to know: with how many it shares, and whether its peer is there.
    pub(super) fn state_of(&self, port: u64, end: End) -> (Concurrency, PeerEnd) {
        let mut state = self.lock();
        let Some(flow) = state.flows.get_mut(&port) else {
            return (Concurrency::ALONE, PeerEnd::Gone);
        };
        let peer = match *flow.end(end.other()) {
            EndState::Waiting | EndState::Running | EndState::Complete => PeerEnd::Present,
            EndState::Gone => PeerEnd::Gone,
        };
        (*flow.settled.get_or_insert(flow.peak), peer)
    }

    /// Notes that one end has its measurement.
    pub(super) fn complete(&self, port: u64, end: End) {
        if let Some(flow) = self.lock().flows.get_mut(&port) {
            *flow.end(end) = EndState::Complete;
        }
    }

    /// Forgets one end; the flow goes with the second, its ports are free with the first.
    pub(super) fn leave(&self, port: u64, end: End) {
        let state = &mut *self.lock();
        let Some(flow) = state.flows.get_mut(&port) else {
            return;
        };
        if *flow.end(end) != EndState::Complete {
            *flow.end(end) = EndState::Gone;
        }
        let ports = [
            flow.src.map(|(src, _)| (flow.rail, src, End::Source)),
            Some((flow.rail, flow.dst, End::Destination)),
        ];
        for key in ports.into_iter().flatten() {
            if let Some(sharers) = state.running.get_mut(&key) {
                sharers.retain(|other| *other != port);
            }
        }
        let over = |end| matches!(end, EndState::Complete | EndState::Gone);
        if (over(flow.source) || flow.src.is_none()) && over(flow.destination) {
            state.flows.remove(&port);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn raise_peaks(&mut self, rail: RailId, node: NodeIndex, side: End) {
        let Some(sharers) = self.running.get(&(rail, node, side)) else {
            return;
        };
        let count = u32::try_from(sharers.len()).unwrap_or(u32::MAX);
        for port in sharers {
            if let Some(flow) = self.flows.get_mut(port) {
                let peak = match side {
                    End::Source => &mut flow.peak.at_source,
                    End::Destination => &mut flow.peak.at_destination,
                };
                *peak = count.max(*peak);
            }
        }
    }
}

impl Flow {
    fn end(&mut self, end: End) -> &mut EndState {
        match end {
            End::Source => &mut self.source,
            End::Destination => &mut self.destination,
        }
    }
}
