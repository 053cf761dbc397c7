//! Two ends of one cell on one backend, and the steps that a worker would take.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bench_core::cell::End;
use bench_core::fabric::{Fabric, FabricSpec};
use bench_core::ids::{CellId, NodeIndex, RailId};
use bench_core::measure::{BandwidthSample, LatencySample, Measurement};
use bench_core::message::{CellTask, EndpointInfo, Peer, TaskId};
use bench_core::node::RailHca;
use bench_core::plan::{Spread, TestCase, TestKind, Verify, WaitMode};
use bench_core::record::{Failure, FailureKind};
use bench_core::units::{BitsPerSecond, Bytes};
use bench_core::verbs::RdmaOptions;
use transport::clock;
use transport::data::sim::SimNetwork;
use transport::data::{Backends, Endpoint, Stop, Timing, backends};

/// A backend with an address for each end. Holds the machine: tests of this binary run one at a time.
pub(crate) struct Rig {
    backends: Backends,
    cases: Cases,
    /// What a source sees when its peer is gone.
    pub(crate) gone: FailureKind,
    _alone: MutexGuard<'static, ()>,
}

/// The backend's tests that count at both ends.
struct Cases {
    bandwidth: TestCase,
    latency: TestCase,
}

/// What both ends returned.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) source: Result<Measurement, Failure>,
    pub(crate) destination: Result<Measurement, Failure>,
}

/// Both ends of a cell.
pub(crate) struct Ends {
    pub(crate) source: Box<dyn Endpoint>,
    pub(crate) destination: Box<dyn Endpoint>,
}

impl Rig {
    pub(crate) fn tcp() -> Self {
        Self::new(backends(), Cases { bandwidth: bandwidth_case(), latency: latency_case() })
    }

    /// RDMA send over whatever libibverbs this process finds.
    pub(crate) fn send() -> Self {
        Self::rdma(TestKind::SendBw, TestKind::SendLat)
    }

    /// RDMA write with immediate.
    pub(crate) fn write_imm() -> Self {
        Self::rdma(TestKind::WriteImmBw, TestKind::WriteImmLat)
    }

    fn rdma(bandwidth: TestKind, latency: TestKind) -> Self {
        let cases = Cases {
            bandwidth: rdma_case(bandwidth),
            latency: TestCase { window: latency_case().window, ..rdma_case(latency) },
        };
        // No completion comes from a queue pair that is not there: the retries run out.
        Self { gone: FailureKind::Timeout, ..Self::new(backends(), cases) }
    }

    /// The backend's bandwidth test that counts at both ends.
    pub(crate) fn bandwidth_case(&self) -> TestCase {
        self.cases.bandwidth
    }

    /// The backend's ping-pong test.
    pub(crate) fn latency_case(&self) -> TestCase {
        self.cases.latency
    }

    pub(crate) fn sim() -> Self {
        let fabric = Fabric::new(FabricSpec {
            nodes: 2,
            rails: 1,
            line_rate: BitsPerSecond(10e9),
            base_latency: Duration::from_micros(10),
            jitter: 0.05,
            seed: 42,
            faults: vec![],
        })
        .unwrap();
        let addresses = [(SOURCE, NodeIndex(0), RailId(0)), (DESTINATION, NodeIndex(1), RailId(0))];
        let cases = Cases { bandwidth: bandwidth_case(), latency: latency_case() };
        Self::new(Backends::simulated(SimNetwork::new(fabric, addresses)), cases)
    }

    fn new(backends: Backends, cases: Cases) -> Self {
        Self {
            backends,
            cases,
            gone: FailureKind::Crash,
            _alone: ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    pub(crate) fn task(&self, case: TestCase, end: End) -> CellTask {
        CellTask {
            id: TaskId(match end {
                End::Source => 1,
                End::Destination => 2,
            }),
            cell: CellId(7),
            end,
            case,
            bind: Some(match end {
                End::Source => SOURCE,
                End::Destination => DESTINATION,
            }),
            device: "rail0".to_owned(),
            hca: case.rdma.map(|_| RailHca {
                device: match end {
                    End::Source => SOURCE_HCA,
                    End::Destination => DESTINATION_HCA,
                }
                .to_owned(),
                port: 1,
                link_layer: None,
            }),
            connect_timeout: Duration::from_secs(5),
        }
    }

    pub(crate) fn prepare(&self, task: &CellTask) -> Result<Box<dyn Endpoint>, Failure> {
        self.backends.of(task.case.kind).prepare(task)
    }

    pub(crate) fn prepared(&self, case: TestCase) -> Ends {
        Ends {
            destination: self.prepare(&self.task(case, End::Destination)).unwrap(),
            source: self.prepare(&self.task(case, End::Source)).unwrap(),
        }
    }

    pub(crate) fn armed(&self, case: TestCase) -> Ends {
        let mut ends = self.prepared(case);
        let info = ends.destination.info().unwrap();
        ends.connect(&info).unwrap();
        ends
    }

    /// Runs one cell to its end.
    pub(crate) fn measure(&self, case: TestCase) -> Results {
        let timing = |case: &TestCase| timing(case);
        let mut ends = self.armed(case);
        ends.run(&timing(&case), &Stop::default())
    }

    /// Runs one bandwidth cell: the source's and the destination's sample.
    pub(crate) fn bandwidth(&self, case: TestCase) -> (BandwidthSample, BandwidthSample) {
        let results = self.measure(case);
        (sample_of(results.source), sample_of(results.destination))
    }

    /// Runs one latency cell: the initiator's sample and the responder's count.
    pub(crate) fn latency(&self, case: TestCase) -> (LatencySample, u64) {
        let results = self.measure(case);
        match (results.source, results.destination) {
            (Ok(Measurement::Latency(sample)), Ok(Measurement::Responder { answered })) => (sample, answered),
            other => panic!("not a latency cell: {other:?}"),
        }
    }
}

impl Ends {
    /// Connects both ends, the source to `info`.
    pub(crate) fn connect(&mut self, info: &EndpointInfo) -> Result<(), Failure> {
        let stop = Stop::default();
        let source = Peer { endpoint: self.source.info(), pace: None };
        thread::scope(|scope| {
            let accepting = scope.spawn(|| self.destination.connect(&source, &stop));
            let dialed = self.source.connect(&Peer::at(info.clone()), &stop);
            accepting.join().unwrap().and(dialed)
        })
    }

    pub(crate) fn run(&mut self, timing: &Timing, stop: &Stop) -> Results {
        thread::scope(|scope| {
            let receiving = scope.spawn(|| self.destination.run(timing, stop));
            Results { source: self.source.run(timing, stop), destination: receiving.join().unwrap() }
        })
    }
}

pub(crate) fn sample_of(result: Result<Measurement, Failure>) -> BandwidthSample {
    match result {
        Ok(Measurement::Bandwidth(sample)) => sample,
        other => panic!("not a bandwidth sample: {other:?}"),
    }
}

/// A bandwidth case with a window of 200 ms.
pub(crate) fn bandwidth_case() -> TestCase {
    TestCase {
        kind: TestKind::TcpBw,
        size: Bytes(128 << 10),
        streams: 1,
        wait: WaitMode::Blocking,
        window: Duration::from_millis(200),
        warmup: Duration::from_millis(50),
        verify: Verify::Off,
        rate_limit: None,
        rdma: None,
    }
}

/// A latency case with a window of 100 ms.
pub(crate) fn latency_case() -> TestCase {
    TestCase {
        kind: TestKind::TcpLat,
        size: Bytes(64),
        window: Duration::from_millis(100),
        ..bandwidth_case()
    }
}

/// An RDMA test of this kind with the same times.
pub(crate) fn rdma_case(kind: TestKind) -> TestCase {
    TestCase {
        kind,
        size: match kind.spread() {
            Spread::Bandwidth => bandwidth_case().size,
            Spread::Latency => Bytes(8),
        },
        wait: WaitMode::Spinning,
        rdma: Some(RdmaOptions::default()),
        ..bandwidth_case()
    }
}

/// Starts soon: late enough for two threads of a busy machine.
pub(crate) fn timing(case: &TestCase) -> Timing {
    Timing {
        at: clock::now().after(Duration::from_millis(50)),
        warmup: case.warmup,
        window: case.window,
        tail: Duration::from_millis(30),
    }
}

pub(crate) const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
pub(crate) const DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// TEST-NET-1 (RFC 5737): no node has it.
pub(crate) const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The source's RDMA device.
pub(crate) const SOURCE_HCA: &str = "mlx5_0";
/// The destination's.
pub(crate) const DESTINATION_HCA: &str = "mlx5_1";

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
