//! Plan, schedule and nodes.

use std::collections::BTreeSet;

use super::super::model::{
    CaseReport, CoverageReport, GapReport, GatesReport, NodeRailReport, NodeReport, PlanReport,
    PopulationGateReport, ScheduleReport,
};
use super::{fine, usable};
use crate::ids::RoundId;
use crate::judge::{CellVerdict, RunView};
use crate::node::{RailEndpoint, RailHca};
use crate::plan::{Gates, Plan, PopulationGate, Retest, TestCase};
use crate::record::NodePresence;

pub(super) fn plan(plan: &Plan, nodes: u16) -> PlanReport {
    PlanReport {
        cases: plan.cases.iter().map(case).collect(),
        pattern: plan.pattern,
        duplex: plan.duplex,
        rail_mode: plan.rail_mode,
        rails: plan.rails.as_ref().map(|rails| rails.iter().map(|rail| rail.0).collect()),
        rails_of: plan.rails_of.to_spec(),
        budget_s: plan.budget.limit(nodes).map(|budget| fine(budget.as_secs_f64())),
        seed: plan.seed.to_string(),
        gates: gates(&plan.gates),
        retest_suspects: match plan.retest {
            Retest::Suspects => true,
            Retest::Never => false,
        },
        prepare_timeout_ms: fine(plan.prepare_timeout.as_secs_f64() * 1e3),
    }
}

fn case(case: &TestCase) -> CaseReport {
    CaseReport {
        test: case.kind,
        size_bytes: case.size.get(),
        streams: case.streams,
        wait: case.wait,
        window_ms: fine(case.window.as_secs_f64() * 1e3),
        warmup_ms: fine(case.warmup.as_secs_f64() * 1e3),
        verify: case.verify,
        rate_limit_gbps: case.rate_limit.map(|rate| fine(rate.gbps())),
        rdma: case.rdma,
    }
}

fn gates(gates: &Gates) -> GatesReport {
    let population = |gate: PopulationGate| PopulationGateReport {
        bandwidth_floor_share: gate.bandwidth_floor,
        latency_floor_share: gate.latency_floor,
        deviations: gate.deviations,
        min_cells: gate.min_cells,
    };
    GatesReport {
        min_bandwidth_gbps: gates.min_bandwidth.map(|rate| fine(rate.gbps())),
        max_latency_us: gates.max_latency.map(|time| fine(time.as_secs_f64() * 1e6)),
        min_line_rate_share: gates.min_line_rate_share,
        population: gates.population.map(population),
    }
}

pub(super) fn schedule(view: &RunView<'_>, planned: &[CellVerdict<'_>]) -> ScheduleReport {
    let played: BTreeSet<RoundId> = view.rounds.iter().map(|round| round.round).collect();
    let rounds_played = played.iter().filter(|round| round.0 < view.rounds_planned).count();
    let measured: BTreeSet<_> = planned
        .iter()
        .filter(|verdict| usable(verdict).is_some())
        .map(|verdict| (verdict.cell.rail, verdict.cell.src, verdict.cell.dst))
        .collect();
    let possible = view.coverage.possible_pairs;
    ScheduleReport {
        pattern: view.start.plan.pattern,
        rounds_planned: view.rounds_planned,
        rounds_played: rounds_played as u32,
        rounds_added: (played.len() - rounds_played) as u32,
        cells_planned: view.planned.len() as u32,
        cells_added: view.added.len() as u32,
        coverage: CoverageReport {
            planned_pairs: view.coverage.planned_pairs,
            possible_pairs: possible,
            measured_pairs: measured.len() as u64,
            measured_share: (possible > 0).then(|| fine(measured.len() as f64 / possible as f64)),
        },
        gaps: gaps(view),
    }
}

fn gaps(view: &RunView<'_>) -> Option<GapReport> {
    let mut gaps: Vec<f64> = view
        .rounds
        .windows(2)
        .filter(|pair| pair[0].epoch == pair[1].epoch)
        .map(|pair| pair[1].window.start.since(pair[0].window.end).as_secs_f64() * 1e3)
        .collect();
    gaps.sort_by(f64::total_cmp);
    let rank = |share: f64| (share * gaps.len() as f64).ceil() as usize;
    let at = |share| gaps.get(rank(share).max(1) - 1).copied().map(fine);
    Some(GapReport { count: gaps.len() as u32, p50_ms: at(0.5)?, p99_ms: at(0.99)?, max_ms: at(1.0)? })
}

pub(super) fn nodes(view: &RunView<'_>) -> Vec<NodeReport> {
    let presence = view.start.nodes.iter().map(Some).chain(std::iter::repeat(None));
    view.start
        .roster
        .iter()
        .zip(presence)
        .map(|(node, presence)| match presence {
            Some(NodePresence::Present(inventory)) => NodeReport {
                node: node.to_string(),
                absent: None,
                hostname: Some(inventory.hostname.clone()),
                kernel: Some(inventory.kernel.clone()),
                cpus: Some(inventory.cpus),
                clock_source: inventory.clock_source.clone(),
                rails: inventory.rails.iter().map(rail).collect(),
                capabilities: inventory
                    .capabilities
                    .iter()
                    .map(|capability| (capability.name.clone(), capability.absent.clone()))
                    .collect(),
                notes: inventory.notes.clone(),
            },
            Some(NodePresence::Absent { reason }) => absent(node.to_string(), reason.clone()),
            None => absent(node.to_string(), "the run's start does not mention it".to_owned()),
        })
        .collect()
}

fn absent(node: String, reason: String) -> NodeReport {
    NodeReport {
        node,
        absent: Some(reason),
        hostname: None,
        kernel: None,
        cpus: None,
        clock_source: None,
        rails: Vec::new(),
        capabilities: Vec::new(),
        notes: Vec::new(),
    }
}

fn rail(endpoint: &RailEndpoint) -> NodeRailReport {
    NodeRailReport {
        rail: endpoint.rail.0,
        device: endpoint.device.clone(),
        hca: endpoint.hca.as_ref().map(RailHca::name),
        link_layer: endpoint.hca.as_ref().and_then(|hca| hca.link_layer),
        gpu: endpoint.gpu.as_ref().map(|gpu| gpu.index),
        gpu_bus: endpoint.gpu.as_ref().and_then(|gpu| gpu.bus.clone()),
        pairing: endpoint.gpu.as_ref().map(|gpu| gpu.confidence),
        address: endpoint.addr.map(|addr| addr.to_string()),
        network: endpoint.network.map(|network| network.to_string()),
        numa: endpoint.numa,
        line_rate_gbps: endpoint.line_rate_bps.map(|rate| fine(rate as f64 / 1e9)),
        mtu_bytes: endpoint.mtu,
        reason: endpoint.reason.clone(),
    }
}
