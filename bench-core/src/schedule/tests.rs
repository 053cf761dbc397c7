//! Schedules held against a plain model: enumerate everything and count.

use std::collections::HashSet;
use std::time::Duration;

use super::*;
use crate::ids::NodeIndex;
use crate::plan::{Budget, Duplex, Pattern, PlanSpec};

/// Sizes of meshes up to which a property is checked one by one.
const MODEL_NODES: std::ops::RangeInclusive<u16> = 2..=129;

fn plan(pattern: Pattern, duplex: Duplex, rail_mode: RailMode) -> Plan {
    PlanSpec {
        pattern: Some(pattern),
        duplex: Some(duplex),
        rail_mode: Some(rail_mode),
        budget: Some(Budget::Off),
        ..PlanSpec::default()
    }
    .validate()
    .expect("a valid plan")
}

fn one_case(pattern: Pattern, duplex: Duplex, rail_mode: RailMode) -> Plan {
    let mut plan = plan(pattern, duplex, rail_mode);
    plan.cases.truncate(1);
    plan
}

fn compile(plan: &Plan, nodes: u16, rails: u16) -> Schedule {
    Schedule::compile(plan, nodes, rails).expect("a plan that fits the mesh")
}

fn rounds(schedule: &Schedule) -> impl Iterator<Item = Round> {
    (0..schedule.rounds()).map(|id| schedule.round(RoundId(id)))
}

/// How often each (rail, source, destination) is measured.
struct Counts {
    nodes: usize,
    counts: Vec<u8>,
}

impl Counts {
    fn of(schedule: &Schedule, nodes: u16, rails: u16) -> Self {
        let nodes = usize::from(nodes);
        let mut counts = vec![0; usize::from(rails) * nodes * nodes];
        for cell in rounds(schedule).flat_map(|round| round.cells) {
            counts[(cell.rail.usize() * nodes + cell.src.usize()) * nodes + cell.dst.usize()] += 1;
        }
        Self { nodes, counts }
    }

    fn each_ordered_pair_is_measured_once(&self) -> bool {
        self.counts.iter().enumerate().all(|(place, count)| {
            let (src, dst) = (place / self.nodes % self.nodes, place % self.nodes);
            *count == u8::from(src != dst)
        })
    }

    /// For every rail and node, how many it sends to.
    fn partners(&self) -> impl Iterator<Item = usize> {
        self.counts.chunks(self.nodes).map(|row| row.iter().filter(|count| **count > 0).count())
    }

    /// For every rail and node, how many send to it.
    fn senders(&self) -> impl Iterator<Item = usize> {
        self.counts.chunks(self.nodes * self.nodes).flat_map(|rail| {
            (0..self.nodes)
                .map(|dst| rail.iter().skip(dst).step_by(self.nodes).filter(|count| **count > 0).count())
        })
    }
}

fn distinct(nodes: impl Iterator<Item = NodeIndex>) -> usize {
    nodes.collect::<HashSet<_>>().len()
}

#[test]
fn every_fabric_pattern_measures_each_ordered_pair_exactly_once_on_each_rail() {
    for nodes in MODEL_NODES {
        for pattern in Pattern::ALL.into_iter().filter(|pattern| *pattern != Pattern::Loopback) {
            for mode in [RailMode::Serial, RailMode::Parallel] {
                let schedule = compile(&one_case(pattern, Duplex::OneWay, mode), nodes, 2);
                let counts = Counts::of(&schedule, nodes, 2);
                assert!(counts.each_ordered_pair_is_measured_once(), "{pattern} {nodes} {mode:?}");
            }
        }
        let schedule = compile(&one_case(Pattern::Pairs, Duplex::Both, RailMode::Parallel), nodes, 2);
        let counts = Counts::of(&schedule, nodes, 2);
        assert!(counts.each_ordered_pair_is_measured_once(), "both ways {nodes}");
    }
}

#[test]
fn patterns_take_as_many_rounds_as_documented() {
    for nodes in MODEL_NODES {
        let n = u32::from(nodes);
        let matchings = n - 1 + n % 2;
        let expected = [
            (Pattern::Pairs, Duplex::OneWay, 2 * matchings),
            (Pattern::Pairs, Duplex::Both, matchings),
            (Pattern::Shift, Duplex::OneWay, n - 1),
            (Pattern::AllToAll, Duplex::OneWay, 1),
            (Pattern::Incast, Duplex::OneWay, n),
            (Pattern::Outcast, Duplex::OneWay, n),
            (Pattern::Loopback, Duplex::OneWay, 1),
        ];
        for (pattern, duplex, rounds) in expected {
            let serial = compile(&plan(pattern, duplex, RailMode::Serial), nodes, 3);
            let parallel = compile(&plan(pattern, duplex, RailMode::Parallel), nodes, 3);
            // Two cases, and three rails one after the other.
            assert_eq!(serial.rounds(), 2 * 3 * rounds, "{pattern} {duplex:?} {nodes}");
            assert_eq!(parallel.rounds(), 2 * rounds, "{pattern} {duplex:?} {nodes}");
            assert_eq!(serial.cells(), parallel.cells(), "{pattern} {duplex:?} {nodes}");
        }
    }
}

#[test]
fn in_a_round_of_pairs_no_node_takes_part_twice() {
    for nodes in MODEL_NODES {
        let schedule = compile(&one_case(Pattern::Pairs, Duplex::OneWay, RailMode::Serial), nodes, 1);
        for round in rounds(&schedule) {
            let busy = distinct(round.cells.iter().flat_map(|cell| [cell.src, cell.dst]));
            assert_eq!(busy, 2 * round.cells.len(), "{nodes} nodes, {}", round.id);
            assert_eq!(busy, usize::from(nodes / 2 * 2), "all but at most one are busy");
        }
    }
}

#[test]
fn each_matching_runs_one_way_and_then_the_other() {
    for nodes in MODEL_NODES {
        let schedule = compile(&one_case(Pattern::Pairs, Duplex::OneWay, RailMode::Serial), nodes, 1);
        for there in (0..schedule.rounds()).step_by(2) {
            let ends = |id| schedule.round(RoundId(id)).cells.into_iter().map(|cell| (cell.src, cell.dst));
            let back: Vec<_> = ends(there + 1).map(|(src, dst)| (dst, src)).collect();
            assert_eq!(ends(there).collect::<Vec<_>>(), back, "{nodes} nodes, round {there}");
        }
    }
}

#[test]
fn with_both_directions_a_node_has_one_partner_in_a_round() {
    for nodes in MODEL_NODES {
        let schedule = compile(&one_case(Pattern::Pairs, Duplex::Both, RailMode::Serial), nodes, 1);
        for round in rounds(&schedule) {
            let pairs: HashSet<_> = round.cells.iter().map(|cell| (cell.src, cell.dst)).collect();
            assert!(pairs.iter().all(|(src, dst)| pairs.contains(&(*dst, *src))));
            assert_eq!(distinct(round.cells.iter().map(|cell| cell.src)), round.cells.len());
        }
    }
}

#[test]
fn in_a_round_of_a_shift_every_node_sends_once_and_receives_once() {
    for nodes in MODEL_NODES {
        let schedule = compile(&one_case(Pattern::Shift, Duplex::OneWay, RailMode::Serial), nodes, 1);
        for round in rounds(&schedule) {
            let all = usize::from(nodes);
            assert_eq!(distinct(round.cells.iter().map(|cell| cell.src)), all);
            assert_eq!(distinct(round.cells.iter().map(|cell| cell.dst)), all);
        }
    }
}

#[test]
fn incast_has_one_receiver_outcast_one_sender_and_loopback_oneself() {
    for nodes in [2, 3, 8] {
        for round in rounds(&compile(&one_case(Pattern::Incast, Duplex::OneWay, RailMode::Serial), nodes, 1))
        {
            assert_eq!(distinct(round.cells.iter().map(|cell| cell.dst)), 1);
        }
        for round in rounds(&compile(&one_case(Pattern::Outcast, Duplex::OneWay, RailMode::Serial), nodes, 1))
        {
            assert_eq!(distinct(round.cells.iter().map(|cell| cell.src)), 1);
        }
    }
    let schedule = compile(&one_case(Pattern::Loopback, Duplex::OneWay, RailMode::Serial), 1, 1);
    let round = schedule.round(RoundId(0));
    assert_eq!((round.cells[0].src, round.cells[0].dst), (NodeIndex(0), NodeIndex(0)));
    assert_eq!(schedule.coverage().min_partners, 0);
}

#[test]
fn cells_are_numbered_in_round_order_and_found_again_by_their_number() {
    for (nodes, rails) in [(1_u16, 2_u16), (2, 1), (5, 3), (16, 2)] {
        for pattern in Pattern::ALL {
            if nodes == 1 && pattern != Pattern::Loopback {
                continue;
            }
            for mode in [RailMode::Serial, RailMode::Parallel] {
                let schedule = compile(&plan(pattern, Duplex::OneWay, mode), nodes, rails);
                let mut next = 0;
                for round in rounds(&schedule) {
                    for cell in round.cells {
                        assert_eq!(cell.id, CellId(next));
                        assert_eq!(cell.case, round.case);
                        assert_eq!(schedule.cell(cell.id), Some(cell));
                        assert_eq!(schedule.round_of(cell.id), Some(round.id));
                        next += 1;
                    }
                }
                assert_eq!(next, schedule.cells(), "{pattern} {mode:?}");
                assert_eq!(schedule.cell(CellId(next)), None);
                assert_eq!(schedule.round_of(CellId(u32::MAX)), None);
            }
        }
    }
}

#[test]
fn cases_come_first_then_rails_then_steps() {
    let mut plan = plan(Pattern::Shift, Duplex::OneWay, RailMode::Serial);
    plan.rails = Some(vec![RailId(3), RailId(1)]);
    let order: Vec<_> = rounds(&compile(&plan, 3, 4))
        .map(|round| (round.case.0, round.cells[0].rail.0, round.cells[0].dst.0))
        .collect();
    assert_eq!(
        order,
        [(0, 3, 1), (0, 3, 2), (0, 1, 1), (0, 1, 2), (1, 3, 1), (1, 3, 2), (1, 1, 1), (1, 1, 2)]
    );
}

#[test]
fn the_tightest_budget_leaves_every_node_four_partners_on_every_rail() {
    for nodes in MODEL_NODES {
        let least = usize::from(nodes - 1).min(4);
        for (pattern, duplex) in [
            (Pattern::Pairs, Duplex::OneWay),
            (Pattern::Pairs, Duplex::Both),
            (Pattern::Shift, Duplex::OneWay),
        ] {
            for seed in 0..4 {
                let mut plan = one_case(pattern, duplex, RailMode::Serial);
                plan.budget = Budget::Time(Duration::from_secs(1));
                plan.seed = seed;
                let schedule = compile(&plan, nodes, 2);
                let counts = Counts::of(&schedule, nodes, 2);
                assert!(counts.partners().all(|n| n >= least), "{pattern} {nodes} seed {seed}");
                assert!(counts.senders().all(|n| n >= least), "{pattern} {nodes} seed {seed}");
                let coverage = schedule.coverage();
                assert_eq!(counts.partners().min(), Some(coverage.min_partners as usize));
                assert_eq!(coverage.pairs_planned * 2, u64::from(schedule.cells()));
                assert!(matches!(schedule.budget_fit(), BudgetFit::Exceeded { .. }));
            }
        }
    }
}

#[test]
fn a_budget_is_used_up_to_one_turn_and_never_exceeded_if_it_can_be_kept() {
    for minutes in [5, 10, 20, 60] {
        for mode in [RailMode::Serial, RailMode::Parallel] {
            let mut plan = plan(Pattern::Pairs, Duplex::OneWay, mode);
            let budget = Duration::from_secs(60 * minutes);
            plan.budget = Budget::Time(budget);
            let schedule = compile(&plan, 256, 4);
            let time = schedule.expected_time(&plan);
            let groups = if mode == RailMode::Serial { 4 } else { 1 };
            // Two cases, both directions, 2.25 s a round.
            let turn = Duration::from_millis(2_250) * 2 * 2 * groups;
            match schedule.budget_fit() {
                BudgetFit::Sampled { .. } => {
                    assert!(time <= budget && budget < time + turn, "{minutes} {time:?}")
                }
                BudgetFit::Whole { .. } => assert!(time <= budget && schedule.coverage().min_partners == 255),
                other @ (BudgetFit::Unlimited | BudgetFit::Exceeded { .. }) => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn by_default_only_large_meshes_are_sampled() {
    let mut plan = plan(Pattern::Pairs, Duplex::OneWay, RailMode::Serial);
    plan.budget = Budget::Auto;
    assert_eq!(compile(&plan, 32, 8).budget_fit(), BudgetFit::Unlimited);
    assert!(matches!(compile(&plan, 33, 8).budget_fit(), BudgetFit::Sampled { .. }));
}

#[test]
fn a_seed_decides_which_pairs_a_budget_keeps() {
    let mut plan = plan(Pattern::Pairs, Duplex::OneWay, RailMode::Serial);
    plan.budget = Budget::Time(Duration::from_secs(300));
    let first = compile(&plan, 64, 1);
    assert_eq!(first, compile(&plan, 64, 1));
    plan.seed = 1;
    assert_ne!(first, compile(&plan, 64, 1));
}

#[test]
fn crowds_are_never_sampled_and_say_when_they_exceed_the_budget() {
    let mut plan = plan(Pattern::Incast, Duplex::OneWay, RailMode::Serial);
    plan.budget = Budget::Time(Duration::from_secs(1));
    let schedule = compile(&plan, 16, 1);
    assert_eq!(schedule.rounds(), 32);
    assert!(matches!(schedule.budget_fit(), BudgetFit::Exceeded { .. }));
}

#[test]
fn expected_time_is_window_warm_up_and_overhead_of_every_round() {
    let plan = plan(Pattern::Pairs, Duplex::OneWay, RailMode::Serial);
    let time = compile(&plan, 4, 2).expected_time(&plan);
    assert_eq!(time, Duration::from_millis(2_250) * (2 * 2 * 6));
}

#[test]
fn plans_that_do_not_fit_the_mesh_are_refused_with_a_reason() {
    let pairs = plan(Pattern::Pairs, Duplex::OneWay, RailMode::Serial);
    assert!(matches!(
        Schedule::compile(&pairs, 1, 1),
        Err(ScheduleError::TooFewNodes { needed: 2, nodes: 1, .. })
    ));
    assert_eq!(Schedule::compile(&pairs, 4, 0), Err(ScheduleError::NoRails));
    let mut empty = pairs.clone();
    empty.cases.clear();
    assert_eq!(Schedule::compile(&empty, 4, 1), Err(ScheduleError::NoCases));
    let mut rail_two = pairs.clone();
    rail_two.rails = Some(vec![RailId(0), RailId(2)]);
    assert_eq!(Schedule::compile(&rail_two, 4, 2), Err(ScheduleError::NoSuchRail { rail: 2, rails: 2 }));
    let crowd = plan(Pattern::AllToAll, Duplex::OneWay, RailMode::Serial);
    assert!(Schedule::compile(&crowd, 1_024, 8).is_ok());
    assert!(matches!(
        Schedule::compile(&crowd, 1_026, 8),
        Err(ScheduleError::RoundTooLarge { cells: 1_051_650, .. })
    ));
    let mut sweep = pairs;
    sweep.cases = vec![sweep.cases[0]; 1_000];
    assert!(matches!(Schedule::compile(&sweep, 4_096, 8), Err(ScheduleError::TooManyCells { .. })));
    assert!(Schedule::compile(&sweep, u16::MAX, u16::MAX).is_err());
}

#[test]
fn any_round_of_four_thousand_nodes_with_eight_rails_is_made_without_the_others() {
    // Making every round here takes minutes, so a schedule that did would be noticed.
    let mut plan = plan(Pattern::Pairs, Duplex::Both, RailMode::Parallel);
    for budget in [Budget::Off, Budget::Auto] {
        plan.budget = budget;
        let schedule = compile(&plan, 4_096, 8);
        let last = schedule.round(RoundId(schedule.rounds() - 1));
        assert_eq!(last.cells.len(), 4_096 * 8);
        assert_eq!(schedule.cell(last.cells[9].id), Some(last.cells[9]));
    }
}

#[test]
fn a_description_says_what_will_be_measured_and_what_not() {
    let mut plan = plan(Pattern::Pairs, Duplex::OneWay, RailMode::Serial);
    plan.budget = Budget::Time(Duration::from_secs(600));
    plan.seed = 9;
    let text = compile(&plan, 64, 8).describe(&plan);
    assert_eq!(
        text,
        "256 rounds, 8192 cells, expected time 9m36s\n\
         pattern pairs one direction at a time, rails r0 r1 r2 r3 r4 r5 r6 r7 one after the other\n\
         coverage: 512 of 4032 ordered pairs, every node meets 8 partners on each rail, \
         sampled by seed 9 for the budget of 10m00s"
    );
    plan.budget = Budget::Off;
    plan.rail_mode = RailMode::Parallel;
    plan.cases.truncate(1);
    assert_eq!(
        compile(&plan, 2, 1).describe(&plan),
        "2 rounds, 2 cells, expected time 4.5s\n\
         pattern pairs one direction at a time, rail r0\n\
         coverage: 2 of 2 ordered pairs, every node meets 1 partner on each rail"
    );
}
