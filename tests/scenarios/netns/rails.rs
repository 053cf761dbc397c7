//! Nodes that name their devices differently have the same rails; nodes whose rails are not the same are refused.
//!
//! Proof, because the rails of the fabric are separate bridges: a cell across two of them would carry no byte.

use std::fs;

use crate::support::fabric::Fabric;
use crate::support::report::Swept;

#[test]
#[ignore = "needs root and network namespaces"]
fn nodes_that_name_their_devices_differently_have_the_same_rails() {
    let fabric = Fabric::new(3, 2);
    // By name, n2 would have its rails the wrong way round.
    fabric.rename(2, "rail0", "ens9f1");
    fabric.rename(2, "rail1", "ens9f0");
    fabric.rename(3, "rail1", "eth7");
    let swept = fabric.mesh_on_one_processor().start().sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    swept.exits(0).has_full_matrices(3, 2);
    assert_eq!(devices(&swept, "n1"), ["rail0", "rail1"], "{swept}");
    assert_eq!(devices(&swept, "n2"), ["ens9f1", "ens9f0"], "{swept}");
    assert_eq!(devices(&swept, "n3"), ["rail0", "eth7"], "{swept}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn crossed_rails_are_refused_with_the_place_and_a_plan_can_put_them_right() {
    let fabric = Fabric::new(3, 2);
    let mesh = fabric.mesh_on_one_processor().flags_of(2, &["--rails", "rail1,rail0"]).start();
    let refused = mesh.sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    refused.exits(3);
    let words = refused.to_string();
    for place in [
        "n2's rail r0 (rail1 10.77.2.2) is in 10.77.2.0/24, which is rail r1 of n1",
        "n2's rail r1 (rail0 10.77.1.2) is in 10.77.1.0/24, which is rail r0 of n1",
    ] {
        assert!(words.contains(place), "{place:?} is missing; {words}");
    }
    assert!(!words.contains("n3's rail"), "n3 is sound; {words}");

    let plan = mesh.folder().join("plan.toml");
    let text = "tests = [\"tcp_bw\"]\nduration = \"500ms\"\n[rails_of]\nn2 = [\"rail0\", \"rail1\"]\n";
    fs::write(&plan, text).expect("a plan in the scenario's folder");
    let swept = mesh.sweep(&[plan.to_str().expect("a path in UTF-8")]);
    swept.exits(0).has_full_matrices(3, 2);
    assert_eq!(devices(&swept, "n2"), ["rail0", "rail1"], "{swept}");

    fs::write(&plan, text.replace("\"rail1\"", "\"mlx5_9\"")).expect("a plan in the scenario's folder");
    let lacking = mesh.sweep(&[plan.to_str().expect("a path in UTF-8")]);
    lacking.exits(3);
    let words = lacking.to_string();
    assert!(words.contains("n2") && words.contains("\"mlx5_9\" is no RDMA device"), "{words}");
}

/// The devices of a node's rails in order.
fn devices<'a>(swept: &'a Swept, node: &str) -> Vec<&'a str> {
    let nodes = swept.report().nodes.iter().filter(|other| other.node == node);
    nodes.flat_map(|node| node.rails.iter().map(|rail| rail.device.as_str())).collect()
}
