//! Four nodes with two rails over real interfaces pass.
//!
//! Proof, because exit code 0 takes the population gate over every cell, a figure must stand in every place of every
//! matrix, and the merged histograms must hold exactly as many exchanges as the cells counted one by one.

use crate::support::fabric::Fabric;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_sound_cluster_passes_from_a_client_outside_of_it() {
    let fabric = Fabric::new(4, 2);
    let mesh = fabric.mesh_on_one_processor().start();
    let swept = mesh.sweep(&["-D", "500ms"]);
    swept.exits(0).has_full_matrices(4, 2).histograms_add_up();
    let report = swept.report();
    for node in &report.nodes {
        let rails: Vec<&str> = node.rails.iter().map(|rail| rail.device.as_str()).collect();
        assert_eq!(rails, ["rail0", "rail1"], "the interface with the default route is no rail");
    }
}
