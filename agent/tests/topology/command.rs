//! The executable: exit codes, streams, files.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use bench_core::topology::{SCHEMA, TopologyDocument};

fn topo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railmesh"))
        .arg("topo")
        .args(args)
        .output()
        .expect("the executable starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("what it prints is UTF-8")
}

const MATRIX: &str = "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: mlx5_7\n";

#[test]
fn a_capture_gives_the_table_on_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("any name at all");
    std::fs::write(&file, MATRIX).unwrap();
    let output = topo(&["--from", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(out.lines().nth(1).unwrap().starts_with("GPU0  mlx5_7 (NIC0)"), "{out}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn json_is_the_contract_and_stdin_a_file() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_railmesh"))
        .args(["topo", "--json", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(MATRIX.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let document: TopologyDocument = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document.schema, SCHEMA);
    assert_eq!(document.pairs[0].name.as_deref(), Some("mlx5_7"));
}

#[test]
fn a_file_that_is_absent_is_wrong_usage_and_one_without_a_capture_is_not_measured() {
    let output = topo(&["--from", "/nonexistent/file"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/nonexistent/file"));
    let output = topo(&["--from", "/dev/null"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("no capture of a known tool"), "{}", text(&output.stderr));
}

#[test]
fn a_topology_file_is_refused_with_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (file, xml) = (folder.path().join("matrix"), folder.path().join("topo.xml"));
    std::fs::write(&file, MATRIX).unwrap();
    let output = topo(&["--from", file.to_str().unwrap(), "--nccl-xml", xml.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("the PCI address of GPU0"), "{}", text(&output.stderr));
    assert!(!xml.exists(), "no file is left that would be wrong");
}

#[test]
fn an_empty_machine_is_described_within_a_second() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("sys")).unwrap();
    let begin = Instant::now();
    let output = topo(&["--root", root.path().to_str().unwrap()]);
    assert!(begin.elapsed() < Duration::from_secs(1));
    assert_eq!(output.status.code(), Some(0));
    let out = text(&output.stdout);
    assert!(out.contains("no PCI device is visible") && out.contains("no RDMA device"), "{out}");
    let output = topo(&["--root", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(2));
}
