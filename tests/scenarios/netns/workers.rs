//! Workers that die or hang in a round are replaced, and the cell is measured again.
//!
//! Proof, because the process is struck from outside while `status` says that rounds are being played; on one rail with
//! four nodes every worker is in every round. The run must still pass, and an attempt that does not count must be left
//! in the result.

use bench_core::judge::CellStatus;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::fabric::Fabric;
use crate::support::process::workers_of;
use crate::support::report::Swept;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_worker_killed_in_a_round_is_replaced_and_its_cell_measured_again() {
    let (swept, struck) = sweep_with_struck_worker(Signal::KILL);
    passes_with_a_second_attempt(&swept);
    mentions(&swept, struck, "signal");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_worker_that_hangs_in_a_round_is_replaced_and_its_cell_measured_again() {
    let (swept, struck) = sweep_with_struck_worker(Signal::STOP);
    passes_with_a_second_attempt(&swept);
    mentions(&swept, struck, "did not answer");
}

/// Strikes the worker of n2 in the third round or later.
fn sweep_with_struck_worker(signal: Signal) -> (Swept, Pid) {
    let fabric = Fabric::new(4, 1);
    let mut mesh = fabric.mesh().start();
    let sweep = mesh.begin_sweep(&["-t", "tcp_bw", "-D", "2s"]);
    mesh.await_rounds(2);
    let workers = workers_of(mesh.agent(2).pid());
    let [worker] = workers[..] else {
        panic!("one rail has one worker, not {workers:?}");
    };
    kill_process(worker, signal).expect("the worker of a living agent");
    let swept = sweep.end();
    let after = workers_of(mesh.agent(2).pid());
    assert!(after.len() == 1 && after[0] != worker, "{after:?} replaced {worker:?}");
    (swept, worker)
}

#[track_caller]
fn passes_with_a_second_attempt(swept: &Swept) {
    swept.exits(0).has_full_matrices(4, 1);
    let again: Vec<_> = swept
        .report()
        .cells
        .iter()
        .filter(|cell| cell.attempt.as_ref().is_some_and(|attempt| attempt.attempt > 1))
        .collect();
    assert!(!again.is_empty(), "no cell was measured again; {swept}");
    for cell in again {
        assert!(
            cell.status == CellStatus::Pass && (cell.src == "n2" || cell.dst == "n2"),
            "cell {}; {swept}",
            cell.id
        );
    }
}

/// A finding says what happened to the worker, by its number.
#[track_caller]
fn mentions(swept: &Swept, worker: Pid, what: &str) {
    let number = worker.as_raw_nonzero().to_string();
    let findings = &swept.report().findings;
    let lines = findings.iter().flat_map(|finding| finding.evidence.iter().chain([&finding.text]));
    let found = lines.filter(|line| line.contains(&number) && line.contains(what)).count();
    assert!(found > 0, "no finding says {what:?} of worker {number}: {findings:#?}; {swept}");
}
