//! What an end holds of its device, and the way to its peer.

use std::sync::Arc;

use bench_core::cell::End;
use bench_core::message::CellTask;
use bench_core::plan::{Means, TestCase};
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::verbs::{FlowLabels, Operation, Path, RdmaOptions, VerbsInfo, choose_path};

use super::layout::Layout;
use crate::data::verbs::completion_queue::CompletionQueue;
use crate::data::verbs::gpudirect::GpuDirect;
use crate::data::verbs::queue_pair::{QueuePair, Route};
use crate::data::verbs::region::Region;

/// An end's objects. Queue pairs go first, so that nothing is under way when the memory goes.
pub(super) struct Link {
    pub(super) queue_pairs: Vec<QueuePair>,
    pub(super) cq: Arc<CompletionQueue>,
    pub(super) region: Arc<Region>,
    pub(super) layout: Layout,
    /// What the peer is told.
    pub(super) info: VerbsInfo,
    /// The port of the device, from 1.
    pub(super) port: u8,
    /// Messages up to this size travel inside their request.
    pub(super) inline_bytes: u32,
    /// The device's firmware version.
    pub(super) firmware: String,
    /// Whether the device could reach GPU memory.
    pub(super) gpudirect: GpuDirect,
}

/// A connected end.
pub(super) struct Armed {
    pub(super) link: Link,
    pub(super) peer: VerbsInfo,
    pub(super) path: Path,
    /// Reads that this end has under way on each queue pair.
    pub(super) reads: u8,
}

impl Link {
    /// Connects every queue pair to the peer's.
    ///
    /// # Errors
    /// [`Failure`] in phase `Connect`.
    pub(super) fn connect(
        mut self,
        task: &CellTask,
        options: &RdmaOptions,
        peer: &VerbsInfo,
    ) -> Result<Armed, Failure> {
        let (source, destination) = match task.end {
            End::Source => (&self.info, peer),
            End::Destination => (peer, &self.info),
        };
        let path = choose_path(source, destination, options).map_err(|none| Failure {
            kind: FailureKind::Unsupported,
            phase: Phase::Connect,
            detail: none.to_string(),
            remedy: Some(none.remedy().to_owned()),
        })?;
        if peer.queue_pairs.len() != self.queue_pairs.len() {
            return Err(crate::data::out_of_order(Phase::Connect));
        }
        let reads = Reads::of(&task.case, options, &self.info, peer);
        for (lane, (own, peer_pair)) in self.queue_pairs.iter_mut().zip(&peer.queue_pairs).enumerate() {
            let route = Route {
                peer: *peer_pair,
                port: self.port,
                pkey_index: path.pkey(task.end).index,
                mtu: path.mtu,
                lid: peer.lid,
                global: path.gid(task.end).zip(path.gid(task.end.other())),
                service_level: options.service_level,
                traffic_class: options.traffic_class,
                flow_label: flow_label(options, lane),
                reads_out: reads.out,
                reads_in: reads.answered,
                timeout: options.timeout,
                retry_count: options.retry_count,
                rnr_retry: options.rnr_retry,
            };
            own.connect(&route).map_err(|error| error.failure(Phase::Connect))?;
        }
        Ok(Armed { link: self, peer: peer.clone(), path, reads: reads.out })
    }
}

/// Reads under way on a queue pair, in both directions.
struct Reads {
    out: u8,
    answered: u8,
}

impl Reads {
    /// What was asked for, else what both devices allow; one for tests that read nothing, as perftest.
    fn of(case: &TestCase, options: &RdmaOptions, own: &VerbsInfo, peer: &VerbsInfo) -> Self {
        match case.kind.means() {
            Means::Rdma(Operation::Read) => {
                let wish = options.rd_atomic.unwrap_or(u8::MAX);
                Self {
                    out: wish.min(own.max_reads_out).min(peer.max_reads_in),
                    answered: wish.min(own.max_reads_in).min(peer.max_reads_out),
                }
            }
            Means::Rdma(Operation::Write | Operation::WriteImm | Operation::Send) | Means::Tcp => {
                Self { out: 1, answered: 1 }
            }
        }
    }
}

/// The flow label of a queue pair, 20 bits.
pub(super) fn flow_label(options: &RdmaOptions, lane: usize) -> u32 {
    match options.flow_labels {
        FlowLabels::Same => options.flow_label,
        FlowLabels::PerQueuePair => (options.flow_label + lane as u32) & 0x000f_ffff,
    }
}
