//! Nodes that are never started: the run is no pass, they are named, and their cells are not tested.
//!
//! Proof, because every cell of the missing node is looked at, and so is every cell without it: the first must say
//! `not_tested`, the others must have been measured.

use bench_core::judge::{CellStatus, FindingKind};

use crate::support::fabric::{Fabric, control_address};
use crate::support::waiting::PATIENCE;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_node_that_is_never_started_is_named_and_its_cells_are_not_tested() {
    let fabric = Fabric::new(4, 2);
    let mesh = fabric.mesh().without(3).flags(&["--join-timeout", "3s"]).start();
    let swept = mesh.sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    swept.exits(3).lost_only_cells_of("n3", &[CellStatus::NotTested]);
    let (own, _) = swept.cells_with("n3");
    assert!(own.iter().all(|cell| cell.status == CellStatus::NotTested), "{swept}");
    let findings = swept.findings(FindingKind::NotTested);
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding.text.contains("n3")), "{swept}");
    let absent: Vec<&str> = swept
        .report()
        .nodes
        .iter()
        .filter(|node| node.absent.is_some())
        .map(|node| node.node.as_str())
        .collect();
    assert_eq!(absent, ["n3"], "{swept}");
}

/// Two nodes have one elector: the first.
#[test]
#[ignore = "needs root and network namespaces"]
fn without_its_elector_a_mesh_says_whom_it_misses_and_where() {
    let fabric = Fabric::new(2, 1);
    let mut mesh = fabric.mesh().without(1).launch().ask_node(2);
    mesh.agent(2).await_line("cannot reach an elector yet", PATIENCE);
    let swept = mesh.sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    swept.exits(3);
    let words = &swept.finished.stderr;
    assert!(words.contains("no coordinator"), "{swept}");
    assert!(words.contains(&control_address(1).to_string()), "{swept}");
    assert_eq!(mesh.run(&["status"]).code, 3, "a mesh without a coordinator cannot measure");
}
