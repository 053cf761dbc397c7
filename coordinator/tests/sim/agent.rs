//! The agent model: the real fence, a journal that is a list, rounds that take their time.

use std::collections::BTreeMap;

use bench_core::cell::End;
use bench_core::ids::{CellId, Epoch, NodeId, NodeIndex, RailId, RunId};
use bench_core::measure::{BandwidthSample, DataCheck, Measurement, Window};
use bench_core::message::{Prepared, RoundKey, Start};
use bench_core::node::{NodeInventory, RailEndpoint};
use bench_core::record::{
    Evidence, Failure, FailureKind, Observation, ObservationKey, Outcome, Phase, RunRecord,
};
use bench_core::time::ClockOffset;
use coordinator::{Fence, Passage};

/// Whether agents keep the fence's law. Breaking it on purpose shows that the campaign would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceLaw {
    Kept,
    /// Commands of any epoch are obeyed.
    Broken,
}

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) fence: Fence,
    pub(crate) journal: Vec<Observation>,
    pub(crate) armed: BTreeMap<RoundKey, Vec<Prepared>>,
    pub(crate) running: BTreeMap<RoundKey, (Start, Vec<Prepared>)>,
    pub(crate) results: BTreeMap<RunId, (Epoch, Vec<RunRecord>)>,
}

impl Agent {
    pub(crate) fn new(electors: usize) -> Self {
        Self {
            fence: Fence::new(electors),
            journal: Vec::new(),
            armed: BTreeMap::new(),
            running: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    /// The process starts again with what it had on disk.
    pub(crate) fn restart(&mut self, electors: usize) {
        let highest = self.fence.highest();
        self.fence = Fence::new(electors);
        self.fence.raise(highest);
        self.armed.clear();
        self.running.clear();
    }

    /// Whether a command may be obeyed. A higher epoch ends what was set up in lower ones.
    pub(crate) fn pass(&mut self, epoch: Epoch, law: FenceLaw) -> Passage {
        let passage = match law {
            FenceLaw::Kept => self.fence.pass(epoch),
            FenceLaw::Broken => Passage::Open,
        };
        if passage == Passage::Open && law == FenceLaw::Kept {
            self.armed.retain(|key, _| key.epoch >= epoch);
            self.running.retain(|key, _| key.epoch >= epoch);
        }
        passage
    }

    /// Keeps a batch of a result; `false` if the batches before it are not here.
    pub(crate) fn keep(&mut self, epoch: Epoch, run: RunId, from: usize, records: Vec<RunRecord>) -> bool {
        let kept = self.results.entry(run).or_insert((epoch, Vec::new()));
        if kept.0 != epoch {
            *kept = (epoch, Vec::new());
        }
        if from > kept.1.len() {
            return false;
        }
        kept.1.truncate(from);
        kept.1.extend(records);
        true
    }

    /// A batch of the journal.
    pub(crate) fn collect(&self, run: RunId, cells: &[CellId], skip: u64) -> Vec<Observation> {
        let wanted = self
            .journal
            .iter()
            .filter(|o| o.key.run == run && (cells.is_empty() || cells.contains(&o.key.cell)));
        wanted.skip(skip as usize).take(COLLECT_BATCH).cloned().collect()
    }
}

pub(crate) fn inventory(name: &NodeId, node: usize) -> NodeInventory {
    NodeInventory {
        node: name.clone(),
        hostname: String::new(),
        kernel: String::new(),
        cpus: 2,
        clock_source: None,
        wall_seconds: 0,
        rails: vec![RailEndpoint::plain(
            RailId(0),
            "eth0".to_owned(),
            [10, 0, 0, node as u8].into(),
            "named".to_owned(),
        )],
        capabilities: Vec::new(),
        notes: Vec::new(),
    }
}

/// What an end observes when its round is over.
pub(crate) fn observe(
    key: RoundKey,
    start: &Start,
    prepared: &Prepared,
    sound: bool,
    slow: bool,
) -> Observation {
    let cell = prepared.cell;
    let outcome = if sound {
        let rate = if slow { 1 } else { 10 };
        Outcome::Measured(Measurement::Bandwidth(BandwidthSample {
            window: Window::new(start.at.after(prepared.case.warmup), prepared.case.window),
            bytes: rate * 12_500_000 + u64::from(cell.id.0 % 7) * 1_000,
            marks: Vec::new(),
            check: DataCheck::Unchecked,
            retransmits: None,
            cpu_ns: None,
        }))
    } else {
        Outcome::Failed(Failure {
            kind: FailureKind::Crash,
            phase: Phase::Measure,
            detail: "the other end went silent".to_owned(),
            remedy: None,
        })
    };
    Observation {
        key: ObservationKey {
            run: key.run,
            cell: cell.id,
            epoch: key.epoch,
            attempt: key.attempt,
            end: prepared.end,
        },
        round: key.round,
        outcome,
        evidence: Evidence::default(),
        clock: ClockOffset { offset_ns: 0, error_ns: 20_000 },
    }
}

/// The node at the other end.
pub(crate) fn peer(prepared: &Prepared) -> usize {
    let other: End = prepared.end.other();
    let NodeIndex(node) = prepared.cell.node(other);
    usize::from(node)
}

/// Observations in one answer: few, so that every collection takes several.
const COLLECT_BATCH: usize = 3;
