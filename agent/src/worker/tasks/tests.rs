//! The tasks of a worker against a backend that does what its test wants.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use bench_core::cell::End;
use bench_core::ids::CellId;
use bench_core::measure::Measurement;
use bench_core::message::EndpointInfo;
use bench_core::node::Capability;
use bench_core::plan::{TestKind, Verify, WaitMode};
use bench_core::units::Bytes;
use transport::data::{Backend, Backends};

use super::*;

/// What the backend does when it is called.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Well,
    PanicIn(Phase),
    /// Runs until it is stopped.
    UntilStopped,
    /// Runs for six seconds of its thread's time, whatever it is asked.
    Deaf,
}

/// Counts its endpoints that live.
#[derive(Clone)]
struct Fake {
    act: Act,
    living: Arc<AtomicU32>,
}

impl Fake {
    fn maybe_panic(&self, phase: Phase) {
        assert!(self.act != Act::PanicIn(phase), "as the test wants in {phase:?}");
    }
}

impl Backend for Fake {
    fn capability(&self) -> Capability {
        Capability { name: "tcp".to_owned(), absent: None }
    }

    fn prepare(&self, _task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
        self.maybe_panic(Phase::Prepare);
        self.living.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(FakeEnd(self.clone())))
    }
}

struct FakeEnd(Fake);

impl Endpoint for FakeEnd {
    fn info(&self) -> Option<EndpointInfo> {
        Some(EndpointInfo::Sim { port: 7 })
    }

    fn connect(&mut self, _peer: &Peer, _stop: &Stop) -> Result<(), Failure> {
        self.0.maybe_panic(Phase::Connect);
        Ok(())
    }

    fn run(&mut self, timing: &Timing, stop: &Stop) -> Result<Measurement, Failure> {
        self.0.maybe_panic(Phase::Measure);
        match self.0.act {
            Act::Well | Act::PanicIn(_) => {}
            Act::UntilStopped => {
                while !stop.is_set() {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Act::Deaf => thread::sleep(Duration::from_secs(6)),
        }
        Ok(Measurement::Responder { answered: timing.window.as_millis() as u64 })
    }

    fn evidence(&self) -> Evidence {
        Evidence { device: Some("fake0".to_owned()), ..Evidence::default() }
    }
}

impl Drop for FakeEnd {
    fn drop(&mut self) {
        self.0.living.fetch_sub(1, Ordering::SeqCst);
        self.0.maybe_panic(Phase::Collect);
    }
}

struct Wire(Mutex<Sender<FromWorker>>);

impl Outbox for Wire {
    fn send(&self, message: FromWorker) {
        drop(self.0.lock().unwrap().send(message));
    }
}

struct Bench {
    tasks: Tasks,
    answers: Receiver<FromWorker>,
    living: Arc<AtomicU32>,
}

impl Bench {
    fn new(act: Act) -> Self {
        let (sender, answers) = channel();
        let living = Arc::new(AtomicU32::new(0));
        let fake: Arc<dyn Backend> = Arc::new(Fake { act, living: Arc::clone(&living) });
        let tasks = Tasks::new(Arc::new(Backends::with_sockets(fake)), Arc::new(Wire(Mutex::new(sender))));
        Self { tasks, answers, living }
    }

    /// Gives a message and returns its answer, whichever way it comes.
    fn ask(&self, message: ToWorker) -> FromWorker {
        match self.tasks.handle(message) {
            Handled::Answer(answer) => *answer,
            Handled::Silently => self.answers.recv_timeout(PATIENCE).unwrap(),
            Handled::Stuck(task) => panic!("{task:?} is stuck"),
        }
    }

    fn armed(&self) {
        assert!(matches!(self.ask(prepare(1)), FromWorker::Prepared { endpoint: Ok(Some(_)), .. }));
        assert_eq!(self.ask(connect(1)), FromWorker::Armed { task: TaskId(1), outcome: Ok(()) });
    }

    fn wait_until_gone(&self) {
        let limit = clock::now().after(PATIENCE);
        while !lock(&self.tasks.table).is_empty() {
            assert!(clock::now() < limit, "a task is still there");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.living.load(Ordering::SeqCst), 0, "an endpoint outlived its task");
    }
}

const PATIENCE: Duration = Duration::from_secs(5);

fn prepare(id: u64) -> ToWorker {
    let case = TestCase {
        kind: TestKind::TcpBw,
        size: Bytes(64),
        streams: 1,
        wait: WaitMode::Blocking,
        window: Duration::from_millis(250),
        warmup: Duration::ZERO,
        verify: Verify::Off,
        rate_limit: None,
        rdma: None,
    };
    ToWorker::Prepare(CellTask {
        id: TaskId(id),
        cell: CellId(0),
        end: End::Source,
        case,
        bind: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        hca: None,
        device: "lo".to_owned(),
        connect_timeout: Duration::from_secs(1),
    })
}

fn connect(id: u64) -> ToWorker {
    ToWorker::Connect { task: TaskId(id), peer: Peer::default() }
}

fn run(id: u64) -> ToWorker {
    ToWorker::Run { task: TaskId(id), at: clock::now(), tail: Duration::ZERO }
}

fn failure_of(answer: FromWorker) -> Failure {
    match answer {
        FromWorker::Prepared { endpoint: Err(failure), .. }
        | FromWorker::Armed { outcome: Err(failure), .. }
        | FromWorker::Finished { outcome: Outcome::Failed(failure), .. } => failure,
        other => panic!("no failure: {other:?}"),
    }
}

#[test]
fn a_task_goes_from_prepare_to_finished_and_is_gone_after_that() {
    let bench = Bench::new(Act::Well);
    bench.armed();
    match bench.ask(run(1)) {
        FromWorker::Finished { task: TaskId(1), outcome: Outcome::Measured(measurement), evidence } => {
            assert_eq!(measurement, Measurement::Responder { answered: 250 });
            assert_eq!(evidence.device.as_deref(), Some("fake0"));
        }
        other => panic!("{other:?}"),
    }
    bench.wait_until_gone();
    assert!(failure_of(bench.ask(run(1))).detail.contains("not known here"));
}

#[test]
fn a_panic_of_the_backend_is_the_tasks_failure_and_the_next_task_works() {
    for (phase, steps) in [(Phase::Prepare, 1), (Phase::Connect, 2), (Phase::Measure, 3)] {
        let bench = Bench::new(Act::PanicIn(phase));
        let mut answers = Vec::new();
        for step in [prepare(1), connect(1), run(1)].into_iter().take(steps) {
            answers.push(bench.ask(step));
        }
        let failure = failure_of(answers.pop().unwrap());
        assert_eq!((failure.kind, failure.phase), (FailureKind::Crash, phase));
        assert!(failure.detail.contains("as the test wants"), "{}", failure.detail);
        bench.wait_until_gone();
        assert_eq!(bench.tasks.handle(ToWorker::Ping { number: 3 }), pong(3));
    }
}

#[test]
fn a_panic_in_the_drop_of_an_endpoint_keeps_its_result() {
    let bench = Bench::new(Act::PanicIn(Phase::Collect));
    bench.armed();
    assert!(matches!(bench.ask(run(1)), FromWorker::Finished { outcome: Outcome::Measured(_), .. }));
    bench.wait_until_gone();
}

#[test]
fn an_aborted_task_ends_without_an_answer_in_any_state() {
    for steps in 1..=3 {
        let bench = Bench::new(Act::UntilStopped);
        for step in [prepare(1), connect(1)].into_iter().take(steps) {
            bench.ask(step);
        }
        if steps == 3 {
            assert_eq!(bench.tasks.handle(run(1)), Handled::Silently);
        }
        bench.tasks.handle(ToWorker::Abort { task: TaskId(1) });
        bench.wait_until_gone();
        assert!(bench.answers.try_recv().is_err(), "after {steps} steps");
    }
}

#[test]
fn pings_are_answered_while_a_task_runs() {
    let bench = Bench::new(Act::UntilStopped);
    bench.armed();
    bench.tasks.handle(run(1));
    assert_eq!(bench.tasks.handle(ToWorker::Ping { number: 9 }), pong(9));
    bench.tasks.abort_all();
    bench.wait_until_gone();
}

#[test]
fn a_task_that_does_not_stop_when_aborted_makes_the_worker_give_up() {
    let bench = Bench::new(Act::Deaf);
    bench.armed();
    bench.tasks.handle(run(1));
    bench.tasks.handle(ToWorker::Abort { task: TaskId(1) });
    assert_eq!(bench.tasks.handle(ToWorker::Ping { number: 1 }), pong(1));
    assert_eq!(bench.tasks.stuck(clock::now().after(ABORT_GRACE)), Some(TaskId(1)));
    assert_eq!(bench.tasks.stuck(clock::now()), None);
}

#[test]
fn steps_out_of_order_are_refused_with_the_task_named() {
    let bench = Bench::new(Act::Well);
    bench.ask(prepare(1));
    assert!(failure_of(bench.ask(prepare(1))).detail.contains("task 1 exists already"));
    assert!(failure_of(bench.ask(run(1))).detail.contains("task 1 is not at that step"));
    assert!(failure_of(bench.ask(connect(2))).detail.contains("task 2 is not known here"));
}

#[test]
fn a_missing_backend_is_a_missing_capability_with_its_reason() {
    struct Absent;
    impl Backend for Absent {
        fn capability(&self) -> Capability {
            Capability { name: "tcp".to_owned(), absent: Some("no sockets".to_owned()) }
        }

        fn prepare(&self, _task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
            unreachable!("an absent backend is never asked")
        }
    }
    let (sender, answers) = channel();
    let tasks =
        Tasks::new(Arc::new(Backends::with_sockets(Arc::new(Absent))), Arc::new(Wire(Mutex::new(sender))));
    tasks.handle(prepare(1));
    let failure = failure_of(answers.recv_timeout(PATIENCE).unwrap());
    assert_eq!(failure.kind, FailureKind::Unsupported);
    assert!(failure.detail.contains("absent here: no sockets"), "{}", failure.detail);
}

fn pong(number: u64) -> Handled {
    Handled::Answer(Box::new(FromWorker::Pong { number }))
}
