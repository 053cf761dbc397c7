//! Runs of the coordinator against a mesh on a virtual clock.

#[path = "runs/mesh.rs"]
mod mesh;
#[path = "runs/rails.rs"]
mod rails;

use std::collections::BTreeSet;
use std::time::Duration;

use bench_core::ids::{Attempt, CellId, Epoch, NodeIndex, RunId};
use bench_core::message::{Attending, Company, Request, Response, SubmitReply};
use bench_core::record::{FailureKind, LossWord, NodePresence, Outcome, Phase, RunEnd, RunRecord};
use coordinator::{Attendance, CallTag, Entry, Event, Ticket};
use mesh::{Behaviour, RUN, TestMesh, plan};

/// Two cases of pairs over 4 nodes and 2 rails, one after the other: 2 x 2 x 6 rounds of 2 cells.
const PAIRS: &str = "";
const CELLS: usize = 48;

fn measured_cells(mesh: &TestMesh) -> BTreeSet<CellId> {
    let measured = mesh.observations().into_iter().filter(|o| matches!(o.outcome, Outcome::Measured(_)));
    measured.map(|o| o.key.cell).collect()
}

#[test]
fn a_sound_mesh_measures_every_cell_from_both_ends_once() {
    let mut mesh = TestMesh::new(4, 2);
    mesh.submit(plan(PAIRS));
    mesh.drive();
    assert_eq!(mesh.replies, [(Ticket(1), SubmitReply::Accepted)]);
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    assert_eq!(mesh.observations().len(), 2 * CELLS);
    assert_eq!(measured_cells(&mesh).len(), CELLS);
    assert!(mesh.losses().is_empty());
}

#[test]
fn no_round_starts_before_its_mark_committed() {
    let mut mesh = TestMesh::new(4, 1);
    mesh.submit(plan(PAIRS));
    // The run is accepted; from here on nothing commits.
    while mesh.proposed.iter().all(|entry| !matches!(entry, Entry::RoundMark(_))) {
        mesh.commits = mesh.proposed.is_empty() || mesh.replies.is_empty();
        assert!(mesh.step(), "a round is armed and its mark proposed");
    }
    mesh.commits = false;
    for _ in 0..1_000 {
        mesh.step();
    }
    assert!(mesh.sent.iter().all(|(_, _, request)| !matches!(request, Request::Start(_))));
}

#[test]
fn the_next_round_is_armed_while_this_one_measures_and_starts_within_milliseconds_of_its_end() {
    let mut mesh = TestMesh::new(4, 1);
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    let windows: Vec<_> = mesh
        .records()
        .iter()
        .filter_map(|record| match record {
            RunRecord::Round(round) => Some(round.window),
            _ => None,
        })
        .collect();
    assert_eq!(windows.len(), 6);
    for pair in windows.windows(2) {
        let gap = pair[1].start.since(pair[0].end);
        // Warm-up 10 ms, lead 3 ms, tail 1 ms, delays below 1 ms; arming is not in it.
        assert!(gap < Duration::from_millis(16), "{gap:?}");
    }
}

#[test]
fn a_node_that_never_joins_gets_its_cells_not_tested_and_the_others_finish() {
    let mut mesh = TestMesh::nobody(4, 1);
    mesh.feed(mesh::elected());
    [0, 1, 3].into_iter().for_each(|node| mesh.join(node));
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    let losses = mesh.losses();
    assert_eq!(losses.len(), 6);
    for loss in losses {
        assert_eq!((loss.word, loss.node, loss.attempt), (LossWord::NotTested, Some(NodeIndex(2)), None));
        assert!(loss.reason.contains("n3"), "{}", loss.reason);
    }
    assert_eq!(measured_cells(&mesh).len(), 6);
    let RunRecord::Started(start) = &mesh.records()[0] else { panic!("the first record is the start") };
    assert!(matches!(&start.nodes[2], NodePresence::Absent { reason } if reason.contains("30s")));
}

#[test]
fn a_node_that_dies_in_a_round_is_named_and_the_rest_complete() {
    let mut mesh = TestMesh::new(4, 1);
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive_until(|request| matches!(request, Request::Start(start) if start.key.round.0 == 1));
    mesh.behave(2, Behaviour::SilentAt(Phase::Measure));
    mesh.feed(Event::Left { node: NodeIndex(2), reason: "timed out".to_owned() });
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    let blamed: BTreeSet<_> = mesh.losses().iter().map(|loss| loss.node).collect();
    assert_eq!(blamed, BTreeSet::from([Some(NodeIndex(2))]));
    assert!(mesh.losses().iter().any(|loss| loss.word == LossWord::Crash));
    // The pairs among the other three: 6 ordered ones, each measured.
    let sound = measured_cells(&mesh);
    assert!(sound.len() >= 6, "{sound:?}");
}

#[test]
fn a_node_that_hangs_while_arming_is_named_with_the_phase_and_the_run_goes_on() {
    let mut mesh = TestMesh::new(4, 1);
    mesh.behave(1, Behaviour::SilentAt(Phase::Prepare));
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    for loss in mesh.losses() {
        assert_eq!(
            (loss.word, loss.node, loss.phase),
            (LossWord::Timeout, Some(NodeIndex(1)), Some(Phase::Prepare))
        );
    }
    assert_eq!(measured_cells(&mesh).len(), 6);
}

#[test]
fn a_node_that_hangs_in_a_round_is_named_by_the_deadline() {
    let mut mesh = TestMesh::new(2, 1);
    mesh.behave(1, Behaviour::SilentAt(Phase::Measure));
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    assert!(mesh.losses().iter().any(|l| l.word == LossWord::Timeout && l.node == Some(NodeIndex(1))));
}

#[test]
fn a_missing_capability_skips_its_cells_and_is_not_tried_again() {
    let mut mesh = TestMesh::new(2, 1);
    mesh.behave(0, Behaviour::CannotArm(FailureKind::Unsupported));
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    let words: Vec<_> = mesh.losses().iter().map(|loss| (loss.word, loss.node)).collect();
    assert_eq!(words, vec![(LossWord::Skip, Some(NodeIndex(0))); 2]);
}

#[test]
fn a_cell_whose_worker_crashed_is_tried_once_more_and_both_attempts_are_on_record() {
    let mut mesh = TestMesh::new(2, 1);
    mesh.behave(1, Behaviour::CrashesOnce);
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    assert_eq!(measured_cells(&mesh).len(), 2);
    let second = mesh.observations().into_iter().filter(|o| o.key.attempt == Attempt(2)).count();
    assert_eq!(second, 2, "both ends of the one cell that crashed");
}

#[test]
fn a_slow_rail_is_measured_again_with_other_partners() {
    let mut mesh = TestMesh::new(4, 2);
    mesh.behave(1, Behaviour::SlowRail0);
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    let added: Vec<_> = mesh
        .records()
        .iter()
        .filter_map(|record| match record {
            RunRecord::Added(cells) => Some(cells.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(!added.is_empty());
    assert!(added.iter().all(|cell| cell.src == NodeIndex(1) || cell.dst == NodeIndex(1)), "{added:?}");
    let measured = measured_cells(&mesh);
    assert!(added.iter().all(|cell| measured.contains(&cell.id)));
}

#[test]
fn the_same_run_id_starts_nothing_new_and_another_run_is_refused_by_the_firsts_id() {
    let mut mesh = TestMesh::new(2, 1);
    mesh.submit(plan(PAIRS));
    mesh.step();
    mesh.submit_as(RUN, 2, plan(PAIRS));
    mesh.submit_as(RunId([8; 16]), 3, plan(PAIRS));
    mesh.submit_as(RUN, 4, plan("tests = [\"tcp_lat\"]"));
    mesh.drive();
    assert!(mesh.replies.contains(&(Ticket(2), SubmitReply::Accepted)));
    assert!(mesh.replies.contains(&(Ticket(3), SubmitReply::Busy { run: RUN })));
    assert!(mesh.replies.iter().any(|(ticket, reply)| {
        *ticket == Ticket(4)
            && matches!(reply, SubmitReply::Rejected { reason } if reason.contains("another plan"))
    }));
    let accepted = mesh.proposed.iter().filter(|entry| matches!(entry, Entry::RunAccepted { .. })).count();
    assert_eq!(accepted, 1);
}

#[test]
fn a_cancelled_run_keeps_what_it_has_and_tells_the_agents() {
    let mut mesh = TestMesh::new(4, 1);
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive_until(|request| matches!(request, Request::Start(start) if start.key.round.0 == 2));
    mesh.feed(Event::Cancel { run: None });
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Cancelled));
    assert_eq!(measured_cells(&mesh).len(), 4);
    assert!(mesh.sent.iter().any(|(_, _, request)| matches!(request, Request::Abort { .. })));
    let starts_after =
        mesh.sent.iter().filter(|(_, _, r)| matches!(r, Request::Start(s) if s.key.round.0 > 2)).count();
    assert_eq!(starts_after, 0);
}

#[test]
fn a_higher_epoch_seen_by_an_agent_deposes_the_coordinator() {
    let mut mesh = TestMesh::new(2, 1);
    mesh.submit(plan(PAIRS));
    mesh.drive_until(|request| matches!(request, Request::Start(_)));
    let seen = Epoch { term: 9, elector: 1 };
    let result = Ok(Response::StaleEpoch { seen });
    mesh.feed(Event::Answered { node: NodeIndex(1), tag: CallTag::Probe, result });
    let sent = mesh.sent.len();
    mesh.drive();
    assert_eq!(mesh.sent.len(), sent, "a deposed coordinator commands nothing");
    assert_eq!(mesh.machine.epoch(), None);
    assert!(
        mesh.machine.run(Some(RUN)).is_none(),
        "the run is another coordinator's by now: it did not end here"
    );
}

#[test]
fn a_plan_that_names_a_rail_that_there_is_not_is_refused_at_once() {
    let mut mesh = TestMesh::nobody(4, 2);
    mesh.feed(mesh::elected());
    // Nobody else is there: who waited for the others would not answer yet.
    mesh.submit(plan("rails = [0, 2]"));
    let [(_, SubmitReply::Rejected { reason })] = &mesh.replies[..] else {
        panic!("rejected, not {:?}", mesh.replies)
    };
    assert!(reason.contains("rail 2"), "{reason}");
    assert!(mesh.proposed.is_empty());
}

#[test]
fn a_run_that_waits_for_nodes_to_join_names_them() {
    let mut mesh = TestMesh::nobody(3, 1);
    mesh.feed(mesh::elected());
    mesh.join(0);
    mesh.submit(plan(PAIRS));
    while mesh.replies.is_empty() && mesh.step() {}
    let status = mesh.machine.run(Some(RUN)).expect("accepted").status();
    let waiting: Vec<String> =
        status.waiting_for.iter().map(|(node, what)| format!("{node} {what}")).collect();
    assert_eq!((status.phase.as_str(), waiting), ("join", vec!["n2 to join".into(), "n3 to join".into()]));
}

/// A one-shot agent comes.
fn come(mesh: &mut TestMesh, node: u16, text: &str) {
    mesh.feed(Event::Attended {
        node: NodeIndex(node),
        run: RUN,
        plan: Box::new(plan(text)),
        attending: Attending::Present,
        printed_by: None,
        wall_seconds: 0,
    });
}

fn told(mesh: &TestMesh, node: u16) -> Attendance {
    mesh.machine.attendance(NodeIndex(node), RUN, mesh.now).expect("it commands")
}

#[test]
fn the_run_of_one_shot_agents_begins_once_when_the_last_one_has_come() {
    let mut mesh = TestMesh::new(3, 1);
    [0, 1].into_iter().for_each(|node| come(&mut mesh, node, PAIRS));
    assert!(mesh.proposed.is_empty());
    assert_eq!(told(&mesh, 0), Attendance::Gathering { missing: vec![NodeIndex(2)] });
    [2, 0, 1].into_iter().for_each(|node| come(&mut mesh, node, PAIRS));
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    let accepted = mesh.proposed.iter().filter(|entry| matches!(entry, Entry::RunAccepted { .. })).count();
    assert_eq!(accepted, 1);
    let over =
        Attendance::Over { printer: Some(NodeIndex(0)), printed_by: None, company: Company::Uninformed };
    assert_eq!(told(&mesh, 2), over);
}

#[test]
fn the_run_of_one_shot_agents_begins_without_those_that_do_not_come_in_time() {
    let mut mesh = TestMesh::nobody(3, 1);
    mesh.feed(mesh::elected());
    [0, 1].into_iter().for_each(|node| {
        mesh.join(node);
        come(&mut mesh, node, PAIRS);
    });
    assert!(mesh.step(), "the join time-out");
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    assert!(mesh.losses().iter().all(|loss| loss.reason.contains("n3")), "{:?}", mesh.losses());
}

#[test]
fn one_shot_agents_are_refused_a_plan_that_does_not_fit() {
    let mut mesh = TestMesh::new(2, 1);
    [0, 1].into_iter().for_each(|node| come(&mut mesh, node, "rails = [1]"));
    let Attendance::Refused { reason, .. } = told(&mesh, 0) else {
        panic!("refused, not {:?}", told(&mesh, 0))
    };
    assert!(reason.contains("rail 1") && mesh.proposed.is_empty(), "{reason}");
}

#[test]
fn nobody_commands_before_an_election() {
    let mut mesh = TestMesh::nobody(2, 1);
    mesh.submit(plan(PAIRS));
    mesh.drive();
    assert!(mesh.sent.is_empty());
    assert!(matches!(&mesh.replies[..], [(_, SubmitReply::Rejected { .. })]));
}
