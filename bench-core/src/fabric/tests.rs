//! The modelled fabric: what its faults do, and that a seed decides everything.

use super::*;

fn spec(faults: Vec<Fault>) -> FabricSpec {
    FabricSpec {
        nodes: 4,
        rails: 2,
        line_rate: BitsPerSecond(400e9),
        base_latency: Duration::from_micros(2),
        jitter: 0.0,
        seed: 1,
        faults,
    }
}

fn fabric(faults: Vec<Fault>) -> Fabric {
    Fabric::new(spec(faults)).expect("a valid spec")
}

const N: [NodeIndex; 4] = [NodeIndex(0), NodeIndex(1), NodeIndex(2), NodeIndex(3)];
const R0: RailId = RailId(0);
const R1: RailId = RailId(1);

#[test]
fn a_sound_pair_gets_the_line_rate_and_sharers_split_the_fuller_port() {
    let fabric = fabric(vec![]);
    let rate = |at_source, at_destination| {
        fabric.rate(R0, N[0], N[1], Concurrency { at_source, at_destination }).gbps()
    };
    assert_eq!(rate(1, 1), 400.0);
    assert_eq!(rate(2, 1), 200.0);
    assert_eq!(rate(2, 4), 100.0);
    assert_eq!(rate(0, 0), 400.0);
}

#[test]
fn a_slow_receive_side_shows_only_at_that_port_in_that_direction() {
    let place = Place::Port { node: N[2], rail: R1 };
    let fabric = fabric(vec![Fault::SlowReceive { place, share: 0.5 }]);
    let alone = |rail, src, dst| fabric.rate(rail, src, dst, Concurrency::ALONE).gbps();
    assert_eq!(alone(R1, N[0], N[2]), 200.0);
    assert_eq!(alone(R1, N[2], N[0]), 400.0, "its send side is sound");
    assert_eq!(alone(R0, N[0], N[2]), 400.0, "its other rail is sound");
}

#[test]
fn a_fault_reaches_exactly_its_place() {
    let slowed = |place| {
        let fabric = fabric(vec![Fault::SlowSend { place, share: 0.25 }]);
        let mut slow = Vec::new();
        for rail in [R0, R1] {
            for src in N {
                for dst in N {
                    if fabric.rate(rail, src, dst, Concurrency::ALONE).gbps() < 400.0 {
                        slow.push((rail, src, dst));
                    }
                }
            }
        }
        slow
    };
    assert_eq!(slowed(Place::Rail { rail: R1 }).len(), 16);
    assert_eq!(slowed(Place::Node { node: N[3] }).len(), 8);
    assert_eq!(slowed(Place::Port { node: N[3], rail: R0 }).len(), 4);
    let (rail, src, dst) = (R0, N[1], N[2]);
    assert_eq!(slowed(Place::Pair { rail, src, dst }), vec![(rail, src, dst)]);
}

#[test]
fn nothing_passes_a_dead_port_and_its_node_lives_on_elsewhere() {
    let fabric = fabric(vec![Fault::Dead { place: Place::Port { node: N[1], rail: R0 } }]);
    assert_eq!(fabric.reachability(R0, N[0], N[1]), Reachability::Cut);
    assert_eq!(fabric.reachability(R0, N[1], N[0]), Reachability::Cut);
    assert_eq!(fabric.rate(R0, N[0], N[1], Concurrency::ALONE), BitsPerSecond(0.0));
    assert_eq!(fabric.reachability(R1, N[0], N[1]), Reachability::Open);
}

#[test]
fn extra_latency_adds_at_both_ends() {
    let extra = |node| Fault::ExtraLatency { place: Place::Node { node }, extra: Duration::from_micros(5) };
    let fabric = fabric(vec![extra(N[0]), extra(N[1])]);
    let sample = |src, dst| fabric.latency_sample(&mut Rng::new(0), R0, src, dst);
    assert_eq!(sample(N[2], N[3]), Duration::from_micros(2));
    assert_eq!(sample(N[0], N[3]), Duration::from_micros(7));
    assert_eq!(sample(N[0], N[1]), Duration::from_micros(12));
}

#[test]
fn scatter_follows_the_seed_and_stays_below_its_bound() {
    let scattered =
        |seed| Fabric::new(FabricSpec { jitter: 0.1, seed, ..spec(vec![]) }).expect("a valid spec");
    let rate = |fabric: &Fabric, dst| fabric.rate(R0, N[0], dst, Concurrency::ALONE).gbps();
    let (one, same, other) = (scattered(1), scattered(1), scattered(2));
    assert_eq!(rate(&one, N[1]), rate(&same, N[1]));
    assert_ne!(rate(&one, N[1]), rate(&other, N[1]));
    assert_ne!(rate(&one, N[1]), rate(&one, N[2]));
    for dst in N {
        assert!((360.0..=400.0).contains(&rate(&one, dst)));
    }
}

#[test]
fn a_fault_outside_the_fabric_or_a_share_out_of_range_is_refused() {
    let refused = |fault| Fabric::new(spec(vec![fault])).expect_err("refused");
    let (node, rail) = (NodeIndex(4), RailId(0));
    for place in [Place::Node { node }, Place::Port { node, rail }, Place::Rail { rail: RailId(2) }] {
        assert_eq!(refused(Fault::Dead { place }), FabricError::Outside(place));
    }
    let place = Place::Node { node: N[0] };
    for share in [0.0, -1.0, 1.1, f64::NAN] {
        assert!(matches!(refused(Fault::SlowSend { place, share }), FabricError::Share { .. }));
    }
}

#[test]
fn thousands_of_nodes_answer_for_any_pair() {
    let fabric = Fabric::new(FabricSpec {
        nodes: 4_096,
        rails: 8,
        ..spec(vec![Fault::SlowSend { place: Place::Node { node: NodeIndex(4_095) }, share: 0.5 }])
    })
    .expect("a valid spec");
    let rate = fabric.rate(RailId(7), NodeIndex(4_095), NodeIndex(0), Concurrency::ALONE);
    assert_eq!(rate.gbps(), 200.0);
}
