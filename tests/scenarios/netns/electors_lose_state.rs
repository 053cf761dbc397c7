//! An elector without its state votes no more until it is replaced; without a majority the mesh says who is missing and
//! what to do.
//!
//! Proof, because the state is removed from the disk between SIGKILL and the next start, as a lost volume does it, and
//! because what the mesh can do afterwards is measured: a sweep that passes, or exit code 3 with the names.

use rustix::process::Signal;

use super::coordinator_dies::commander;
use crate::support::fabric::Fabric;
use crate::support::mesh::Mesh;
use crate::support::waiting::PATIENCE;

#[test]
#[ignore = "needs root and network namespaces"]
fn an_elector_that_lost_its_state_is_mute_until_it_is_replaced_and_the_mesh_goes_on() {
    let fabric = Fabric::new(5, 1);
    let mut mesh = fabric.mesh().start().ask_node(5);
    let leader = commander(&mesh);
    let lost = if leader == 3 { 4 } else { 3 };
    lose(&mut mesh, lost);
    mesh.start_agent(lost);
    mesh.agent(lost).await_line("it asks to be taken in", PATIENCE);
    mesh.agent(leader).await_line("is replaced by its new id", PATIENCE);
    mesh.agent(lost).await_line("is taken in and votes from now on", PATIENCE);
    mesh.await_members(5);
    assert_eq!(commander(&mesh), leader, "the loss of one elector elects nobody");
    mesh.sweep(QUICK).exits(0).has_full_matrices(5, 1);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn without_a_majority_of_electors_the_mesh_names_them_and_a_new_generation_works() {
    let fabric = Fabric::new(4, 1);
    let mut mesh = fabric.mesh().start().ask_node(1);
    for lost in [2, 3] {
        lose(&mut mesh, lost);
    }
    for lost in [2, 3] {
        mesh.start_agent(lost);
        mesh.agent(lost).await_line("this elector is mute", PATIENCE);
    }
    let refused = mesh.sweep(QUICK);
    refused.exits(3).finished_says("n2").finished_says("n3").finished_says("--new-generation");
    drop(refused);
    for node in 1..=4 {
        mesh.stop_agent(node);
    }
    let mut mesh = mesh.with_flags(&["--new-generation", "1"]);
    for node in 1..=4 {
        mesh.start_agent(node);
    }
    mesh.await_members(4);
    mesh.sweep(QUICK).exits(0).has_full_matrices(4, 1);
}

/// Kills a node's agent and removes its state.
fn lose(mesh: &mut Mesh, node: u8) {
    mesh.agent(node).signal(Signal::KILL);
    mesh.stop_agent(node);
    std::fs::remove_dir_all(mesh.state(node)).expect("the agent had a state folder");
}

/// A sweep that needs every node.
const QUICK: &[&str] = &["-t", "tcp_bw", "-D", "500ms", "--pattern", "shift"];
