//! The simulated backend: what both ends of a cell say of the model.

use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::Duration;

use bench_core::fabric::{Fabric, FabricSpec, Fault, Place};
use bench_core::ids::CellId;
use bench_core::message::{Peer, TaskId};
use bench_core::plan::{TestCase, TestKind, Verify, WaitMode};
use bench_core::units::{BitsPerSecond, Bytes};

use super::*;

fn network(seed: u64, faults: Vec<Fault>) -> Arc<SimNetwork> {
    let spec = FabricSpec {
        nodes: 4,
        rails: 1,
        line_rate: BitsPerSecond(8e9),
        base_latency: Duration::from_micros(5),
        jitter: if seed == 0 { 0.0 } else { 0.1 },
        seed,
        faults,
    };
    let addresses = (0..4).map(|node| (address(node), NodeIndex(u16::from(node)), RailId(0)));
    SimNetwork::new(Fabric::new(spec).expect("a valid spec"), addresses)
}

fn address(node: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, node))
}

fn task(kind: TestKind, node: u8, end: End) -> CellTask {
    CellTask {
        id: TaskId(0),
        cell: CellId(3),
        end,
        case: TestCase {
            kind,
            size: Bytes(1 << 16),
            streams: 1,
            wait: WaitMode::Blocking,
            window: Duration::from_secs(1),
            warmup: Duration::from_millis(100),
            verify: Verify::Off,
            rate_limit: None,
            rdma: None,
        },
        bind: Some(address(node)),
        hca: None,
        device: "sim0".to_owned(),
        connect_timeout: Duration::from_secs(20),
    }
}

/// Runs these (source, destination) cells as one round and returns each end's outcome, source first.
fn round(network: &Arc<SimNetwork>, kind: TestKind, pairs: &[(u8, u8)]) -> Vec<Result<Measurement, Failure>> {
    let backend = Sim::new(Arc::clone(network));
    let stop = Stop::default();
    let mut ends = Vec::new();
    for (src, dst) in pairs {
        let mut destination = backend.prepare(&task(kind, *dst, End::Destination)).expect("in the model");
        let mut source = backend.prepare(&task(kind, *src, End::Source)).expect("in the model");
        let armed = source.connect(&Peer { endpoint: destination.info(), pace: None }, &stop);
        let armed = armed.and_then(|()| destination.connect(&Peer::default(), &stop));
        ends.extend([(source, armed.clone()), (destination, armed)]);
    }
    let timing = Timing {
        at: clock::now().after(Duration::from_millis(250)),
        warmup: Duration::from_millis(100),
        window: Duration::from_secs(1),
        tail: Duration::ZERO,
    };
    thread::scope(|scope| {
        let threads: Vec<_> = ends
            .into_iter()
            .map(|(mut end, armed)| {
                let (timing, stop) = (timing, stop.clone());
                scope.spawn(move || armed.and_then(|()| end.run(&timing, &stop)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn gigabits(result: &Result<Measurement, Failure>) -> f64 {
    match result {
        Ok(Measurement::Bandwidth(sample)) => sample.average().expect("a window").gbps(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cells_of_one_round_share_the_port_that_they_have_in_common() {
    let network = network(0, vec![]);
    let incast = round(&network, TestKind::TcpBw, &[(1, 0), (2, 0), (3, 0)]);
    for result in &incast {
        assert!((gigabits(result) - 8.0 / 3.0).abs() < 1e-6, "{result:?}");
    }
    let apart = round(&network, TestKind::TcpBw, &[(0, 1), (2, 3)]);
    for result in &apart {
        assert!((gigabits(result) - 8.0).abs() < 1e-6, "{result:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_figures_and_another_seed_others() {
    let figures = |seed| {
        let network = network(seed, vec![]);
        let rates: Vec<f64> =
            round(&network, TestKind::TcpBw, &[(0, 1), (2, 3)]).iter().map(gigabits).collect();
        let times = match &round(&network, TestKind::TcpLat, &[(0, 1)])[0] {
            Ok(Measurement::Latency(sample)) => sample.histogram.percentiles(),
            other => panic!("{other:?}"),
        };
        (rates, times)
    };
    assert_eq!(figures(1), figures(1));
    let (one, other) = (figures(1), figures(2));
    assert_ne!(one.0, other.0);
    assert_ne!(one.1, other.1);
}

#[test]
fn a_dead_port_is_a_timeout_at_both_ends_without_waiting_for_it() {
    let place = Place::Node { node: NodeIndex(1) };
    let network = network(0, vec![Fault::Dead { place }]);
    let backend = Sim::new(network);
    let stop = Stop::default();
    let begun = clock::now();
    let mut destination = backend.prepare(&task(TestKind::TcpBw, 1, End::Destination)).expect("in the model");
    let mut source = backend.prepare(&task(TestKind::TcpBw, 0, End::Source)).expect("in the model");
    for failure in [
        source.connect(&Peer { endpoint: destination.info(), pace: None }, &stop).expect_err("cut"),
        destination.connect(&Peer::default(), &stop).expect_err("cut"),
    ] {
        assert_eq!((failure.kind, failure.phase), (FailureKind::Timeout, Phase::Connect));
    }
    assert!(clock::now().since(begun) < Duration::from_secs(10));
}
