//! Peers that do not belong to a mesh are refused with a clear line, on both sides, and the mesh goes on.
//!
//! Proof, because each of them differs in one thing only from a peer that is let in, and because the mesh must still
//! answer with all of its members afterwards.

use std::process::Command;
use std::time::Duration;

use crate::support::mesh::{Mesh, MeshSpec};
use crate::support::process::{Process, run};
use crate::support::program::{program, write_other_build};
use crate::support::site::Site;
use crate::support::waiting::PATIENCE;

#[test]
fn a_client_with_another_key_is_told_so() {
    let mut mesh = MeshSpec::on(Site::loopback(2, 1)).start();
    let other = mesh.folder().join("other.key");
    run("keygen", Command::new(program()).arg("keygen").arg(&other), PATIENCE).exits(0);
    let mut sweep = mesh.client_with_key(["sweep", "-t", "tcp_bw"], &other);
    sweep.arg("--out").arg(mesh.folder().join("run"));
    run("sweep", &mut sweep, PATIENCE)
        .exits(3)
        .says("holds another mesh key: give every node, and every client with --key, the same key file");
    mesh.agent(1).await_line("holds another mesh key", PATIENCE);
    goes_on(&mesh, 2);
}

#[test]
fn an_agent_of_another_build_is_refused_and_both_sides_say_why() {
    let mut mesh = MeshSpec::on(Site::loopback(2, 1)).without(2).start();
    let copy = mesh.folder().join("railmesh-of-another-build");
    write_other_build(&copy, OTHER_BUILD);
    let stranger = Process::start("the other build", &mut mesh.agent_of(&copy, 2));
    stranger.finish(PATIENCE).exits(2).says("runs another build: copy the same file to every node");
    mesh.agent(1).await_line("runs another build", PATIENCE);
    goes_on(&mesh, 1);
}

#[test]
fn an_agent_with_another_roster_is_refused_and_both_sides_say_why() {
    let mut mesh = MeshSpec::on(Site::loopback(2, 1)).without(2).start();
    let site = mesh.site();
    // A roster of four, in which the stranger is no elector and so dials all three electors, n1 among them.
    let longer =
        format!("n1={},n2=127.0.0.2:9,n3=127.0.0.3:9,n4={}", site.node(1).control, site.node(2).control);
    let mut command = Command::new(program());
    command
        .args(["agent", "--die-with-parent", "--name", "n4", "--peers", &longer])
        .args(["--rails", &site.node(2).rails[0].to_string()])
        .arg("--key")
        .arg(mesh.key())
        .arg("--state")
        .arg(mesh.folder().join("other"));
    let stranger = Process::start("the other roster", &mut command);
    let theirs = stranger.await_line("roster", PATIENCE);
    assert!(theirs.contains("refuses"), "{theirs}");
    let ours = mesh.agent(1).await_line("roster", PATIENCE);
    let comer = mesh.site().node(2).control.to_string();
    assert!(ours.contains(&comer), "{ours}");
    // The waits between two tries grow from 0.1 s to 5 s: about 7 tries in this time, where short ones made 40.
    std::thread::sleep(Duration::from_secs(10));
    let log = stranger.stderr();
    let of_n1 = |line: &&str| line.contains("cannot reach an elector yet") && line.contains("elector=n1");
    let tries = log.lines().filter(of_n1).count();
    assert!((3..=12).contains(&tries), "{tries} tries\n{log}");
    goes_on(&mesh, 1);
}

#[test]
fn a_second_agent_with_a_living_name_is_refused_with_the_address_of_the_first() {
    let mut mesh = MeshSpec::on(Site::loopback(4, 1)).without(4).start();
    let site = mesh.site();
    let (first, free) = (site.node(2).control, site.node(4).control);
    // With the first's state, too: what is refused must not touch it.
    let mut command = mesh.agent_command(2);
    command.args(["--listen", &free.to_string()]);
    Process::start("the second n2", &mut command)
        .finish(PATIENCE)
        .exits(2)
        .says(&first.to_string())
        .says("n2");
    assert!(mesh.agent(2).is_alive(), "the first goes on");
    goes_on(&mesh, 3);
}

#[test]
fn without_a_key_only_loopback_is_served() {
    let state = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(program());
    // An address of documentation (RFC 5737): it is refused before anything is bound.
    command
        .args(["agent", "--name", "n1", "--peers", "n1=192.0.2.1:7777", "--rails", "127.0.0.1", "--state"])
        .arg(state.path());
    run("agent", &mut command, PATIENCE).exits(2).says("railmesh keygen mesh.key");
}

/// The mesh still answers, with as many members.
#[track_caller]
fn goes_on(mesh: &Mesh, members: usize) {
    mesh.await_members(members);
    mesh.run(&["status"]).exits(0);
}

/// As long as a build's identity, and none's.
const OTHER_BUILD: &str = "0123456789abcdef0123456789abcdef";
