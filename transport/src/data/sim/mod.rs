//! The simulated backend: figures from [`bench_core::fabric`], for tests and rehearsals of thousands of cells.
//!
//! No byte moves and a window takes no time. An endpoint waits for its peer, for the start (so that every cell of the
//! round is known and shares its ports), and computes. The same fabric seed gives the same figures.

mod figures;
mod network;

use std::net::IpAddr;
use std::sync::Arc;

use bench_core::cell::End;
use bench_core::fabric::Reachability;
use bench_core::ids::{NodeIndex, RailId};
use bench_core::measure::Measurement;
use bench_core::message::{CellTask, EndpointInfo, Peer};
use bench_core::node::Capability;
use bench_core::plan::Spread;
use bench_core::record::{Evidence, Failure, FailureKind, Phase};

pub use network::SimNetwork;

use self::figures::Figures;
use self::network::{Link, PeerEnd};
use super::{Backend, Endpoint, Stop, Timing, out_of_order, refuse_late_start, unless_stopped, wait_until};
use crate::clock;

/// Measures on a modelled fabric.
#[derive(Clone, Debug)]
pub struct Sim {
    network: Arc<SimNetwork>,
}

impl Sim {
    /// A backend whose endpoints meet in `network`.
    pub fn new(network: Arc<SimNetwork>) -> Self {
        Self { network }
    }
}

impl Backend for Sim {
    fn capability(&self) -> Capability {
        Capability { name: "sim".to_owned(), absent: None }
    }

    fn prepare(&self, task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
        let addr = task.address()?;
        let (node, rail) = self.network.place_of(addr).ok_or_else(|| Failure {
            kind: FailureKind::Unsupported,
            phase: Phase::Prepare,
            detail: format!("{addr} is no address of the modelled fabric"),
            remedy: Some("give SimNetwork every node's rail addresses".to_owned()),
        })?;
        let port = match task.end {
            End::Source => None,
            End::Destination => Some(self.network.open(node, rail)),
        };
        Ok(Box::new(SimEndpoint {
            network: Arc::clone(&self.network),
            task: task.clone(),
            addr,
            node,
            rail,
            port,
            peer: None,
            step: Step::Prepared,
        }))
    }
}

/// One end of one simulated cell.
#[derive(Debug)]
struct SimEndpoint {
    network: Arc<SimNetwork>,
    task: CellTask,
    addr: IpAddr,
    node: NodeIndex,
    rail: RailId,
    /// The flow, which the destination opened; a source knows it once it has connected.
    port: Option<u64>,
    /// The peer's node, once armed.
    peer: Option<NodeIndex>,
    step: Step,
}

/// How far an endpoint has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Prepared,
    Armed,
    Spent,
}

impl Endpoint for SimEndpoint {
    fn info(&self) -> Option<EndpointInfo> {
        match self.task.end {
            End::Source => None,
            End::Destination => self.port.map(|port| EndpointInfo::Sim { port }),
        }
    }

    fn connect(&mut self, peer: &Peer, stop: &Stop) -> Result<(), Failure> {
        if std::mem::replace(&mut self.step, Step::Spent) != Step::Prepared {
            return Err(out_of_order(Phase::Connect));
        }
        self.task.case = peer.paced(self.task.case, self.task.end);
        match (self.task.end, &peer.endpoint, self.port) {
            (End::Source, Some(EndpointInfo::Sim { port }), None) => self.dial(*port)?,
            (End::Destination, None, Some(port)) => self.accept(port, stop)?,
            (End::Source | End::Destination, _, _) => return Err(out_of_order(Phase::Connect)),
        }
        self.step = Step::Armed;
        Ok(())
    }

    fn run(&mut self, timing: &Timing, stop: &Stop) -> Result<Measurement, Failure> {
        let (Step::Armed, Some(port), Some(peer)) =
            (std::mem::replace(&mut self.step, Step::Spent), self.port, self.peer)
        else {
            return Err(out_of_order(Phase::Armed));
        };
        refuse_late_start(timing, clock::now())?;
        let (src, dst) = match self.task.end {
            End::Source => (self.node, peer),
            End::Destination => (peer, self.node),
        };
        self.network.enter(port, self.task.end);
        wait_until(timing.at, stop)?;
        let (concurrency, peer_end) = self.network.state_of(port, self.task.end);
        match peer_end {
            PeerEnd::Present => {}
            PeerEnd::Gone => return Err(unless_stopped(self.gone(peer), stop)),
        }
        let figures =
            Figures { fabric: self.network.fabric(), task: &self.task, rail: self.rail, src, dst, timing };
        let measurement = match (self.task.case.kind.spread(), self.task.end) {
            (Spread::Bandwidth, _) => figures.bandwidth(concurrency),
            (Spread::Latency, End::Source) => figures.latency(),
            (Spread::Latency, End::Destination) => figures.responder(),
        };
        self.network.complete(port, self.task.end);
        Ok(measurement)
    }

    fn evidence(&self) -> Evidence {
        Evidence {
            device: Some(self.task.device.clone()),
            local: Some(format!("sim:{}", self.addr)),
            peer: self.peer.map(|peer| format!("sim:{peer}")),
            facts: vec![("backend".to_owned(), "sim".to_owned())],
        }
    }
}

impl SimEndpoint {
    fn dial(&mut self, port: u64) -> Result<(), Failure> {
        match self.network.link(port, self.node, self.rail) {
            Link::Made { dst } => {
                self.port = Some(port);
                self.peer = Some(dst);
                Ok(())
            }
            Link::Refused => Err(Failure {
                kind: FailureKind::Crash,
                phase: Phase::Connect,
                detail: format!(
                    "cannot connect {} to simulated port {port}: nothing listens there",
                    self.addr
                ),
                remedy: None,
            }),
            Link::Cut => Err(self.unreachable()),
        }
    }

    fn accept(&mut self, port: u64, stop: &Stop) -> Result<(), Failure> {
        let deadline = clock::now().after(self.task.connect_timeout);
        let (src, reachability) = self.network.accept(port, deadline, stop)?;
        match reachability {
            Reachability::Open => {
                self.peer = Some(src);
                Ok(())
            }
            Reachability::Cut => Err(self.unreachable()),
        }
    }

    fn unreachable(&self) -> Failure {
        Failure {
            kind: FailureKind::Timeout,
            phase: Phase::Connect,
            detail: format!(
                "{}: a part of rail {} between the ends is dead in the model",
                self.addr, self.rail
            ),
            remedy: None,
        }
    }

    fn gone(&self, peer: NodeIndex) -> Failure {
        Failure {
            kind: FailureKind::Crash,
            phase: Phase::Measure,
            detail: format!("sim:{} lost sim:{peer}: the peer's end was closed", self.addr),
            remedy: None,
        }
    }
}

impl Drop for SimEndpoint {
    fn drop(&mut self) {
        if let Some(port) = self.port {
            self.network.leave(port, self.task.end);
        }
    }
}

#[cfg(test)]
mod tests;
