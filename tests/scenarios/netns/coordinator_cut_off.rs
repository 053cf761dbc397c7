//! A coordinator that is stopped or cut off is followed by another, and what it says afterwards moves nobody.
//!
//! Proof, because the old coordinator lives on: it is stopped with SIGSTOP and woken after its successor has begun, or its
//! packets are dropped while one neighbour still hears it. Which epoch every node obeyed, and when, is read from the logs
//! of the nodes, and every cell must be there once.

use std::time::Duration;

use rustix::process::Signal;

use super::coordinator_dies::{FIRST_ROUND, LOST, commander, every_cell_is_there_once};
use crate::support::fabric::Fabric;
use crate::support::mesh::{Mesh, Sweep};
use crate::support::waiting::{PATIENCE, wait_for};

#[test]
#[ignore = "needs root and network namespaces"]
fn a_coordinator_that_was_stopped_is_refused_when_it_goes_on() {
    let fabric = Fabric::new(5, 1);
    let mut mesh = fabric.mesh().start().ask_node(5);
    let (old, sweep) = begin(&mut mesh);
    mesh.agent(old).signal(Signal::STOP);
    let new = await_successor(&mut mesh, old);
    mesh.agent(new).await_line(FIRST_ROUND, PATIENCE);
    mesh.agent(old).signal(Signal::CONT);
    mesh.agent(old).await_line("deposed", PATIENCE);
    let swept = sweep.end();
    every_cell_is_there_once(&swept, old);
    assert_eq!(commander(&mesh), new, "nobody else was elected");
    obeyed_epochs_only_grow(&mut mesh);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_coordinator_in_the_smaller_part_starts_nothing_though_its_side_hears_it() {
    let fabric = Fabric::new(5, 1);
    let mut mesh = fabric.mesh().flags(&["-v"]).start().ask_node(5);
    let (old, sweep) = begin(&mut mesh);
    let friend = if old == 2 { 1 } else { 2 };
    let cut = transport::clock::now();
    for far in (1..=5).filter(|node| *node != old && *node != friend) {
        for near in [old, friend] {
            fabric.deafen(near, far);
            fabric.deafen(far, near);
        }
    }
    let new = await_successor(&mut mesh, old);
    assert_ne!(new, friend, "two of five elect nobody");
    let swept = sweep.end();
    for gone in [old, friend] {
        let name = format!("n{gone}");
        let (_, others) = swept.cells_with(&name);
        assert!(!others.is_empty(), "{swept}");
    }
    swept.exits(3);
    // The lease: what was marked before the cut may still begin within it, nothing later.
    let latest = cut.after(LEASE);
    for node in [old, friend] {
        let late: Vec<u64> = mesh.starts(node).into_iter().filter(|at| *at > latest.as_nanos()).collect();
        assert!(late.is_empty(), "n{node} began rounds after the cut: {late:?}");
    }
    obeyed_epochs_only_grow(&mut mesh);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_coordinator_that_hears_and_is_not_heard_is_followed() {
    let fabric = Fabric::new(5, 1);
    let mut mesh = fabric.mesh().start().ask_node(5);
    let (old, sweep) = begin(&mut mesh);
    for far in (1..=5).filter(|node| *node != old) {
        // What it sends is dropped; what they send arrives.
        fabric.deafen(old, far);
    }
    await_successor(&mut mesh, old);
    mesh.agent(old).await_line("deposed", PATIENCE);
    let swept = sweep.end();
    swept.exits(3).lost_only_cells_of(&format!("n{old}"), &LOST);
    every_cell_is_there_once(&swept, old);
    obeyed_epochs_only_grow(&mut mesh);
}

/// A sweep that has begun, and who commands it.
fn begin(mesh: &mut Mesh) -> (u8, Sweep) {
    let sweep = mesh.begin_sweep(&["-t", "tcp_bw", "-D", "1s", "--pattern", "shift"]);
    let old = commander(mesh);
    mesh.agent(old).await_line(FIRST_ROUND, PATIENCE);
    (old, sweep)
}

/// Waits until another node than `old` has said that it commands.
fn await_successor(mesh: &mut Mesh, old: u8) -> u8 {
    wait_for("a successor", PATIENCE, || {
        let commands = |node: &u8| mesh.agent(*node).stderr().contains("commands the mesh");
        (1..=5).filter(|node| *node != old).find(commands).ok_or_else(|| "nobody else commands".to_owned())
    })
}

/// No node ever took part in a round of a lower epoch after one of a higher.
fn obeyed_epochs_only_grow(mesh: &mut Mesh) {
    for node in 1..=5 {
        let terms: Vec<u64> = mesh.terms(node);
        assert!(terms.is_sorted(), "n{node} obeyed the terms {terms:?}");
    }
}

/// Longest time that a coordinator may believe to be one without hearing a majority, and the lead of a start.
const LEASE: Duration = Duration::from_secs(2);
