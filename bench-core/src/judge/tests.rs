//! Judging modelled fabrics: the parts that are named are the parts that were broken, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use super::testing::{Fabric, key};
use super::*;
use crate::cell::{Cell, End, Purpose};
use crate::ids::{Attempt, CaseIndex, CellId, NodeIndex, RailId, RoundId};
use crate::measure::{DataCheck, Measurement};
use crate::plan::{Gates, Pattern, TestKind};
use crate::record::{Failure, FailureKind, Loss, LossWord, Observation, Outcome, Phase, RunEnd, RunRecord};
use crate::units::BitsPerSecond;

const fn node(node: u16, rails: Rails, side: Side) -> Part {
    Part::Node { node: NodeIndex(node), rails, side }
}

const fn on(rail: u16) -> Rails {
    Rails::One(RailId(rail))
}

/// Parts that were named with how sure, and the run's word.
fn named(fabric: &Fabric) -> (Vec<(Part, Certainty)>, RunVerdict) {
    let records = fabric.records_with_retests();
    let view = RunView::new(&records, fabric).expect("a run of this fabric");
    let judgement = judge(&view);
    let parts =
        judgement.findings.iter().filter_map(|finding| Some((finding.part?, finding.certainty?))).collect();
    (parts, judgement.verdict)
}

fn texts(fabric: &Fabric, records: &[RunRecord]) -> Vec<String> {
    let view = RunView::new(records, fabric).expect("a run of this fabric");
    judge(&view).findings.into_iter().map(|finding| finding.text).collect()
}

#[test]
fn exactly_the_broken_parts_are_named_on_every_shape_of_fabric() {
    for (nodes, rails) in [(3, 4), (4, 2), (4, 8), (5, 1), (7, 3), (8, 8), (16, 2), (16, 8)] {
        let last = nodes - 1;
        let rail = rails - 1;
        let mut plants = vec![
            vec![node(last, on(rail), Side::Send)],
            vec![node(last, on(rail), Side::Receive)],
            vec![Part::Pair {
                a: NodeIndex(0),
                b: NodeIndex(2),
                rails: on(rail),
                direction: Direction::Both,
            }],
            vec![Part::Pair {
                a: NodeIndex(1),
                b: NodeIndex(0),
                rails: on(rail),
                direction: Direction::Forward,
            }],
        ];
        if rails > 1 || nodes > 4 {
            plants.push(vec![node(1, on(rail), Side::Both)]);
        }
        if rails > 1 {
            plants.push(vec![Part::Rail(RailId(rail))]);
            plants.push(vec![node(0, on(0), Side::Send), node(2, on(rail), Side::Receive)]);
        }
        if rails > 1 && nodes > 3 {
            plants.push(vec![node(1, Rails::All, Side::Both)]);
            plants.push(vec![node(1, Rails::All, Side::Receive)]);
        }
        if nodes > 4 {
            plants.push(vec![node(0, on(rail), Side::Receive), node(3, on(rail), Side::Send)]);
        }
        for (i, plant) in plants.into_iter().enumerate() {
            let mut fabric = Fabric::new(nodes, rails, u64::from(nodes) * 100 + i as u64);
            fabric.faults = plant.iter().map(|part| (*part, 0.4)).collect();
            let (parts, verdict) = named(&fabric);
            let found: BTreeSet<Part> = parts.iter().map(|(part, _)| *part).collect();
            let planted: BTreeSet<Part> = plant.iter().copied().collect();
            assert_eq!(found, planted, "{nodes} nodes, {rails} rails");
            assert_eq!(verdict, RunVerdict::Fail, "{nodes} nodes, {rails} rails");
        }
    }
}

#[test]
fn an_end_that_an_operation_passes_by_is_named_by_the_other_ends_counts() {
    for kind in [TestKind::WriteBw, TestKind::ReadBw, TestKind::SendBw] {
        for side in [Side::Send, Side::Receive] {
            let mut fabric = Fabric::new(6, 2, 3).with(node(2, on(1), side), 0.5);
            fabric.kinds = vec![kind];
            assert_eq!(named(&fabric).0, [(node(2, on(1), side), Certainty::Bad)], "{kind}");
        }
    }
}

#[test]
fn a_sound_fabric_raises_no_alarm_in_a_thousand_seeds() {
    for seed in 0..1_000_u64 {
        let (nodes, rails) = (2 + (seed % 15) as u16, 1 + (seed / 15 % 8) as u16);
        let fabric = Fabric::new(nodes, rails, seed);
        let records = fabric.records();
        let view = RunView::new(&records, &fabric).expect("a run of this fabric");
        let first = judge(&view);
        let (parts, verdict) = match first.verdict {
            RunVerdict::Fail => named(&fabric),
            RunVerdict::Pass | RunVerdict::Incomplete | RunVerdict::NotJudged => (vec![], first.verdict),
        };
        let expected = if fabric.cells() >= 6 { RunVerdict::Pass } else { RunVerdict::NotJudged };
        assert_eq!((parts, verdict), (vec![], expected), "seed {seed}: {nodes} nodes, {rails} rails");
    }
}

#[test]
fn a_part_is_bad_only_after_two_proven_partners_confirmed_it() {
    for side in [Side::Both, Side::Send, Side::Receive] {
        let part = node(3, on(1), side);
        let fabric = Fabric::new(8, 4, 7).with(part, 0.5);
        assert_eq!(named(&fabric).0, [(part, Certainty::Bad)]);
        let records = fabric.records();
        let view = RunView::new(&records, &fabric).expect("a run");
        let findings = judge(&view).findings;
        assert_eq!(findings[0].certainty, Some(Certainty::Suspected), "nothing was measured again");
    }
}

#[test]
fn with_two_nodes_the_pair_is_named_and_nobody_is_sure() {
    let pair = Part::Pair { a: NodeIndex(0), b: NodeIndex(1), rails: on(3), direction: Direction::Both };
    let fabric = Fabric::new(2, 8, 1).with(node(1, on(3), Side::Both), 0.5);
    assert_eq!(named(&fabric).0, [(pair, Certainty::Suspected)]);
    let records = fabric.records_with_retests();
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    let finding = &judgement.findings[0];
    assert!(finding.text.contains("which end is at fault cannot be told"), "{}", finding.text);
    for end in ["n0: device eth3", "n1: device eth3"] {
        assert!(finding.evidence.iter().any(|line| line.starts_with(end)), "{:?}", finding.evidence);
    }
}

#[test]
fn the_sentence_says_how_much_with_whom_and_what_about_the_other_rails() {
    let mut fabric = Fabric::new(16, 4, 3).with(node(7, on(3), Side::Receive), 0.51);
    fabric.noise = 0.0;
    assert_eq!(
        texts(&fabric, &fabric.records()),
        [
            "node n7, rail 3, receive side: 51% of the rail's median with all 15 peers; its other rails are normal"
        ]
    );
    fabric.faults = vec![(Part::Rail(RailId(2)), 0.5)];
    assert_eq!(
        texts(&fabric, &fabric.records()),
        ["rail 2: 50% of the other rails' median in 240 of 240 cells"]
    );
    fabric.faults = vec![(node(2, Rails::All, Side::Both), 0.5)];
    assert_eq!(texts(&fabric, &fabric.records()), ["node n2: 50% of the rails' median with all 15 peers"]);
}

#[test]
fn slow_latency_is_blamed_like_slow_bandwidth() {
    let part = node(2, on(0), Side::Both);
    let mut fabric = Fabric::new(6, 2, 5).with(part, 0.3);
    fabric.kinds = vec![TestKind::TcpBw, TestKind::TcpLat];
    fabric.noise = 0.0;
    let texts = texts(&fabric, &fabric.records());
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].contains("tcp_bw 128K 30% of the rail's median"), "{}", texts[0]);
    assert!(texts[0].contains("tcp_lat 64 3.3 times the rail's median p50"), "{}", texts[0]);
}

#[test]
fn a_fault_of_most_cells_leaves_the_run_unjudged_and_never_passes() {
    let fabric = Fabric::new(3, 2, 1).with(node(1, Rails::All, Side::Both), 0.5);
    let (parts, verdict) = named(&fabric);
    assert_eq!((parts.len(), verdict, verdict.exit_code()), (0, RunVerdict::NotJudged, 3));
}

#[test]
fn every_cell_below_an_absolute_gate_is_no_fault_of_a_single_part() {
    let mut fabric = Fabric::new(4, 2, 1);
    fabric.gates.min_bandwidth = Some(BitsPerSecond(20e9));
    let (parts, verdict) = named(&fabric);
    assert_eq!((parts[0].0, parts.len(), verdict), (Part::Everything, 1, RunVerdict::Fail));
}

#[test]
fn a_cell_that_is_slow_once_passes_with_a_warning_that_shows_both_values() {
    let fabric = Fabric::new(4, 2, 11);
    let mut slow = fabric.clone();
    slow.faults = vec![(Part::Rail(RailId(1)), 0.4)];
    let id = fabric.id(1, 0, 1);
    let mut records = fabric.records();
    let cell = fabric.cell(id).expect("planned");
    let once = slow.observe(&cell, RoundId(1));
    replace(&mut records, id, &once);
    let (view, next) = (RunView::new(&records, &fabric).expect("a run"), CellId(fabric.cells()));
    let first = judge(&view);
    assert_eq!(first.verdict, RunVerdict::Fail);
    let added = retests(&view, &first, next);
    let again = added.iter().filter(|c| c.purpose == Purpose::Retest { of: id }).count();
    assert_eq!(again, 2);
    let seen: Vec<RunRecord> =
        added.iter().flat_map(|cell| fabric.observe(cell, RoundId(9)).map(RunRecord::Observed)).collect();
    records.insert(records.len() - 1, RunRecord::Added(added));
    let end = records.len() - 1;
    records.splice(end..end, seen);
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    assert_eq!(judgement.verdict, RunVerdict::Pass);
    let unsteady = &judgement.findings[0];
    assert_eq!(unsteady.kind, FindingKind::Unsteady);
    let figure = |cell: &CellVerdict<'_>| cell.figure.expect("measured").text();
    assert!(unsteady.text.contains(&figure(&judgement.cells[id.0 as usize])), "{}", unsteady.text);
    assert!(unsteady.text.contains(&figure(&judgement.cells[fabric.cells() as usize])), "{}", unsteady.text);
}

#[test]
fn retests_are_bounded_and_pack_into_rounds_without_a_shared_node() {
    let fabric = Fabric::new(16, 8, 2).with(Part::Rail(RailId(0)), 0.5).with(node(3, on(1), Side::Both), 0.5);
    let records = fabric.records();
    let view = RunView::new(&records, &fabric).expect("a run");
    let added = retests(&view, &judge(&view), CellId(fabric.cells()));
    assert_eq!(added.len(), 64);
    let numbers: Vec<u32> = added.iter().map(|cell| cell.id.0).collect();
    assert_eq!(numbers, (fabric.cells()..fabric.cells() + 64).collect::<Vec<u32>>());
    let rounds = pack(added);
    assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), 64);
    for round in &rounds {
        let nodes: BTreeSet<NodeIndex> = round.iter().flat_map(|cell| [cell.src, cell.dst]).collect();
        assert_eq!(nodes.len(), round.len() * 2);
    }
}

#[test]
fn repairs_meet_only_partners_that_are_sound_on_the_rail() {
    let fabric =
        Fabric::new(8, 2, 4).with(node(3, on(1), Side::Receive), 0.5).with(node(0, on(1), Side::Send), 0.5);
    let records = fabric.records();
    let view = RunView::new(&records, &fabric).expect("a run");
    let added = retests(&view, &judge(&view), CellId(fabric.cells()));
    let repairs: Vec<&Cell> = added.iter().filter(|c| matches!(c.purpose, Purpose::Repair { .. })).collect();
    assert_eq!(repairs.len(), 4);
    for cell in repairs {
        let suspects = [cell.src == NodeIndex(0), cell.dst == NodeIndex(3)];
        assert_eq!(suspects.iter().filter(|suspect| **suspect).count(), 1, "{cell:?}");
    }
}

/// Puts other observations in place of those of a cell.
fn replace(records: &mut Vec<RunRecord>, id: CellId, with: &[Observation]) {
    records.retain(|record| !matches!(record, RunRecord::Observed(seen) if seen.key.cell == id));
    let end = records.len() - 1;
    records.splice(end..end, with.iter().cloned().map(RunRecord::Observed));
}

fn change(records: &mut [RunRecord], id: CellId, end: End, change: impl Fn(&mut Observation)) {
    for record in records {
        if let RunRecord::Observed(seen) = record
            && seen.key == key(id, end)
        {
            change(seen);
        }
    }
}

fn sample(seen: &mut Observation) -> &mut crate::measure::BandwidthSample {
    match &mut seen.outcome {
        Outcome::Measured(Measurement::Bandwidth(sample)) => sample,
        other => panic!("{other:?} is no bandwidth"),
    }
}

/// The verdict of the first cell of a small fabric after one change to its destination's observation.
fn first_cell(fabric: &Fabric, edit: impl Fn(&mut Observation)) -> (CellStatus, String, RunVerdict) {
    let mut records = fabric.records();
    change(&mut records, CellId(0), End::Destination, edit);
    let view = RunView::new(&records, fabric).expect("a run");
    let judgement = judge(&view);
    let cell = &judgement.cells[0];
    (cell.status, cell.reason.clone(), judgement.verdict)
}

#[test]
fn ends_that_disagree_make_a_cell_invalid_and_show_both_counts() {
    let fabric = Fabric::new(4, 1, 1);
    let (status, reason, verdict) = first_cell(&fabric, |seen| sample(seen).bytes -= 100_000_000);
    assert_eq!((status, verdict), (CellStatus::Invalid, RunVerdict::Incomplete));
    assert!(reason.starts_with("ends disagree: the source counted"), "{reason}");
    let (status, ..) = first_cell(&fabric, |seen| sample(seen).bytes -= 15_000_000);
    assert_eq!(status, CellStatus::Pass, "1% and the socket buffers may be in flight");
}

#[test]
fn wrong_data_fails_the_cell_and_the_run_whatever_its_rate() {
    let different = DataCheck::Different { offset: 77, expected: 1, got: 3 };
    let fabric = Fabric::new(4, 1, 1);
    let (status, reason, verdict) = first_cell(&fabric, |seen| sample(seen).check = different);
    assert_eq!((status, verdict), (CellStatus::Fail, RunVerdict::Fail));
    assert_eq!(reason, "corrupt: byte 77 was sent as 0x01 and arrived as 0x03");
}

#[test]
fn one_key_with_two_contents_makes_the_cell_invalid() {
    let fabric = Fabric::new(4, 1, 1);
    let mut records = fabric.records();
    let mut twin = fabric.observe(&fabric.cell(CellId(0)).expect("planned"), RoundId(0));
    sample(&mut twin[1]).bytes += 1;
    records.insert(5, RunRecord::Observed(twin[1].clone()));
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    assert_eq!(judgement.cells[0].status, CellStatus::Invalid);
    assert_eq!(judgement.cells[0].conflicts.len(), 2);
    assert_eq!(judgement.verdict, RunVerdict::Incomplete);
}

#[test]
fn without_any_gate_nothing_passes() {
    let mut fabric = Fabric::new(4, 2, 1);
    fabric.gates =
        Gates { min_bandwidth: None, max_latency: None, min_line_rate_share: None, population: None };
    assert_eq!(named(&fabric).1, RunVerdict::NotJudged);
    fabric.gates.max_latency = Some(Duration::from_micros(50));
    assert_eq!(named(&fabric).1, RunVerdict::NotJudged, "a latency gate says nothing of bandwidth");
    fabric.gates.min_line_rate_share = Some(0.5);
    assert_eq!(named(&fabric).1, RunVerdict::Pass);
}

#[test]
fn every_limit_says_value_limit_and_where_it_comes_from() {
    let mut fabric = Fabric::new(4, 2, 1);
    fabric.noise = 0.0;
    fabric.gates.min_bandwidth = Some(BitsPerSecond(5e9));
    fabric.gates.min_line_rate_share = Some(0.9);
    let records = fabric.records();
    let view = RunView::new(&records, &fabric).expect("a run");
    let texts: Vec<String> = judge(&view).cells[0].limits.iter().map(Limit::to_string).collect();
    assert_eq!(
        texts,
        [
            "10.00 Gb/s, limit 5.00 Gb/s (the plan's gate)",
            "10.00 Gb/s, limit 9.00 Gb/s (90% of the line rate 10.00 Gb/s)",
            "10.00 Gb/s, limit 8.00 Gb/s (20% below the median 10.00 Gb/s of 24 cells)",
        ]
    );
}

#[test]
fn a_line_rate_gate_without_a_line_rate_forbids_a_pass() {
    let mut fabric = Fabric::new(4, 2, 1);
    fabric.gates.min_line_rate_share = Some(0.5);
    let mut records = fabric.records();
    if let RunRecord::Started(start) = &mut records[0]
        && let crate::record::NodePresence::Present(inventory) = &mut start.nodes[2]
    {
        inventory.rails[1].line_rate_bps = None;
    }
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    assert_eq!(judgement.verdict, RunVerdict::NotJudged);
    let unjudged = judgement.cells.iter().filter(|cell| cell.status == CellStatus::NotJudged).count();
    assert_eq!(unjudged, 6);
}

fn loss(cell: CellId, word: LossWord, node: Option<u16>, reason: &str) -> RunRecord {
    RunRecord::Lost(Loss {
        cell,
        attempt: None,
        word,
        node: node.map(NodeIndex),
        phase: Some(Phase::Armed),
        reason: reason.into(),
    })
}

#[test]
fn a_node_that_died_is_one_finding_and_the_run_is_incomplete() {
    let fabric = Fabric::new(4, 2, 1);
    let mut records = fabric.records();
    let lost: Vec<CellId> =
        (0..4).filter(|n| *n != 3).flat_map(|n| [fabric.id(1, n, 3), fabric.id(1, 3, n)]).collect();
    records.retain(|record| !matches!(record, RunRecord::Observed(seen) if lost.contains(&seen.key.cell)));
    let end = records.len() - 1;
    records
        .splice(end..end, lost.iter().map(|id| loss(*id, LossWord::Crash, Some(3), "its connection broke")));
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    assert_eq!(judgement.verdict, RunVerdict::Incomplete);
    let texts: Vec<&str> = judgement.findings.iter().map(|f| f.text.as_str()).collect();
    assert_eq!(texts, ["node n3 died in round 1 and took 6 cells with it"]);
}

#[test]
fn a_node_that_died_is_one_finding_also_where_some_noticed_only_its_silence() {
    let fabric = Fabric::new(4, 1, 1);
    let mut records = fabric.records();
    let lost: Vec<CellId> = (0..3).flat_map(|n| [fabric.id(0, n, 3), fabric.id(0, 3, n)]).collect();
    records.retain(|record| !matches!(record, RunRecord::Observed(seen) if lost.contains(&seen.key.cell)));
    let end = records.len() - 1;
    let words = [LossWord::Timeout, LossWord::Crash].into_iter().cycle();
    records.splice(end..end, lost.iter().zip(words).map(|(id, word)| loss(*id, word, Some(3), "it is gone")));
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    let texts: Vec<&str> = judgement.findings.iter().map(|f| f.text.as_str()).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].contains("n3 died") && texts[0].contains("6 cells"), "{texts:?}");
}

#[test]
fn a_cell_that_was_measured_again_passes_and_a_finding_says_what_died() {
    let fabric = Fabric::new(4, 1, 1);
    let mut records = fabric.records();
    let id = fabric.id(0, 1, 2);
    let cell = fabric.cell(id).expect("a planned cell");
    let mut again = fabric.observe(&cell, RoundId(1));
    again.iter_mut().for_each(|seen| seen.key.attempt = Attempt(2));
    change(&mut records, id, End::Source, |seen| {
        seen.outcome = Outcome::Failed(Failure {
            kind: FailureKind::Crash,
            phase: Phase::Measure,
            detail: "the worker was killed by signal 9".into(),
            remedy: None,
        });
    });
    let end = records.len() - 1;
    records.splice(end..end, again.map(RunRecord::Observed));
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    assert_eq!(judgement.verdict, RunVerdict::Pass);
    let [finding] = &judgement.findings[..] else {
        panic!("one finding, not {:?}", judgement.findings);
    };
    assert!(finding.text.starts_with("1 cell measured"), "{}", finding.text);
    assert_eq!(finding.evidence, ["n1 in measure: the worker was killed by signal 9"]);
    assert_eq!(finding.cells, [id]);
}

#[test]
fn losses_without_a_known_node_are_explained_by_the_smallest_part() {
    let fabric = Fabric::new(5, 2, 1);
    let mut records = fabric.records();
    let lost: Vec<CellId> = (0..5).filter(|n| *n != 2).map(|n| fabric.id(0, n, 2)).collect();
    records.retain(|record| !matches!(record, RunRecord::Observed(seen) if lost.contains(&seen.key.cell)));
    let end = records.len() - 1;
    records
        .splice(end..end, lost.iter().map(|id| loss(*id, LossWord::Timeout, None, "not armed within 10s")));
    let view = RunView::new(&records, &fabric).expect("a run");
    assert_eq!(judge(&view).findings[0].part, Some(node(2, on(0), Side::Receive)));
}

#[test]
fn fail_beats_incomplete_and_an_unfinished_run_never_passes() {
    let fabric = Fabric::new(4, 2, 1);
    let mut records = fabric.records();
    records.pop();
    let verdict = |records: &[RunRecord]| {
        let view = RunView::new(records, &fabric).expect("a run");
        let judgement = judge(&view);
        (judgement.verdict, judgement.reasons.join("; "))
    };
    assert_eq!(verdict(&records).0, RunVerdict::Incomplete);
    records.push(RunRecord::Ended(RunEnd::Aborted { reason: "no quorum".into() }));
    let (word, reasons) = verdict(&records);
    assert_eq!(word, RunVerdict::Incomplete);
    assert!(reasons.contains("the run was aborted: no quorum"), "{reasons}");
    change(&mut records, CellId(2), End::Destination, |seen| sample(seen).bytes /= 4);
    change(&mut records, CellId(2), End::Source, |seen| sample(seen).bytes /= 4);
    assert_eq!(verdict(&records).0, RunVerdict::Fail);
    let only_start = &records[..1];
    let (word, reasons) = verdict(only_start);
    assert_eq!(word, RunVerdict::Incomplete);
    assert!(reasons.contains("24 of 24 cells were not tested"), "{reasons}");
}

fn all_to_all() -> Fabric {
    Fabric { pattern: Pattern::AllToAll, ..Fabric::new(4, 1, 1) }
}

#[test]
fn concurrent_figures_count_inside_the_common_window() {
    let fabric = all_to_all();
    let records = fabric.records();
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    let Concurrency::Counted { window, overlap, .. } = judgement.cells[3].concurrency else {
        panic!("{:?}", judgement.cells[3].concurrency);
    };
    // The window of a second, less the clock error of 50 us on both sides.
    assert_eq!(window.length(), Duration::from_micros(999_900));
    assert!((overlap - 0.9999).abs() < 1e-9);
    assert_eq!(judgement.verdict, RunVerdict::Pass);
    let Some(Figure::Bandwidth(figure)) = judgement.cells[3].figure else {
        panic!("a bandwidth cell");
    };
    assert_eq!(figure.window, window.length());
}

#[test]
fn a_cell_that_was_not_there_or_whose_clock_is_unsure_is_not_counted_as_concurrent() {
    let (status, reason, _) = first_cell(&all_to_all(), |seen| seen.clock.error_ns = 60_000_000);
    assert_eq!(status, CellStatus::Invalid);
    assert!(reason.contains("clock error of 60000 us is above 5%"), "{reason}");
    let (status, reason, _) = first_cell(&all_to_all(), |seen| seen.clock.offset_ns = -300_000_000);
    assert_eq!(status, CellStatus::Invalid);
    assert!(reason.contains("covers 70% of the cell's, 80% are needed"), "{reason}");
    let (status, ..) = first_cell(&all_to_all(), |seen| seen.clock.error_ns = 40_000_000);
    assert_eq!(status, CellStatus::Pass);
}

#[test]
fn a_cell_that_is_slow_under_load_is_not_cleared_by_a_retest_alone() {
    let fabric = all_to_all();
    let mut records = fabric.records();
    for end in [End::Source, End::Destination] {
        change(&mut records, CellId(5), end, |seen| {
            let sample = sample(seen);
            sample.bytes /= 3;
            sample.marks.clear();
        });
    }
    let retest = Cell {
        id: CellId(fabric.cells()),
        purpose: Purpose::Retest { of: CellId(5) },
        ..fabric.cell(CellId(5)).expect("planned")
    };
    let end = records.len() - 1;
    records.splice(end..end, fabric.observe(&retest, RoundId(5)).map(RunRecord::Observed));
    records.insert(end, RunRecord::Added(vec![retest]));
    let view = RunView::new(&records, &fabric).expect("a run");
    let judgement = judge(&view);
    assert_eq!(judgement.cells[5].status, CellStatus::Fail);
    assert!(judgement.cells[5].reason.contains("slow under load only"), "{}", judgement.cells[5].reason);
}

#[test]
fn a_slow_loopback_names_its_node_and_asks_no_other_node() {
    let mut fabric = Fabric::new(8, 1, 3);
    fabric.pattern = Pattern::Loopback;
    let mut records = fabric.records();
    let own = Loopbacks(8);
    records.retain(|record| !matches!(record, RunRecord::Observed(_)));
    let end = records.len() - 1;
    let seen = (0..8).flat_map(|id| {
        let cell = own.cell(CellId(id)).expect("planned");
        fabric.observe(&cell, RoundId(0)).map(RunRecord::Observed)
    });
    records.splice(end..end, seen);
    for end in [End::Source, End::Destination] {
        change(&mut records, CellId(5), end, |seen| sample(seen).bytes /= 3);
    }
    let view = RunView::new(&records, &own).expect("a run");
    let judgement = judge(&view);
    assert_eq!(judgement.findings[0].part, Some(node(5, on(0), Side::Both)));
    assert!(judgement.findings.iter().any(|f| f.text.contains("nothing of the fabric")));
    let added = retests(&view, &judgement, CellId(8));
    assert_eq!(added.len(), 2);
    assert!(added.iter().all(|cell| cell.purpose == Purpose::Retest { of: CellId(5) }));
}

/// One loopback cell for each node.
struct Loopbacks(u16);

impl CellSource for Loopbacks {
    fn cell(&self, id: CellId) -> Option<Cell> {
        (id.0 < self.cells()).then_some(Cell {
            id,
            case: CaseIndex(0),
            rail: RailId(0),
            src: NodeIndex(id.0 as u16),
            dst: NodeIndex(id.0 as u16),
            purpose: Purpose::Plan,
        })
    }

    fn cells(&self) -> u32 {
        u32::from(self.0)
    }

    fn rounds(&self) -> u32 {
        1
    }

    fn coverage(&self) -> Coverage {
        Coverage { planned_pairs: 0, possible_pairs: 0 }
    }
}

#[test]
fn records_without_a_start_or_of_another_plan_are_refused() {
    let fabric = Fabric::new(4, 1, 1);
    let records = fabric.records();
    assert_eq!(RunView::new(&records[1..], &fabric).err(), Some(JudgeError::NoStart));
    let other = Fabric::new(5, 1, 1);
    assert!(matches!(RunView::new(&records, &other).err(), Some(JudgeError::ForeignCell { .. })));
}

#[test]
fn observations_of_other_runs_and_unplanned_cells_are_left_out_and_counted() {
    let fabric = Fabric::new(4, 1, 1);
    let mut records = fabric.records();
    let mut stray = fabric.observe(&fabric.cell(CellId(0)).expect("planned"), RoundId(0));
    stray[0].key.cell = CellId(999);
    stray[1].key.run = crate::ids::RunId([1; 16]);
    records.extend(stray.map(RunRecord::Observed));
    let view = RunView::new(&records, &fabric).expect("a run");
    assert_eq!(view.strays, 2);
    assert_eq!(judge(&view).verdict, RunVerdict::Pass);
    assert_eq!(view.cell(CellId(3)).map(|cell| cell.case), Some(CaseIndex(0)));
}
