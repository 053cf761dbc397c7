//! The modelled fabric: what nodes and rails would deliver, with seeds and faults, without a network.
//!
//! A model answers two questions: which rate does a pair get, and how long does a message take. It keeps no time and
//! no traffic; who sends when, and how many share a port, is the caller's business. The same spec and seed give the
//! same answers, on every machine.
//!
//! ```text
//!  source ──port (send share)──▶ rail ──▶ port (receive share)── destination      one line rate, one base latency
//! ```

mod fault;
mod rng;

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

pub use fault::{Fault, Place};
pub use rng::Rng;

use crate::ids::{NodeIndex, RailId};
use crate::units::BitsPerSecond;

/// What a fabric is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricSpec {
    /// How many nodes.
    pub nodes: u16,
    /// How many rails each node has.
    pub rails: u16,
    /// Line rate of every port, in each direction.
    pub line_rate: BitsPerSecond,
    /// One-way time of a small message between sound ports.
    pub base_latency: Duration,
    /// Scatter as a share, 0 to below 1: a pair's rate lies up to this share below the line rate, and a message takes
    /// on average this share of the base latency longer than that.
    pub jitter: f64,
    /// Decides the scatter.
    pub seed: u64,
    /// What is broken; effects on the same part add up.
    pub faults: Vec<Fault>,
}

/// A fabric that answers for any pair in constant time.
#[derive(Clone, Debug)]
pub struct Fabric {
    spec: FabricSpec,
    /// Rail-major: the port of node `n` on rail `r` is at `r × nodes + n`.
    ports: Vec<Condition>,
    /// Pairs with a fault of their own.
    pairs: BTreeMap<(RailId, NodeIndex, NodeIndex), Condition>,
}

/// How many cells share the two ports of a cell, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Cells that send from the source's port; 0 counts as 1.
    pub at_source: u32,
    /// Cells that send to the destination's port; 0 counts as 1.
    pub at_destination: u32,
}

/// Whether anything passes between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// It does.
    Open,
    /// A part between them is dead.
    Cut,
}

impl Fabric {
    /// Builds the fabric and applies its faults.
    ///
    /// # Errors
    /// [`FabricError`] for a share or jitter out of range, or a fault outside the fabric.
    pub fn new(spec: FabricSpec) -> Result<Self, FabricError> {
        if !(0.0..1.0).contains(&spec.jitter) {
            return Err(FabricError::Jitter(spec.jitter));
        }
        if !(spec.line_rate.0.is_finite() && spec.line_rate.0 > 0.0) {
            return Err(FabricError::LineRate(spec.line_rate));
        }
        let ports = vec![Condition::SOUND; usize::from(spec.nodes) * usize::from(spec.rails)];
        let mut fabric = Self { spec, ports, pairs: BTreeMap::new() };
        for fault in fabric.spec.faults.clone() {
            fabric.apply(&fault)?;
        }
        Ok(fabric)
    }

    /// What it was made from.
    pub fn spec(&self) -> &FabricSpec {
        &self.spec
    }

    /// Whether anything passes from `src` to `dst` on `rail`.
    ///
    /// # Panics
    /// If the fabric has no such rail or node; so do [`Fabric::rate`] and [`Fabric::latency_sample`].
    pub fn reachability(&self, rail: RailId, src: NodeIndex, dst: NodeIndex) -> Reachability {
        let open = [self.port(rail, src), self.port(rail, dst), self.pair(rail, src, dst)]
            .iter()
            .all(|part| part.reachability == Reachability::Open);
        if open { Reachability::Open } else { Reachability::Cut }
    }

    /// The payload rate of one cell; zero where nothing passes. Cells that share a port share its rate equally.
    pub fn rate(
        &self,
        rail: RailId,
        src: NodeIndex,
        dst: NodeIndex,
        concurrency: Concurrency,
    ) -> BitsPerSecond {
        if self.reachability(rail, src, dst) == Reachability::Cut {
            return BitsPerSecond(0.0);
        }
        let line = self.spec.line_rate.0;
        let pair = self.pair(rail, src, dst);
        let sending = line * self.port(rail, src).send / f64::from(concurrency.at_source.max(1));
        let receiving = line * self.port(rail, dst).receive / f64::from(concurrency.at_destination.max(1));
        let path = line * pair.send * pair.receive;
        let scatter = 1.0 - self.spec.jitter * self.pair_rng(rail, src, dst).unit();
        BitsPerSecond(sending.min(receiving).min(path) * scatter)
    }

    /// The one-way time of one small message: base, what faults add, and an exponential tail drawn from `rng`.
    pub fn latency_sample(&self, rng: &mut Rng, rail: RailId, src: NodeIndex, dst: NodeIndex) -> Duration {
        let fixed = self.spec.base_latency
            + self.port(rail, src).extra_latency
            + self.port(rail, dst).extra_latency
            + self.pair(rail, src, dst).extra_latency;
        fixed + self.spec.base_latency.mul_f64(self.spec.jitter * rng.exponential())
    }

    /// A generator for one use, such as the samples of one cell: a function of the seed, the pair and `purpose`.
    pub fn rng(&self, rail: RailId, src: NodeIndex, dst: NodeIndex, purpose: u64) -> Rng {
        Rng::of(&[self.spec.seed, rail.0.into(), src.0.into(), dst.0.into(), purpose])
    }

    fn pair_rng(&self, rail: RailId, src: NodeIndex, dst: NodeIndex) -> Rng {
        self.rng(rail, src, dst, RATE_PURPOSE)
    }

    fn port(&self, rail: RailId, node: NodeIndex) -> &Condition {
        let index = self.port_index(rail, node).expect("a rail and a node of this fabric");
        &self.ports[index]
    }

    fn pair(&self, rail: RailId, src: NodeIndex, dst: NodeIndex) -> &Condition {
        self.pairs.get(&(rail, src, dst)).unwrap_or(&Condition::SOUND)
    }

    fn port_index(&self, rail: RailId, node: NodeIndex) -> Option<usize> {
        (rail.0 < self.spec.rails && node.0 < self.spec.nodes)
            .then(|| rail.usize() * usize::from(self.spec.nodes) + node.usize())
    }

    fn apply(&mut self, fault: &Fault) -> Result<(), FabricError> {
        fault.check()?;
        let place = fault.place();
        let outside = || FabricError::Outside(place);
        match place {
            Place::Port { node, rail } => {
                let index = self.port_index(rail, node).ok_or_else(outside)?;
                self.ports[index].suffer(fault);
            }
            Place::Node { node } => {
                for rail in 0..self.spec.rails {
                    let index = self.port_index(RailId(rail), node).ok_or_else(outside)?;
                    self.ports[index].suffer(fault);
                }
            }
            Place::Rail { rail } => {
                for node in 0..self.spec.nodes {
                    let index = self.port_index(rail, NodeIndex(node)).ok_or_else(outside)?;
                    self.ports[index].suffer(fault);
                }
            }
            Place::Pair { rail, src, dst } => {
                self.port_index(rail, src).ok_or_else(outside)?;
                self.port_index(rail, dst).ok_or_else(outside)?;
                self.pairs.entry((rail, src, dst)).or_insert(Condition::SOUND).suffer(fault);
            }
        }
        Ok(())
    }
}

impl Concurrency {
    /// Nobody else uses either port.
    pub const ALONE: Self = Self { at_source: 1, at_destination: 1 };
}

/// Why a fabric cannot be built.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FabricError {
    /// Jitter outside 0 to below 1.
    #[error("jitter {0} is not a share from 0 to below 1")]
    Jitter(f64),
    /// A line rate that is not positive.
    #[error("line rate {0} is not positive")]
    LineRate(BitsPerSecond),
    /// A share outside 0 to 1.
    #[error("share {share} of the fault at {place} is not from 0 to 1; a part that passes nothing is dead")]
    Share {
        /// Where.
        place: Place,
        /// The refused share.
        share: f64,
    },
    /// A fault at a part that the fabric does not have.
    #[error("the fault at {0} lies outside the fabric: nodes and rails count from 0")]
    Outside(Place),
}

/// The state of one port or pair.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Condition {
    /// Share of the line rate that it sends.
    send: f64,
    /// Share of the line rate that it receives.
    receive: f64,
    /// One-way time on top of the base.
    extra_latency: Duration,
    reachability: Reachability,
}

impl Condition {
    const SOUND: Self =
        Self { send: 1.0, receive: 1.0, extra_latency: Duration::ZERO, reachability: Reachability::Open };

    fn suffer(&mut self, fault: &Fault) {
        match *fault {
            Fault::SlowSend { share, .. } => self.send *= share,
            Fault::SlowReceive { share, .. } => self.receive *= share,
            Fault::ExtraLatency { extra, .. } => self.extra_latency += extra,
            Fault::Dead { .. } => self.reachability = Reachability::Cut,
        }
    }
}

/// Keeps the draw of a pair's rate apart from the draws of its cells, which are numbered from 0.
const RATE_PURPOSE: u64 = u64::MAX;

#[cfg(test)]
mod tests;
