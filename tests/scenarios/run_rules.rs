//! The rules of runs and clients: one run at a time, any client may follow it, losing a client loses nothing.
//!
//! Proof, because each step is another process that knows only the mesh's address and key: what it is told comes from
//! the mesh.

use std::process::Command;

use bench_core::report::RunReport;
use rustix::process::Signal;

use crate::support::exclusive::machine;
use crate::support::mesh::{Mesh, MeshSpec};
use crate::support::process::{Finished, Process, run};
use crate::support::program::program;
use crate::support::site::Site;
use crate::support::waiting::{PATIENCE, wait_for};

#[test]
fn a_second_sweep_is_refused_with_the_id_of_the_first_and_cancel_ends_that() {
    let _alone = machine();
    let mesh = pair();
    let first = mesh.begin_sweep(&[LONG.as_slice(), &["--run-id", FIRST]].concat());
    mesh.await_rounds(0);
    mesh.sweep(&SHORT)
        .exits(2)
        .finished_says(&format!("run {FIRST} is on"))
        .finished_says(&format!("railmesh cancel {FIRST}"));
    mesh.run(&["cancel", FIRST]).exits(0);
    let swept = first.end();
    swept.exits(3);
    assert!(swept.report().reasons.iter().any(|reason| reason.contains("cancelled")), "{swept}");
    mesh.run(&["cancel", FIRST]).exits(2).says(FIRST).says("has already ended: incomplete");
    mesh.run(&["cancel"]).exits(2).says("no run is on").says("has already ended");
    mesh.sweep(&SHORT).exits(0);
}

#[test]
fn a_detached_run_is_followed_and_fetched_by_others_and_its_id_starts_nothing_new() {
    let _alone = machine();
    let mesh = pair();
    let detached = mesh.run(&[&["sweep", "--detach", "--run-id", FIRST], SHORT.as_slice()].concat());
    let detached = detached.exits(0);
    assert_eq!(detached.stdout.trim(), FIRST, "the id is all that --detach prints");
    let attached = result_of(mesh.run(&["attach", FIRST, "--json"]).exits(0));
    assert_eq!(attached.run_id, FIRST);
    let fetched = result_of(mesh.run(&["results", FIRST, "--json"]).exits(0));
    assert_eq!(fetched, attached, "what is over does not change");
    let again = mesh.sweep(&[SHORT.as_slice(), &["--run-id", FIRST]].concat());
    assert_eq!(again.report(), &attached, "the same id is the same run");
    let status = mesh.status();
    assert!(status.contains(FIRST), "{status}");
    let unknown = "ffffffffffffffffffffffffffffffff";
    mesh.run(&["results", unknown]).exits(3).says(unknown);
    mesh.run(&["cancel", unknown]).exits(2).says(unknown);
}

#[test]
fn a_killed_client_leaves_a_readable_result_and_the_run_goes_on() {
    let _alone = machine();
    let mesh = pair();
    let mut sweep = mesh.begin_sweep(&[LONG.as_slice(), &["--run-id", FIRST]].concat());
    let result = sweep.out().join("result.json");
    let measured = |report: &RunReport| report.cells.iter().filter(|cell| cell.bandwidth.is_some()).count();
    wait_for("a partial result with a figure", PATIENCE, || {
        let json = std::fs::read_to_string(&result).map_err(|error| error.to_string())?;
        let report = RunReport::from_json(&json).map_err(|error| format!("{error} in {json}"))?;
        (measured(&report) > 0).then_some(()).ok_or_else(|| mesh.status())
    });
    sweep.process().signal(Signal::KILL);
    let swept = sweep.end();
    assert_eq!(swept.finished.code, -9, "the client was killed");
    let partial = swept.report();
    let measured = |report: &RunReport| report.cells.iter().filter(|cell| cell.bandwidth.is_some()).count();
    let whole = result_of(mesh.run(&["attach", FIRST, "--json"]).exits(0));
    assert!(
        0 < measured(partial) && measured(partial) < measured(&whole),
        "{} cells of {} were in the partial result",
        measured(partial),
        measured(&whole)
    );
    assert_eq!(measured(&whole), whole.cells.len(), "the run went on to its end");
}

#[test]
fn a_plan_that_names_a_rail_that_there_is_not_is_refused_at_once() {
    let _alone = machine();
    // The second node never joins: who waited for it would take half a minute.
    let mesh = MeshSpec::on(Site::loopback(2, 1)).without(2).start();
    let refused = mesh.sweep(&["-t", "tcp_bw", "--only-rails", "r5"]);
    refused.exits(2).finished_says("the plan names rail 5");
}

#[test]
fn a_result_outlives_the_coordinator_that_ended_its_run() {
    let _alone = machine();
    let mut mesh = MeshSpec::on(Site::loopback(3, 1)).start().ask_node(3);
    let swept = mesh.sweep(&[SHORT.as_slice(), &["--run-id", FIRST]].concat());
    swept.exits(0);
    mesh.agent(1).signal(Signal::KILL);
    wait_for("another coordinator", PATIENCE, || {
        let status = mesh.status();
        let elected = status.contains("coordinator   n2") || status.contains("coordinator   n3");
        elected.then_some(()).ok_or(status)
    });
    let fetched = result_of(mesh.run(&["results", FIRST, "--json"]).exits(0));
    assert_eq!(&fetched, swept.report(), "the electors have kept it");
    mesh.run(&["cancel", FIRST]).exits(2).says("has already ended: pass");
}

#[test]
fn a_result_is_drawn_again_in_every_form() {
    let _alone = machine();
    let mesh = pair();
    let sweep = mesh.begin_sweep(&SHORT);
    let out = sweep.out().to_owned();
    let swept = sweep.end();
    swept.exits(0);
    let draw = |format: &str| {
        let mut command = Command::new(program());
        command.arg("report").arg(&out).args(["--format", format]);
        run("report", &mut command, PATIENCE).exits(0).stdout
    };
    let file = |name: &str| std::fs::read_to_string(out.join(name)).expect("the run folder holds it");
    assert_eq!(draw("json"), file("result.json"));
    assert_eq!(draw("csv"), file("cells.csv"));
    assert_eq!(draw("markdown"), file("report.md"));
    assert_eq!(draw("text"), swept.finished.stdout, "the text is what the sweep printed");
    assert_eq!(draw("csv").lines().count(), 1 + swept.report().cells.len(), "a line a cell");
}

#[test]
fn a_wrong_plan_is_refused_with_line_and_key_before_anything_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |text: &str| {
        let plan = folder.path().join("plan.toml");
        std::fs::write(&plan, text).expect("written");
        // Nobody listens at that port: a client that asked would end with 3.
        let mut command = Command::new(program());
        command.arg("sweep").arg(&plan).args(["--connect", "127.0.0.1:9"]);
        run("sweep", &mut command, PATIENCE).exits(2)
    };
    refused("tests = [\"tcp_bw\"]\ndurations = \"2s\"\n").says("line 2").says("durations");
    refused("\n[gates]\nmin_bandwidth = \"fast\"\n").says("line 3").says("gates.min_bandwidth");
    refused("tests = [\"tcp_bw\"\n").says("line ");
}

#[test]
fn json_is_all_that_stdout_gets() {
    let _alone = machine();
    let mesh = pair();
    let mut command = mesh.client([&["sweep", "--json"], SHORT.as_slice()].concat());
    command.arg("--out").arg(mesh.folder().join("run"));
    let finished = Process::start("sweep", &mut command).finish(PATIENCE).exits(0);
    let value: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON and nothing else");
    assert!(value.is_object(), "{finished}");
}

/// Two nodes, one rail.
fn pair() -> Mesh {
    MeshSpec::on(Site::loopback(2, 1)).start()
}

fn result_of(finished: Finished) -> RunReport {
    RunReport::from_json(&finished.stdout).unwrap_or_else(|error| panic!("{error}; {finished}"))
}

/// Two cells at a gentle rate, with a limit of their own: two cells are no population.
const SHORT: [&str; 10] =
    ["-t", "tcp_bw", "-D", "200ms", "--warmup", "50ms", "--rate-limit", "200M", "-w", "1M"];

/// Ten cells, one after the other: about 7 s.
const LONG: [&str; 12] =
    ["-t", "tcp_bw", "-s", "64K:1M", "-D", "500ms", "--warmup", "50ms", "--rate-limit", "200M", "-w", "1M"];

/// The id of a run.
const FIRST: &str = "00112233445566778899aabbccddeeff";
