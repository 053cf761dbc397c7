//! A minute of load that takes every processor and the only interface elects nobody.
//!
//! Proof, because the agents have no other interface than the one that the traffic fills, all of them and their spinning
//! workers share this machine's processors without any priority, and because every node's log is searched for a second
//! coordinator.

use bench_core::judge::FindingKind;

use super::coordinator_dies::commander;
use crate::support::fabric::{Fabric, LINE_RATE};
use crate::support::mesh::MeshSpec;
use crate::support::waiting::PATIENCE;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_minute_of_spinning_workers_and_incast_on_the_only_interface_elects_nobody() {
    let fabric = Fabric::new(5, 0);
    fabric.limit_control(LINE_RATE);
    let mut mesh = MeshSpec::on(fabric.site()).flags(&["--rails", "ctl"]).start();
    let leader = commander(&mesh);
    let swept =
        mesh.sweep(&["-t", "tcp_bw", "--pattern", "incast", "--spin", "-q", "4", "-D", "12s", "--no-retest"]);
    assert_eq!(swept.report().cells.len(), 20, "{swept}");
    assert!(swept.findings(FindingKind::Lost).is_empty(), "{swept}");
    assert_eq!(commander(&mesh), leader);
    for node in 1..=5 {
        mesh.agent(node).await_line("takes part in its first round", PATIENCE);
        let log = mesh.agent(node).stderr();
        let elected = log.lines().filter(|line| line.contains("commands the mesh")).count();
        assert_eq!(elected, usize::from(node == leader), "n{node} was elected {elected} times:\n{log}");
        assert!(!log.contains("deposed"), "n{node}:\n{log}");
    }
}
