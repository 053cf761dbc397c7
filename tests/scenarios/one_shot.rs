//! One-shot agents, as a batch system starts them: the same command on every node, one run, one report, one exit code.
//!
//! Proof, because there is no client: whatever is printed and every exit code comes from the agents, which know nothing
//! but their command line.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bench_core::report::RunReport;
use rustix::process::Signal;

use crate::support::exclusive::machine;
use crate::support::mesh::{Mesh, MeshSpec};
use crate::support::process::{Finished, Process, run};
use crate::support::site::Site;
use crate::support::waiting::PATIENCE;

#[test]
fn all_nodes_exit_with_the_verdict_and_the_first_prints_the_report_once() {
    let _alone = machine();
    for (limit, code, word) in [("1M", 0, "PASS"), ("1T", 1, "FAIL")] {
        let job = Job::new(3, &short(limit));
        let mut mesh = job.spec().launch();
        let ended = finish(&mut mesh, &[1, 2, 3]);
        assert!(ended.iter().all(|node| node.code == code), "{}", all(&ended));
        assert_eq!(ended[0].stdout.lines().next(), Some(word), "{}", ended[0]);
        for other in &ended[1..] {
            assert_eq!(other.stdout, "", "{other}");
            let lines: Vec<&str> = other.stderr.lines().filter(|line| line.contains("n1's stdout")).collect();
            assert_eq!(lines.len(), 1, "one line says where the report is: {other}");
        }
        let report = job.report();
        // Cells that fail are measured again.
        assert!(report.cells.len() == 6 || code == 1, "{} cells", report.cells.len());
        assert!(ended[1].stderr.contains(&report.run_id), "all mean the same run: {}", ended[1]);
    }
}

#[test]
fn a_run_outlives_its_coordinator_and_is_printed_by_the_first_that_is_left() {
    let _alone = machine();
    let job = Job::new(3, LONG);
    let mut mesh = job.spec().launch().ask_node(3);
    mesh.await_rounds(2);
    assert!(
        mesh.status().contains("coordinator   n1"),
        "the first one that is there commands: {}",
        mesh.status()
    );
    mesh.agent(1).signal(Signal::KILL);
    let ended = finish(&mut mesh, &[2, 3]);
    assert_eq!(ended[0].code, 3, "what n1 had to measure is lost: {}", all(&ended));
    assert_eq!(ended[1].code, 3, "{}", all(&ended));
    assert!(ended[0].stdout.contains("n1"), "the report names who was lost: {}", ended[0]);
    assert_eq!(ended[1].stdout, "", "{}", ended[1]);
    let report = job.report();
    let measured = report.cells.iter().filter(|cell| cell.bandwidth.is_some()).count();
    assert!(measured * 3 >= report.cells.len(), "{measured} cells, and n2 with n3 are a third of them");
}

#[test]
fn a_node_that_is_started_again_joins_its_run_and_all_exit_alike() {
    let _alone = machine();
    let job = Job::new(3, LONG);
    let mut mesh = job.spec().launch().ask_node(3);
    mesh.await_rounds(2);
    mesh.agent(1).signal(Signal::KILL);
    mesh.start_agent(1);
    let ended = finish(&mut mesh, &[1, 2, 3]);
    assert!(ended.iter().all(|node| node.code == ended[0].code), "{}", all(&ended));
    let printed = ended.iter().filter(|node| !node.stdout.is_empty()).count();
    assert_eq!(printed, 1, "{}", all(&ended));
    assert_eq!(
        job.report().cells.iter().filter(|cell| cell.bandwidth.is_some()).count(),
        30,
        "{}",
        all(&ended)
    );
}

#[test]
fn a_node_that_never_comes_is_named_and_the_others_end_with_3() {
    let _alone = machine();
    let job = Job::new(3, &short("1M"));
    let mut mesh = job.spec().flags(&["--join-timeout", "3s"]).without(3).launch();
    let ended = finish(&mut mesh, &[1, 2]);
    assert!(ended.iter().all(|node| node.code == 3), "{}", all(&ended));
    assert!(ended[0].stdout.contains("n3"), "{}", ended[0]);
    assert!(ended[1].stdout.is_empty() && ended[1].stderr.contains("n3"), "{}", ended[1]);
}

#[test]
fn without_a_majority_of_electors_a_node_ends_with_3_and_names_them() {
    let _alone = machine();
    let job = Job::new(3, &short("1M"));
    let mut mesh = job.spec().flags(&["--join-timeout", "1s"]).without(2).without(3).launch();
    let ended = finish(&mut mesh, &[1]);
    assert_eq!((ended[0].code, ended[0].stdout.as_str()), (3, ""), "{}", ended[0]);
    assert!(ended[0].stderr.contains("n2") && ended[0].stderr.contains("n3"), "{}", ended[0]);
}

#[test]
fn nodes_with_different_plans_are_refused_by_name() {
    let _alone = machine();
    let job = Job::new(3, &short("1M"));
    let other = job.file("other.toml", &short("2M"));
    let spec = job.spec().flags_of(3, &["--run", &other]);
    let mut mesh = spec.launch();
    let ended = finish(&mut mesh, &[1, 2, 3]);
    for node in &ended {
        assert_eq!((node.code, node.stdout.as_str()), (2, ""), "{node}");
        assert!(node.stderr.contains("n3") && node.stderr.contains("another plan"), "{node}");
    }
}

#[test]
fn what_is_started_again_after_the_end_leaves_it_alone_and_exits_with_the_verdict() {
    let _alone = machine();
    let job = Job::new(2, &short("1T"));
    let mut mesh = job.spec().launch();
    let ended = finish(&mut mesh, &[1, 2]);
    assert!(ended.iter().all(|node| node.code == 1), "{}", all(&ended));
    let report = job.report();
    for node in [1, 2] {
        let again = run("again", &mut mesh.agent_command(node), PATIENCE).exits(1).says("has ended before");
        assert_eq!(again.stdout, "", "{again}");
    }
    assert_eq!(job.report(), report, "nothing was measured again");
    // Another job with the same plan is another run.
    let agents: Vec<Process> = [1, 2]
        .map(|node| {
            let mut command = mesh.agent_command(node);
            command.args(["--job", "second"]);
            Process::start("second", &mut command)
        })
        .into();
    let second: Vec<Finished> = agents.into_iter().map(|agent| agent.finish(LIMIT)).collect();
    assert!(second.iter().all(|node| node.code == 1), "{}", all(&second));
    // The folder of the first run is taken.
    assert!(
        second[0].stdout.starts_with("FAIL") && second[0].stderr.contains("holds results already"),
        "{}",
        second[0]
    );
}

/// A batch job: its plan, and the place of its report.
struct Job {
    nodes: u8,
    folder: tempfile::TempDir,
}

impl Job {
    fn new(nodes: u8, plan: &str) -> Self {
        let job = Self { nodes, folder: tempfile::tempdir().expect("a folder") };
        job.file("plan.toml", plan);
        job
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn spec(&self) -> MeshSpec {
        let plan = self.folder.path().join("plan.toml").display().to_string();
        let spec = MeshSpec::on(Site::loopback(self.nodes, 1));
        let out = self.out().display().to_string();
        let spec = spec.flags(&["--exit-when-done", "--out", &out]);
        (1..=self.nodes).fold(spec, |spec, node| spec.flags_of(node, &["--run", &plan]))
    }

    fn report(&self) -> RunReport {
        let json = fs::read_to_string(self.out().join("result.json")).expect("the printing node wrote it");
        RunReport::from_json(&json).unwrap_or_else(|error| panic!("{error} in {json}"))
    }
}

fn finish(mesh: &mut Mesh, nodes: &[u8]) -> Vec<Finished> {
    nodes.iter().map(|node| mesh.take_agent(*node).finish(LIMIT)).collect()
}

fn all(ended: &[Finished]) -> String {
    ended.iter().map(|node| format!("{node}\n")).collect()
}

/// Six cells for three nodes, at a gentle rate.
fn short(limit: &str) -> String {
    format!(
        "tests = [\"tcp_bw\"]\nduration = \"200ms\"\nwarmup = \"50ms\"\nrate_limit = \"200M\"\n[gates]\npopulation = \
         \"off\"\nmin_bandwidth = \"{limit}\"\n"
    )
}

/// Thirty cells one after the other, about 15 s.
const LONG: &str = "tests = [\"tcp_bw\"]\nsizes = \"64K:1M\"\nduration = \"400ms\"\nwarmup = \"50ms\"\n\
                    rate_limit = \"200M\"\n[gates]\npopulation = \"off\"\nmin_bandwidth = \"1M\"\n";

/// Longest job: a run with a recovery in it.
const LIMIT: Duration = Duration::from_secs(120);
