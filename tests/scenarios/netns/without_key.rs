//! Nothing beyond loopback is served without a key.
//!
//! Proof, because the address is a real one of the node and the same command with a key forms the other scenarios'
//! meshes.

use crate::support::fabric::{Fabric, PORT, control_address};
use crate::support::process::run;
use crate::support::program::program;
use crate::support::waiting::PATIENCE;

#[test]
#[ignore = "needs root and network namespaces"]
fn without_a_key_a_real_address_is_refused_with_the_command_that_makes_one() {
    let fabric = Fabric::new(1, 1);
    let peers = format!("n1={}:{PORT}", control_address(1));
    let mut command = fabric.node(1).place().command(&[], program());
    command.args(["agent", "--name", "n1", "--peers", &peers, "--state"]);
    let state = tempfile::tempdir().expect("a folder");
    command.arg(state.path());
    run("agent", &mut command, PATIENCE).exits(2).says("railmesh keygen mesh.key");
}
