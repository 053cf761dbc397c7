//! Clocks days apart, as they are when a cluster is brought up, disturb nothing.
//!
//! Proof, because a time namespace shifts exactly the clock that rounds are started by, and faketime the one that
//! certificates could depend on; both are checked to be in effect.

use std::fs;

use crate::support::fabric::Fabric;
use crate::support::waiting::PATIENCE;

#[test]
#[ignore = "needs root and network namespaces"]
fn a_node_whose_monotonic_clock_is_days_ahead_measures_like_the_others() {
    let fabric = Fabric::new(4, 1);
    let shifted = ["unshare", "--fork", "--kill-child", "--time", "--monotonic", AHEAD, "--boottime", AHEAD];
    let mut mesh = fabric.mesh_on_one_processor().wrapped(2, &shifted).start();
    let clock_of =
        |pid: String| fs::read_link(format!("/proc/{pid}/ns/time_for_children")).expect("a time namespace");
    let (here, there) = ("self".to_owned(), mesh.agent(2).pid().as_raw_nonzero().to_string());
    assert_ne!(clock_of(here), clock_of(there), "the node has a clock of its own");
    let swept = mesh.sweep(&["-D", "500ms"]);
    swept.exits(0).has_full_matrices(4, 1).histograms_add_up();
}

/// Needs faketime; run.sh says so where it is missing.
#[test]
#[ignore = "needs root, network namespaces and faketime"]
fn a_node_whose_wall_clock_is_days_behind_joins_and_measures() {
    let fabric = Fabric::new(4, 1);
    // Only the wall clock: the other one has its own scenario.
    let behind = ["env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-f", "-40d"];
    let mut mesh = fabric.mesh_on_one_processor().wrapped(3, &behind).start();
    let stamp = |line: String| line.split('T').next().unwrap_or_default().to_owned();
    let theirs = stamp(mesh.agent(3).await_line("the agent is up", PATIENCE));
    let ours = stamp(mesh.agent(2).await_line("the agent is up", PATIENCE));
    assert_ne!(theirs, ours, "the node's log is written with another date");
    let swept = mesh.sweep(&["-D", "500ms"]);
    swept.exits(0).has_full_matrices(4, 1).histograms_add_up();
}

/// 3.5 days, in the seconds that `unshare` wants.
const AHEAD: &str = "302400";
