//! A node whose control network fails in a round loses its cells, not those of others, and takes part again later.
//!
//! Proof, because the cable is pulled at the switch, where no process of the node can notice, and because the second
//! sweep must have a figure in every place, those of the node that was away included.

use bench_core::judge::CellStatus;

use crate::support::fabric::Fabric;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_node_cut_off_in_a_round_loses_its_cells_and_is_used_again_when_it_is_back() {
    let fabric = Fabric::new(4, 1);
    let mesh = fabric.mesh().start();
    let sweep = mesh.begin_sweep(&["-t", "tcp_bw", "-D", "1s"]);
    mesh.await_rounds(2);
    fabric.unplug_control(4);
    let swept = sweep.end();
    let words = [CellStatus::Crash, CellStatus::Timeout, CellStatus::NotTested];
    swept.exits(3).lost_only_cells_of("n4", &words);
    fabric.replug_control(4);
    mesh.await_members(4);
    let again = mesh.sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    again.exits(0).has_full_matrices(4, 1);
}
