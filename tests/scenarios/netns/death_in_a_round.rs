//! A node that is killed in a round takes its own cells with it and no other.
//!
//! Proof, because the agent is killed with SIGKILL while `status` says that rounds are being played, and because every
//! cell between the others must pass: a run that stopped, or counted them as lost, would show.

use bench_core::judge::{CellStatus, FindingKind};
use rustix::process::Signal;

use crate::support::fabric::Fabric;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_node_killed_in_a_round_is_named_and_the_rest_complete() {
    let fabric = Fabric::new(4, 2);
    let mut mesh = fabric.mesh().start();
    let sweep = mesh.begin_sweep(&["-t", "tcp_bw", "-D", "1s"]);
    mesh.await_rounds(2);
    mesh.agent(4).signal(Signal::KILL);
    let swept = sweep.end();
    let words = [CellStatus::Crash, CellStatus::Timeout, CellStatus::NotTested];
    swept.exits(3).lost_only_cells_of("n4", &words);
    let (own, _) = swept.cells_with("n4");
    let passing = own.iter().filter(|cell| cell.status == CellStatus::Pass).count();
    assert!(0 < passing && passing < own.len(), "{passing} of {}; {swept}", own.len());
    let lost = swept.findings(FindingKind::Lost);
    assert!(!lost.is_empty() && lost.iter().all(|finding| finding.text.contains("node n4")), "{swept}");
}
