//! A modelled fabric for tests of judging and reporting: rates with noise, and faults of parts.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::{CellSource, Coverage, Part, RunView, judge, pack, retests};
use crate::cell::{Cell, End, Purpose};
use crate::ids::{Attempt, CaseIndex, CellId, Epoch, NodeId, NodeIndex, RailId, RoundId, RunId};
use crate::measure::{
    BandwidthSample, DataCheck, Histogram, LatencySample, Mark, Measurement, RttShare, Window,
};
use crate::node::{Capability, NodeInventory, RailEndpoint};
use crate::plan::{
    Duplex, Gates, Means, Pattern, Plan, RailMode, Retest, Spread, TestCase, TestKind, Verify, WaitMode,
};
use crate::record::{
    Evidence, NodePresence, Observation, ObservationKey, Outcome, RoundRecord, RunEnd, RunRecord, RunStart,
};
use crate::time::{ClockOffset, Mono};
use crate::verbs::{RdmaOptions, Sides};

/// Rate of a sound cell, bytes in a window of one second: 10 Gb/s.
const SOUND_BYTES: f64 = 1.25e9;
/// p50 of a sound latency cell, nanoseconds.
const SOUND_NANOS: f64 = 20_000.0;
/// Time from one round's window to the next one's, nanoseconds: a window of 1 s and a gap of 2 ms.
const ROUND_NANOS: u64 = 1_002_000_000;

/// A fabric of `nodes` × `rails` on which every directed pair of every rail is a cell.
#[derive(Clone, Debug)]
pub(crate) struct Fabric {
    pub(crate) nodes: u16,
    pub(crate) rails: u16,
    pub(crate) kinds: Vec<TestKind>,
    pub(crate) seed: u64,
    /// Standard deviation of a sound cell's rate as a share of it.
    pub(crate) noise: f64,
    /// Parts with what is left of the rate of a cell that passes through them.
    pub(crate) faults: Vec<(Part, f64)>,
    pub(crate) pattern: Pattern,
    pub(crate) gates: Gates,
}

impl Fabric {
    pub(crate) fn new(nodes: u16, rails: u16, seed: u64) -> Self {
        Self {
            nodes,
            rails,
            kinds: vec![TestKind::TcpBw],
            seed,
            noise: 0.05,
            faults: Vec::new(),
            pattern: Pattern::Pairs,
            gates: Gates::population_only(),
        }
    }

    pub(crate) fn with(mut self, part: Part, left: f64) -> Self {
        self.faults.push((part, left));
        self
    }

    pub(crate) fn id(&self, rail: u16, src: u16, dst: u16) -> CellId {
        let row = u32::from(rail) * u32::from(self.nodes) + u32::from(src);
        let column = u32::from(if dst > src { dst - 1 } else { dst });
        CellId(row * u32::from(self.nodes - 1) + column)
    }

    fn plan(&self) -> Plan {
        let case = |kind: &TestKind| TestCase {
            kind: *kind,
            size: kind.default_size(),
            streams: 1,
            wait: WaitMode::Blocking,
            window: Duration::from_secs(1),
            warmup: Duration::from_millis(100),
            verify: Verify::Off,
            rate_limit: None,
            rdma: match kind.means() {
                Means::Tcp => None,
                Means::Rdma(_) => Some(RdmaOptions::default()),
            },
        };
        Plan {
            cases: self.kinds.iter().map(case).collect(),
            pattern: self.pattern,
            duplex: Duplex::OneWay,
            rail_mode: RailMode::Serial,
            rails: None,
            rails_of: crate::plan::RailsOf::default(),
            budget: crate::plan::Budget::Off,
            seed: self.seed,
            gates: self.gates,
            retest: Retest::Suspects,
            prepare_timeout: Duration::from_secs(10),
        }
    }

    fn inventory(&self, node: u16) -> NodeInventory {
        let rail = |rail: u16| RailEndpoint {
            line_rate_bps: Some(10_000_000_000),
            mtu: Some(9_000),
            ..RailEndpoint::plain(
                RailId(rail),
                format!("eth{rail}"),
                IpAddr::V4(Ipv4Addr::new(10, rail as u8, 0, node as u8 + 1)),
                "given by --rail".into(),
            )
        };
        let rails = (0..self.rails).map(rail).collect();
        NodeInventory { hostname: format!("host-{node}"), ..inventory_of(name(node), rails) }
    }

    pub(crate) fn start(&self) -> RunRecord {
        RunRecord::Started(Box::new(RunStart {
            run: RunId([0xab; 16]),
            plan: self.plan(),
            roster: (0..self.nodes).map(name).collect(),
            nodes: (0..self.nodes)
                .map(|node| NodePresence::Present(Box::new(self.inventory(node))))
                .collect(),
            epoch: epoch(),
            wall_seconds: 1_800_000_000,
        }))
    }

    /// The records of a run in which every planned cell was measured once; the last one is the end.
    pub(crate) fn records(&self) -> Vec<RunRecord> {
        let cells: Vec<Cell> = (0..self.cells()).filter_map(|id| self.cell(CellId(id))).collect();
        let mut records = vec![self.start()];
        self.play(&cells, 0, &mut records);
        records.push(RunRecord::Ended(RunEnd::Completed));
        records
    }

    /// The records of a run with its retests.
    pub(crate) fn records_with_retests(&self) -> Vec<RunRecord> {
        let mut records = self.records();
        let view = RunView::new(&records, self).expect("a run of this fabric");
        let added = retests(&view, &judge(&view), CellId(self.cells()));
        let end = records.pop().expect("an end");
        if !added.is_empty() {
            records.push(RunRecord::Added(added.clone()));
            for (i, round) in pack(added).iter().enumerate() {
                self.play(round, self.rounds() + i as u32, &mut records);
            }
        }
        records.push(end);
        records
    }

    /// Plays cells in rounds: one for each case and rail.
    fn play(&self, cells: &[Cell], first_round: u32, records: &mut Vec<RunRecord>) {
        let mut round = first_round;
        let mut last = None;
        let mut known = BTreeSet::new();
        for cell in cells {
            let group = (cell.case, cell.rail, cell.purpose == Purpose::Plan);
            if last.replace(group).is_some_and(|last| last != group && group.2) {
                round += 1;
            }
            if known.insert(round) {
                records.push(RunRecord::Round(RoundRecord {
                    round: RoundId(round),
                    attempt: Attempt::FIRST,
                    epoch: epoch(),
                    cells: cells.len() as u32,
                    window: window(round),
                }));
            }
            records.extend(self.observe(cell, RoundId(round)).map(RunRecord::Observed));
        }
    }

    /// What both ends see of a cell.
    pub(crate) fn observe(&self, cell: &Cell, round: RoundId) -> [Observation; 2] {
        let covering = self.faults.iter().filter(|(part, _)| part.covers(cell.src, cell.dst, cell.rail));
        let left: f64 = covering.map(|(_, left)| left).product();
        let rate = left * (1.0 + self.noise * self.normal(cell.id)).max(0.01);
        let [source, destination] = measured(self.kinds[cell.case.usize()], rate, round);
        [(End::Source, source), (End::Destination, destination)].map(|(end, measurement)| Observation {
            key: key(cell.id, end),
            round,
            outcome: Outcome::Measured(measurement),
            evidence: Evidence {
                device: Some(format!("eth{}", cell.rail.0)),
                local: Some(format!("10.{}.0.{}:4000", cell.rail.0, cell.node(end).0 + 1)),
                peer: Some(format!("10.{}.0.{}:4000", cell.rail.0, cell.node(end.other()).0 + 1)),
                facts: vec![("congestion control".into(), "cubic".into())],
            },
            clock: ClockOffset { offset_ns: 0, error_ns: 50_000 },
        })
    }

    /// A standard normal value that depends on seed and cell alone (Box-Muller over splitmix64).
    fn normal(&self, cell: CellId) -> f64 {
        let mix = |n: u64| {
            let mut z = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (u64::from(cell.0) << 1 | n);
            z = (z.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        (-2.0 * mix(0).max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * mix(1)).cos()
    }
}

impl CellSource for Fabric {
    fn cell(&self, id: CellId) -> Option<Cell> {
        let (n, per_rail) = (u32::from(self.nodes), u32::from(self.nodes) * u32::from(self.nodes - 1));
        let matrix = id.0 / per_rail;
        let (src, column) = (id.0 % per_rail / (n - 1), id.0 % (n - 1));
        (id.0 < self.cells()).then(|| Cell {
            id,
            case: CaseIndex((matrix / u32::from(self.rails)) as u16),
            rail: RailId((matrix % u32::from(self.rails)) as u16),
            src: NodeIndex(src as u16),
            dst: NodeIndex(if column >= src { column + 1 } else { column } as u16),
            purpose: Purpose::Plan,
        })
    }

    fn cells(&self) -> u32 {
        self.rounds() * u32::from(self.nodes) * u32::from(self.nodes - 1)
    }

    fn rounds(&self) -> u32 {
        self.kinds.len() as u32 * u32::from(self.rails)
    }

    fn coverage(&self) -> Coverage {
        let pairs = u64::from(self.nodes) * u64::from(self.nodes - 1) * u64::from(self.rails);
        Coverage { planned_pairs: pairs, possible_pairs: pairs }
    }
}

pub(crate) fn name(node: u16) -> NodeId {
    NodeId::new(&format!("n{node}")).expect("a valid name")
}

pub(crate) fn epoch() -> Epoch {
    Epoch { term: 1, elector: 0 }
}

pub(crate) fn key(cell: CellId, end: End) -> ObservationKey {
    ObservationKey { run: RunId([0xab; 16]), cell, epoch: epoch(), attempt: Attempt::FIRST, end }
}

fn window(round: u32) -> Window {
    Window::new(Mono::from_nanos(1_000_000_000 + u64::from(round) * ROUND_NANOS), Duration::from_secs(1))
}

fn bandwidth(rate: f64, round: RoundId) -> Measurement {
    let bytes = (SOUND_BYTES * rate) as u64;
    let marks =
        (1..=10).map(|i| Mark { at_ns: i * 100_000_000, bytes: bytes / 10 * i, completions: 1_000 * i });
    Measurement::Bandwidth(BandwidthSample {
        window: window(round.0),
        bytes,
        marks: marks.collect(),
        check: DataCheck::Unchecked,
        retransmits: Some(0),
        cpu_ns: None,
    })
}

/// What source and destination of a kind of test measure. The end that a one-sided operation passes by sees nothing.
fn measured(kind: TestKind, rate: f64, round: RoundId) -> [Measurement; 2] {
    let one_sided = match kind.means() {
        Means::Tcp => false,
        Means::Rdma(operation) => operation.sides() == Sides::One,
    };
    let passive = || Measurement::Passive { check: DataCheck::Unchecked };
    match (kind.spread(), one_sided, kind.observer()) {
        (Spread::Bandwidth, false, _) => [bandwidth(rate, round), bandwidth(rate, round)],
        (Spread::Bandwidth, true, End::Source) => [bandwidth(rate, round), passive()],
        (Spread::Bandwidth, true, End::Destination) => [passive(), bandwidth(rate, round)],
        (Spread::Latency, _, _) => latency(rate, round),
    }
}

fn latency(rate: f64, round: RoundId) -> [Measurement; 2] {
    let mut histogram = Histogram::new();
    for i in 0..100_u32 {
        histogram.record((SOUND_NANOS / rate * (1.0 + f64::from(i) / 1_000.0)) as u64);
    }
    let sample = LatencySample {
        window: window(round.0),
        histogram,
        share: RttShare::Half,
        check: DataCheck::Unchecked,
    };
    [Measurement::Latency(sample), Measurement::Responder { answered: 100 }]
}

/// An ordinary node with these rails.
pub(crate) fn inventory_of(node: NodeId, rails: Vec<RailEndpoint>) -> NodeInventory {
    NodeInventory {
        hostname: node.to_string(),
        node,
        kernel: "6.1.0".into(),
        cpus: 8,
        clock_source: Some("tsc".into()),
        wall_seconds: 1_800_000_000,
        rails,
        capabilities: vec![Capability { name: "tcp".into(), absent: None }],
        notes: Vec::new(),
    }
}
