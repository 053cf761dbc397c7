//! Workers as processes: what the agent sees when they die, hang, talk nonsense or lose their parent.
//!
//! The real worker program is killed and stopped by signals; nonsense comes from shell scripts in its place.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_core::cell::End;
use bench_core::ids::{BuildHash, CellId, RailId};
use bench_core::measure::Measurement;
use bench_core::message::{CellTask, EndpointInfo, FromWorker, Peer, TaskId, ToWorker};
use bench_core::node::Capability;
use bench_core::plan::{TestCase, TestKind, Verify, WaitMode};
use bench_core::record::{Evidence, Failure, FailureKind, Outcome, Phase};
use bench_core::time::Mono;
use bench_core::units::Bytes;
use railmesh::build_id::build_hash;
use railmesh::cpus::CpuSet;
use railmesh::pipe;
use railmesh::supervise::{
    MAX_DEATHS, Pool, ProcessFactory, Source, Spawner, Worker, WorkerFactory, WorkerProgram, WorkerSpec,
};
use railmesh::worker::{EXIT_ORPHAN, EXIT_PIPE, InProcessFactory};
use rustix::process::{Pid, Signal, kill_process};
use tracing::level_filters::LevelFilter;
use transport::data::{Backend, Backends, Endpoint, Stop, Timing, backends};

const RAIL: RailId = RailId(1);

const SPEC: WorkerSpec = WorkerSpec { rail: RAIL, cpus: None };

/// Asks the helper below to act; a name in the environment because the test harness owns the arguments.
const HELPER: &str = "RAILMESH_TEST_OWNS_A_WORKER";

#[tokio::test]
async fn a_killed_worker_is_noticed_within_a_second_and_the_signal_is_named() {
    let worker = Worker::start(&real(), &SPEC).await.unwrap();
    let pid = worker.pid().unwrap();
    // Stopped, it cannot answer, so the request is still waiting when the signal comes.
    signal(pid, Signal::STOP);
    let asked = tokio::spawn({
        let worker = worker.clone();
        async move { worker.connect(TaskId(7), Peer::default()).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let killed = Instant::now();
    signal(pid, Signal::KILL);
    let failure = asked.await.unwrap().unwrap_err();
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    assert_eq!((failure.kind, failure.phase), (FailureKind::Crash, Phase::Connect));
    assert_eq!(failure.detail, format!("worker of rail r1 (pid {pid}) was killed by signal 9"));

    let (outcome, _) = worker.run(TaskId(7), Mono::from_nanos(0), Duration::ZERO).await;
    match outcome {
        Outcome::Failed(later) => assert_eq!((later.phase, later.detail), (Phase::Measure, failure.detail)),
        Outcome::Measured(_) => panic!("a dead worker measured"),
    }
}

#[tokio::test]
async fn a_hung_worker_is_killed_within_six_seconds_and_replaced() {
    let pool = Pool::new(Arc::new(real()));
    let hung = pool.worker(&SPEC).await.unwrap();
    let pid = hung.pid().unwrap();
    let stopped = Instant::now();
    signal(pid, Signal::STOP);
    let failure = hung.connect(TaskId(1), Peer::default()).await.unwrap_err();
    // 5 s of silence, up to 1 s to the next ping, and some slack for a loaded machine.
    assert!(stopped.elapsed() < Duration::from_millis(6_800), "{:?}", stopped.elapsed());
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.detail, format!("worker of rail r1 (pid {pid}) did not answer for 5s, killed"));

    let next = pool.worker(&SPEC).await.unwrap();
    assert_ne!(next.pid(), Some(pid));
    assert_answers(&next).await;
    hung.stop().await;
    assert!(!exists(pid));
    pool.shutdown().await;
}

#[tokio::test]
async fn a_worker_dies_with_its_agent() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_process_that_owns_a_worker", "--ignored", "--nocapture"])
        .env(HELPER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let pid: u32 = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("worker is ")?.1.parse().ok())
        .expect("the helper prints its worker's pid");
    assert!(alive(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until(|| !alive(pid), "the worker outlives its parent");
}

#[test]
fn the_kernel_ends_a_worker_whose_parent_died_even_if_its_pipe_stays_open() {
    let script = "exec 3<&0; \"$0\" --parent $$ <&3 & echo $! >&2; wait";
    let mut parent = Command::new("sh")
        .args(["-c", script])
        .arg(program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let pid = line.trim().parse().expect("the shell prints its child's pid");
    let mut stdout = parent.stdout.take().unwrap();
    assert!(pipe::read_frame::<FromWorker>(&mut stdout).unwrap().is_some(), "it is ready");
    // Held by this process too, so the worker reads no end.
    let _stdin = parent.stdin.take();
    assert!(alive(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until(|| !alive(pid), "the worker outlives its parent");
}

/// Not a test: another test runs it as a process of its own and kills it.
#[tokio::test]
#[ignore = "run by a_worker_dies_with_its_agent"]
async fn helper_process_that_owns_a_worker() {
    if std::env::var_os(HELPER).is_some() {
        let worker = Worker::start(&real(), &SPEC).await.unwrap();
        println!("\nworker is {}", worker.pid().unwrap());
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

#[test]
fn a_worker_ends_when_its_pipe_is_closed_and_refuses_a_parent_that_is_not_its_own() {
    let mut worker = Command::new(program()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let ready: Option<FromWorker> = pipe::read_frame(worker.stdout.as_mut().unwrap()).unwrap();
    assert!(matches!(ready, Some(FromWorker::Ready { build, .. }) if build == build_hash()), "{ready:?}");
    drop(worker.stdin.take());
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    let mut rest = Vec::new();
    worker.stdout.unwrap().read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "bytes after the last frame: {rest:?}");

    let orphan = Command::new(program()).args(["--parent", "1"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(orphan.status.code(), Some(i32::from(EXIT_ORPHAN)));
    assert!(orphan.stdout.is_empty());
}

#[test]
fn a_worker_whose_pipe_breaks_or_brings_nonsense_ends_and_says_so_by_its_code() {
    let start = || {
        let mut command = Command::new(program());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().expect("the worker program")
    };
    let mut unheard = start();
    drop(unheard.stdout.take());
    // Its first words may have gone into the pipe before it was closed; the answer to this cannot.
    let _ = pipe::write_frame(unheard.stdin.as_mut().unwrap(), &ToWorker::Ping { number: 1 });
    assert_eq!(unheard.wait().unwrap().code(), Some(i32::from(EXIT_PIPE)));

    let mut misled = start();
    misled.stdin.as_mut().unwrap().write_all(b"\x03\0\0\0abc").unwrap();
    assert_eq!(misled.wait().unwrap().code(), Some(i32::from(EXIT_PIPE)));
}

#[test]
fn a_probe_is_one_frame_with_the_capabilities() {
    let probe = Command::new(program()).arg("probe").output().unwrap();
    assert!(probe.status.success());
    let mut bytes = probe.stdout.as_slice();
    match pipe::read_frame(&mut bytes).unwrap() {
        Some(FromWorker::Ready { build, capabilities }) => {
            assert_eq!(build, build_hash());
            assert_eq!(format!("{capabilities:?}"), format!("{:?}", backends().capabilities()));
        }
        other => panic!("{other:?}"),
    }
    assert!(bytes.is_empty());
}

#[tokio::test]
async fn what_a_program_does_instead_of_being_a_worker_is_said() {
    let ready = frame(build_hash());
    let stray = frame(BuildHash([0xee; 16]));
    for (script, kind, said) in [
        (
            "printf '\\003\\000\\000\\000abc'; sleep 60",
            FailureKind::Crash,
            "a frame of 3 bytes that is no message",
        ),
        (
            "echo Hello, world; sleep 60",
            FailureKind::Crash,
            "a frame of 1819043144 bytes, the limit is 1048576",
        ),
        (
            "echo out of paper >&2; exit 3",
            FailureKind::Crash,
            "exited with code 3; its last words: out of paper",
        ),
        ("exec >&-; exec sleep 60", FailureKind::Crash, "closed its pipe without ending, killed"),
        (
            &format!("printf '{stray}'; sleep 60"),
            FailureKind::Crash,
            "is of build eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        ),
        (&format!("printf '{ready}{ready}'; sleep 60"), FailureKind::Crash, "answered what it was not asked"),
    ] {
        let failure = match Worker::start(&shell(script), &SPEC).await {
            Err(failure) => failure,
            Ok(worker) => worker.connect(TaskId(1), Peer::default()).await.unwrap_err(),
        };
        assert_eq!(failure.kind, kind, "{script}");
        assert!(failure.detail.contains(said), "{script}: {}", failure.detail);
        assert!(failure.detail.starts_with("worker of rail r1 (pid "), "{}", failure.detail);
    }
    let absent = ProcessFactory { program: started_as("/no/such/worker", &[]), ..real() };
    let failure = Worker::start(&absent, &SPEC).await.unwrap_err();
    assert!(failure.detail.contains("could not be started from /no/such/worker"), "{}", failure.detail);
}

#[tokio::test]
async fn a_program_that_is_never_ready_is_given_up() {
    let began = Instant::now();
    let failure = Worker::start(&shell("sleep 60"), &SPEC).await.unwrap_err();
    assert!((10..12).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(failure.detail.ends_with("was not ready within 10s, killed"), "{}", failure.detail);
}

#[tokio::test]
async fn fifty_deaths_leave_no_zombie() {
    let factory = real();
    for death in 0..50 {
        let worker = Worker::start(&factory, &SPEC).await.unwrap();
        let pid = worker.pid().unwrap();
        if death % 2 == 0 {
            signal(pid, Signal::KILL);
            assert!(worker.connect(TaskId(1), Peer::default()).await.is_err());
        }
        worker.stop().await;
        assert!(!exists(pid), "death {death} left process {pid} behind");
    }
}

#[tokio::test]
async fn a_rail_whose_workers_keep_dying_is_given_up_with_the_reason() {
    let pool = Pool::new(Arc::new(shell("exit 9")));
    for _ in 0..MAX_DEATHS {
        let failure = pool.worker(&SPEC).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Crash);
    }
    let failure = pool.worker(&SPEC).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported);
    assert!(
        failure.detail.contains("died 5 times within 60s, the last: worker of rail r1"),
        "{}",
        failure.detail
    );
    assert!(failure.detail.contains("exited with code 9"), "{}", failure.detail);
}

#[tokio::test]
async fn shutdown_ends_every_worker_and_starts_no_other() {
    let spec = |rail| WorkerSpec { rail: RailId(rail), cpus: None };
    let pool = Pool::new(Arc::new(real()));
    let mut pids = Vec::new();
    for rail in 0..4 {
        pids.push(pool.worker(&spec(rail)).await.unwrap().pid().unwrap());
    }
    assert_eq!(pool.worker(&spec(2)).await.unwrap().pid(), Some(pids[2]), "one worker a rail");
    let elsewhere = WorkerSpec { cpus: CpuSet::of_this_thread().ok(), ..spec(2) };
    pids.push(pool.worker(&elsewhere).await.unwrap().pid().unwrap());
    assert_ne!(pids[4], pids[2], "another place is another worker");
    signal(pids[3], Signal::STOP);
    pool.shutdown().await;
    assert!(pids.iter().all(|pid| !exists(*pid)), "{pids:?}");
    assert_eq!(pool.worker(&spec(0)).await.unwrap_err().kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn a_worker_whose_handles_are_gone_is_ended() {
    let worker = Worker::start(&real(), &SPEC).await.unwrap();
    let pid = worker.pid().unwrap();
    drop(worker);
    let limit = Instant::now() + Duration::from_secs(5);
    while exists(pid) {
        assert!(Instant::now() < limit, "process {pid} is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_worker_runs_on_its_processors_and_keeps_its_pipe_from_printing() {
    let cpus: CpuSet = CpuSet::of_this_thread().unwrap().iter().last().into_iter().collect();
    let spec = WorkerSpec { rail: RAIL, cpus: Some(cpus.clone()) };
    let worker = Worker::start(&real(), &spec).await.unwrap();
    let process = PathBuf::from(format!("/proc/{}", worker.pid().unwrap()));
    let status = fs::read_to_string(process.join("status")).unwrap();
    assert!(status.lines().any(|line| line == format!("Cpus_allowed_list:\t{cpus}")), "{status}");
    // Whatever prints to standard output writes to the same pipe as standard error.
    let open = |number: u32| fs::read_link(process.join(format!("fd/{number}"))).unwrap();
    assert_eq!(open(1), open(2));
    assert_ne!(open(1), open(0));
    worker.stop().await;
}

#[tokio::test]
async fn an_aborted_request_resolves_at_once_and_one_task_waits_for_one_answer() {
    let worker = Worker::start(&real(), &SPEC).await.unwrap();
    signal(worker.pid().unwrap(), Signal::STOP);
    let asked = tokio::spawn({
        let worker = worker.clone();
        async move { worker.connect(TaskId(1), Peer::default()).await }
    });
    tokio::task::yield_now().await;
    let again = worker.connect(TaskId(1), Peer::default()).await.unwrap_err();
    assert_eq!(again.detail, "the task waits for another answer already");
    worker.abort(TaskId(1)).await;
    let failure = asked.await.unwrap().unwrap_err();
    assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::Cancelled, "the task was aborted"));
    worker.stop().await;
}

#[tokio::test]
async fn a_hundred_workers_in_this_process_measure_at_once() {
    let registry = Arc::new(Backends::with_sockets(Arc::new(Still)));
    let factory: Arc<dyn WorkerFactory> = Arc::new(InProcessFactory::new(registry));
    let mut nodes = tokio::task::JoinSet::new();
    let at = transport::clock::now().after(Duration::from_millis(300));
    for _ in 0..100 {
        let pool = Pool::new(Arc::clone(&factory));
        nodes.spawn(async move {
            let worker = pool.worker(&SPEC).await.unwrap();
            let endpoint = worker.prepare(task()).await.unwrap();
            worker.connect(TaskId(1), Peer { endpoint, pace: None }).await.unwrap();
            let (outcome, _) = worker.run(TaskId(1), at, Duration::ZERO).await;
            pool.shutdown().await;
            (outcome, worker.connect(TaskId(1), Peer::default()).await.unwrap_err().detail)
        });
    }
    while let Some(node) = nodes.join_next().await {
        let (outcome, after) = node.unwrap();
        assert_eq!(outcome, Outcome::Measured(Measurement::Responder { answered: 4 }));
        assert_eq!(after, "worker of rail r1 was stopped");
    }
    assert!(transport::clock::now() < at.after(Duration::from_secs(5)), "they waited for one another");
}

/// Waits for the start, all at the same instant, and has nothing to move.
struct Still;

impl Backend for Still {
    fn capability(&self) -> Capability {
        Capability { name: "tcp".to_owned(), absent: None }
    }

    fn prepare(&self, _task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
        Ok(Box::new(Self))
    }
}

impl Endpoint for Still {
    fn info(&self) -> Option<EndpointInfo> {
        Some(EndpointInfo::Sim { port: 1 })
    }

    fn connect(&mut self, peer: &Peer, _stop: &Stop) -> Result<(), Failure> {
        assert_eq!(*peer, Peer::at(EndpointInfo::Sim { port: 1 }));
        Ok(())
    }

    fn run(&mut self, timing: &Timing, _stop: &Stop) -> Result<Measurement, Failure> {
        std::thread::sleep(timing.at.since(transport::clock::now()));
        Ok(Measurement::Responder { answered: 4 })
    }

    fn evidence(&self) -> Evidence {
        Evidence::default()
    }
}

fn task() -> CellTask {
    CellTask {
        id: TaskId(1),
        cell: CellId(0),
        end: End::Source,
        case: TestCase {
            kind: TestKind::TcpLat,
            size: Bytes(64),
            streams: 1,
            wait: WaitMode::Blocking,
            window: Duration::from_millis(10),
            warmup: Duration::ZERO,
            verify: Verify::Off,
            rate_limit: None,
            rdma: None,
        },
        bind: Some(Ipv4Addr::LOCALHOST.into()),
        hca: None,
        device: "lo".to_owned(),
        connect_timeout: Duration::from_secs(1),
    }
}

/// An answer that only a living worker gives: that it does not know the task.
async fn assert_answers(worker: &Worker) {
    let failure = worker.connect(TaskId(40), Peer::default()).await.expect_err("no such task");
    assert!(failure.detail.contains("task 40 is not known here"), "{}", failure.detail);
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_railmesh-worker"))
}

fn real() -> ProcessFactory {
    ProcessFactory {
        spawner: Spawner::start().expect("a thread"),
        program: started_as(program(), &[]),
        log: LevelFilter::WARN,
    }
}

/// A shell script in the place of the worker program.
fn shell(script: &str) -> ProcessFactory {
    ProcessFactory { program: started_as("/bin/sh", &["-c", script, "worker"]), ..real() }
}

fn started_as(path: impl Into<PathBuf>, leading: &[&str]) -> WorkerProgram {
    WorkerProgram {
        path: path.into(),
        leading: leading.iter().map(OsString::from).collect(),
        source: Source::Flag,
        passed_over: Vec::new(),
    }
}

/// A `Ready` as the argument of printf(1).
fn frame(build: BuildHash) -> String {
    let bytes =
        pipe::encode(&FromWorker::Ready { build, capabilities: Vec::new() }).expect("a short message");
    bytes.iter().map(|byte| format!("\\{byte:03o}")).collect()
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("a process of ours");
}

/// Whether there is such a process, be it a zombie.
fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether there is such a process and it is no zombie: an orphan's zombie is its new parent's business.
fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

fn wait_until(done: impl Fn() -> bool, complaint: &str) {
    let limit = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(Instant::now() < limit, "{complaint}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
