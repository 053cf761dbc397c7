//! A node that freezes in a round, as a hung machine does, is named with the phase in which it stopped.
//!
//! Proof, because SIGSTOP leaves every connection of the node open: only a deadline can notice, and the run must end
//! by itself while the process is still stopped.

use bench_core::judge::{CellStatus, FindingKind};
use rustix::process::Signal;

use crate::support::fabric::Fabric;
use crate::support::process::workers_of;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_node_that_freezes_in_a_round_is_named_with_the_phase() {
    let fabric = Fabric::new(4, 1);
    let mut mesh = fabric.mesh().start();
    let sweep = mesh.begin_sweep(&["-t", "tcp_bw", "-D", "1s"]);
    mesh.await_rounds(2);
    for worker in workers_of(mesh.agent(4).pid()) {
        rustix::process::kill_process(worker, Signal::STOP).expect("a worker of a living agent");
    }
    mesh.agent(4).signal(Signal::STOP);
    let swept = sweep.end();
    let words = [CellStatus::Crash, CellStatus::Timeout, CellStatus::NotTested];
    swept.exits(3).lost_only_cells_of("n4", &words);
    let lost = swept.findings(FindingKind::Lost);
    let text = |part: &str| {
        lost.iter()
            .flat_map(|finding| finding.evidence.iter().chain([&finding.text]))
            .any(|line| line.contains("n4") && line.contains(part))
    };
    assert!(text("node n4"), "{swept}");
    let phases = ["in prepare", "in armed", "in measure", "in collect"];
    assert!(phases.into_iter().any(text), "no phase is named; {swept}");
}
