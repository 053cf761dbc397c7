//! Rails that do not match, or that a node has not: the run ends, or the late node stays out, and the place is named.

use bench_core::ids::NodeIndex;
use bench_core::message::Request;
use bench_core::record::{LossWord, Note, RunEnd, RunRecord};

use crate::mesh::{self, Behaviour, TestMesh, plan};

/// One case, so that a run has few rounds; `mlx5_9` is rail 0 and `mlx5_4` rail 1 of n2.
const NAMED: &str = "tests = [\"tcp_bw\"]\n[rails_of]\nn2 = [\"mlx5_9\", \"mlx5_4\"]";

/// What ended the run before its first round.
fn aborted(mesh: &TestMesh) -> &str {
    assert!(
        mesh.sent.iter().all(|(_, _, request)| !matches!(request, Request::Prepare(_))),
        "nothing is measured across rails"
    );
    match mesh.end() {
        Some(RunEnd::Aborted { reason }) => reason,
        other => panic!("not aborted: {other:?}"),
    }
}

fn notes(mesh: &TestMesh) -> Vec<&Note> {
    let mut notes = Vec::new();
    for record in mesh.records() {
        if let RunRecord::Note(note) = record {
            notes.push(note);
        }
    }
    notes
}

/// Three nodes of which n3 joins when the first round of the others is on.
fn joined_late_by(behaviour: Behaviour, text: &str) -> TestMesh {
    let mut mesh = TestMesh::nobody(3, 2);
    mesh.behave(2, behaviour);
    mesh.feed(mesh::elected());
    [0, 1].into_iter().for_each(|node| mesh.join(node));
    mesh.submit(plan(text));
    mesh.drive_until(|request| matches!(request, Request::Start(_)));
    mesh.join(2);
    mesh.drive();
    mesh
}

/// Everything of n3 was lost because it took no part, and everything of the others was measured.
#[track_caller]
fn only_n3_stayed_out(mesh: &TestMesh) {
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    assert!(!mesh.losses().is_empty());
    for loss in mesh.losses() {
        assert_eq!((loss.word, loss.node), (LossWord::NotTested, Some(NodeIndex(2))), "{}", loss.reason);
    }
    assert_eq!(mesh.observations().len(), 2 * 4, "n1 to n2 and back, two rails, both ends");
}

#[test]
fn another_number_of_rails_ends_the_run_with_the_place() {
    let mut mesh = TestMesh::new(3, 2);
    mesh.set_rails(1, 1);
    mesh.submit(plan(""));
    mesh.drive();
    let reason = aborted(&mesh);
    assert!(reason.contains("n2 has 1") && reason.contains("--rails"), "{reason}");
}

#[test]
fn rails_in_each_others_network_end_the_run_with_the_place() {
    let mut mesh = TestMesh::new(3, 2);
    mesh.behave(1, Behaviour::CrossedRails);
    mesh.submit(plan(""));
    mesh.drive();
    let reason = aborted(&mesh);
    assert!(
        reason.contains("n2's rail r0 (eth0 10.1.0.1) is in 10.1.0.0/24, which is rail r1 of n1"),
        "{reason}"
    );
    assert!(reason.contains("n2's rail r1 (eth1 10.0.0.1) is in 10.0.0.0/24"), "{reason}");
    assert!(!reason.contains("n1's rail") && !reason.contains("n3's rail"), "only n2 is named: {reason}");
}

#[test]
fn a_node_is_asked_for_the_devices_that_the_plan_takes_as_its_rails() {
    let mut mesh = TestMesh::new(3, 2);
    mesh.submit(plan(NAMED));
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    let asked: Vec<_> = mesh
        .sent
        .iter()
        .filter_map(|(_, node, request)| match request {
            Request::Probe { rails, .. } => Some((node.0, rails.clone())),
            _ => None,
        })
        .collect();
    let named = Some(vec!["mlx5_9".to_owned(), "mlx5_4".to_owned()]);
    assert_eq!(asked, [(0, None), (1, named.clone()), (2, None)]);
    let prepared = mesh.sent.iter().filter_map(|(_, node, request)| match request {
        Request::Prepare(prepare) => Some((*node, prepare.rails.clone())),
        _ => None,
    });
    for (node, rails) in prepared {
        assert_eq!(rails, named.clone().filter(|_| node == NodeIndex(1)), "rounds name what the probe named");
    }
}

#[test]
fn devices_that_a_node_lacks_end_the_run_with_its_words() {
    let mut mesh = TestMesh::new(3, 2);
    mesh.behave(1, Behaviour::LacksRails);
    mesh.submit(plan(NAMED));
    mesh.drive();
    assert_eq!(aborted(&mesh), "rails_of of the plan cannot be used: n2: mlx5_9 is no device of this node");
}

#[test]
fn a_node_that_joins_late_with_crossed_rails_takes_no_part_and_a_note_names_the_place() {
    let mesh = joined_late_by(Behaviour::CrossedRails, "tests = [\"tcp_bw\"]");
    only_n3_stayed_out(&mesh);
    let [note] = notes(&mesh)[..] else { panic!("one note, not {:?}", notes(&mesh)) };
    assert_eq!(note.node, Some(NodeIndex(2)));
    assert!(
        note.text.starts_with("n3 joined late and takes no part")
            && note.text.contains("n3's rail r0 (eth0 10.1.0.2) is in 10.1.0.0/24"),
        "{}",
        note.text
    );
    assert!(note.remedy.as_ref().is_some_and(|remedy| remedy.contains("--rails")), "{note:?}");
}

#[test]
fn a_node_that_joins_late_without_the_named_devices_takes_no_part() {
    let text = "tests = [\"tcp_bw\"]\n[rails_of]\nn3 = [\"mlx5_9\", \"mlx5_4\"]";
    let mesh = joined_late_by(Behaviour::LacksRails, text);
    only_n3_stayed_out(&mesh);
    let [note] = notes(&mesh)[..] else { panic!("one note, not {:?}", notes(&mesh)) };
    assert_eq!(note.text, "n3: mlx5_9 is no device of this node: it takes no part");
}

#[test]
fn a_slower_rail_is_measured_and_noted() {
    let mut mesh = TestMesh::new(3, 2);
    mesh.behave(1, Behaviour::QuarterRate);
    mesh.submit(plan("tests = [\"tcp_bw\"]"));
    mesh.drive();
    assert_eq!(mesh.end(), Some(&RunEnd::Completed));
    let [note] = notes(&mesh)[..] else { panic!("one note, not {:?}", notes(&mesh)) };
    assert_eq!(note.node, Some(NodeIndex(1)));
    assert!(note.text.starts_with("n2, rail r0 (eth0 10.0.0.1) runs at 100.00 Gb/s"), "{}", note.text);
}
