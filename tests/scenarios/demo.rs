//! `railmesh demo`, the first command of the README: what it shows is there, and what it is told to break it finds.
//!
//! Proof, because the demo is the product's own path (agent processes, mutual TLS, workers, TCP on loopback addresses)
//! and its result is read back and held against itself: every place of every matrix, every histogram against its cells.

use std::collections::BTreeSet;
use std::process::Command;

use bench_core::judge::CellStatus;
use bench_core::report::SCHEMA;
use railmesh::cpus::CpuSet;
use serde_json::Value;

use crate::support::exclusive::machine;
use crate::support::process::run;
use crate::support::program::program;
use crate::support::report::Swept;
use crate::support::waiting::PATIENCE;

#[test]
fn the_demo_passes_and_its_result_is_whole() {
    let _alone = machine();
    on_one_processor();
    let swept = demo(&["--json", "--rate", "200M"]);
    swept.exits(0).has_full_matrices(4, 2).histograms_add_up();
    let printed: Value =
        serde_json::from_str(&swept.finished.stdout).expect("--json prints JSON and nothing else");
    let top = printed.as_object().expect("an object");
    assert_eq!(printed["schema"], SCHEMA);
    assert_eq!(printed["verdict"], "pass");
    for key in ["run_id", "reasons", "nodes", "rails", "cells", "matrices", "histograms", "findings"] {
        assert!(top.contains_key(key), "{key} is missing from the result");
    }
    assert_eq!(printed["nodes"].as_array().map(Vec::len), Some(4));
    assert_eq!(printed["rails"].as_array().map(Vec::len), Some(2));
    let from_folder = serde_json::from_str::<Value>(&swept.report().to_json()).expect("read before");
    assert_eq!(printed, from_folder, "stdout and the run folder say the same");
}

#[test]
fn a_slow_rail_of_the_demo_is_named_with_its_node() {
    let _alone = machine();
    let swept = demo(&["--fault", "slow=n2:r1", "--rate", "200M", "-t", "tcp_bw", "-D", "300ms"]);
    swept.exits(1);
    let named: BTreeSet<(Vec<String>, Option<u16>)> = swept
        .slow()
        .iter()
        .filter_map(|finding| finding.part.as_ref())
        .map(|part| (part.nodes.clone(), part.rail))
        .collect();
    assert_eq!(named, BTreeSet::from([(vec!["n2".to_owned()], Some(1))]), "{swept}");
}

#[test]
fn an_absent_node_of_the_demo_is_named_and_the_run_is_no_pass() {
    let _alone = machine();
    let swept = demo(&["--fault", "absent=n3", "-t", "tcp_bw", "-D", "200ms", "-w", "1M"]);
    swept.exits(3).lost_only_cells_of("n3", &[CellStatus::NotTested]);
    assert!(swept.finished.stdout.contains("n3"), "{swept}");
}

/// From here on this test and its processes run on one processor: where two of the demo's nodes share one and others do
/// not, an exchange takes 10 us or 40 us by the scheduler's choice, and the population gate finds that.
fn on_one_processor() {
    let allowed = CpuSet::of_this_thread().expect("the kernel tells the allowed processors");
    // Not the lowest: it serves most of the machine's interrupts.
    let one = allowed.iter().last().expect("this thread runs somewhere");
    CpuSet::from_iter([one]).pin_this_thread().expect("one of the allowed");
}

/// The demo with its run folder in a place of its own.
fn demo(flags: &[&str]) -> Swept {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    let mut command = Command::new(program());
    command.arg("demo").args(flags).arg("--out").arg(&out);
    Swept::of(run("demo", &mut command, PATIENCE), &out)
}
