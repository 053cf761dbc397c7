//! How RDMA ends find each other, and what is said where they cannot.

use bench_core::cell::End;
use bench_core::message::CellTask;
use bench_core::node::RailHca;
use bench_core::plan::{TestCase, TestKind};
use bench_core::record::{Failure, FailureKind, Phase};
use bench_core::verbs::{PathMtu, RdmaOptions};

use crate::fake::{INFINIBAND, ROCE, over, record};
use crate::rig::{Rig, rdma_case};

fn case(options: RdmaOptions) -> TestCase {
    TestCase { rdma: Some(options), ..rdma_case(TestKind::WriteBw) }
}

fn refused(rig: &Rig, options: RdmaOptions) -> Failure {
    let prepared = |end| rig.prepare(&rig.task(case(options), end));
    match (prepared(End::Source), prepared(End::Destination)) {
        (Ok(source), Ok(destination)) => {
            let mut ends = crate::rig::Ends { source, destination };
            let info = ends.destination.info().unwrap();
            ends.connect(&info).unwrap_err()
        }
        (Err(failure), _) | (_, Err(failure)) => failure,
    }
}

fn told(failure: &Failure, words: &[&str]) {
    let remedy = failure.remedy.as_deref().unwrap_or_default();
    assert!(!remedy.is_empty(), "no remedy: {failure:?}");
    let text = format!("{}; {remedy}", failure.detail);
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

macro_rules! over_scenario {
    ($($name:ident, $scenario:expr, $body:expr;)*) => {
        $(#[test]
        fn $name() {
            over(concat!("verbs_addresses::", stringify!($name)), &$scenario, $body);
        })*
    };
}

fn changed(scenario: &str, from: &str, to: &str) -> String {
    assert!(scenario.contains(from), "{from}");
    scenario.replace(from, to)
}

over_scenario! {
    roce_ends_choose_their_ipv4_rows_of_version_2, ROCE, || {
        let rig = Rig::send();
        let ends = rig.armed(rdma_case(TestKind::WriteBw));
        let (source, destination) = (ends.source.evidence(), ends.destination.evidence());
        assert_eq!(source.local.as_deref(), Some("mlx5_0 GID 3 ::ffff:127.0.0.1 (RoCE v2)"));
        assert_eq!(source.peer, destination.local);
        assert_eq!(destination.local.as_deref(), Some("mlx5_1 GID 1 ::ffff:127.0.0.2 (RoCE v2)"));
        assert!(source.facts.contains(&("path_mtu_bytes".to_owned(), "1024".to_owned())), "{:?}", source.facts);
    };

    infiniband_ends_go_by_lid_without_a_global_route, INFINIBAND, || {
        let rig = Rig::send();
        let ends = rig.armed(case(RdmaOptions { service_level: 3, ..RdmaOptions::default() }));
        assert_eq!(ends.source.evidence().local.as_deref(), Some("mlx5_0 LID 12"));
        assert_eq!(ends.source.evidence().peer.as_deref(), Some("mlx5_1 LID 13"));
        let record = record();
        let ready = record.lines().find(|line| line.contains("\"is_global\"")).unwrap();
        for word in ["\"is_global\":0", "\"dlid\":13", "\"sl\":3"] {
            assert!(record.contains(word), "{word}: {ready}");
        }
    };

    a_virtual_function_gets_a_global_route, changed(INFINIBAND, "lid=13", "grh_required=1 lid=13"), || {
        let rig = Rig::send();
        let ends = rig.armed(rdma_case(TestKind::WriteBw));
        assert!(ends.source.evidence().local.unwrap().contains("GID 0"), "{:?}", ends.source.evidence());
        assert!(record().contains("\"is_global\":1"));
    };

    a_gid_index_that_is_empty_is_named, ROCE, || {
        let failure = refused(&Rig::send(), RdmaOptions { gid_index: Some(9), ..RdmaOptions::default() });
        assert_eq!((failure.kind, failure.phase), (FailureKind::Unsupported, Phase::Prepare));
        told(&failure, &["GID index 9 of mlx5_0", "show_gids"]);
    };

    a_gid_index_of_another_kind_at_each_end_is_named, ROCE, || {
        // Row 1: link-local at one end, IPv4 at the other.
        let failure = refused(&Rig::send(), RdmaOptions { gid_index: Some(1), ..RdmaOptions::default() });
        assert_eq!(failure.phase, Phase::Connect);
        told(&failure, &["no GID of mlx5_0", "mlx5_1", "::ffff:127.0.0.2", "same family"]);
    };

    a_device_that_is_not_there_is_named_with_those_that_are, ROCE, || {
        let rig = Rig::send();
        let hca = Some(RailHca { device: "mlx5_9".to_owned(), port: 1, link_layer: None });
        let task = CellTask { hca, ..rig.task(rdma_case(TestKind::WriteBw), End::Source) };
        let Err(failure) = rig.prepare(&task) else { panic!("opens a device that is not there") };
        told(&failure, &["no RDMA device mlx5_9", "mlx5_0, mlx5_1", "--rails"]);
    };

    a_rail_without_an_rdma_device_is_told_so, ROCE, || {
        let rig = Rig::send();
        let task = CellTask { hca: None, ..rig.task(rdma_case(TestKind::WriteBw), End::Source) };
        let Err(failure) = rig.prepare(&task) else { panic!("measures a rail without a device") };
        told(&failure, &["rail0 has no RDMA device", "--rails"]);
    };

    a_port_that_the_device_does_not_have_is_named, ROCE, || {
        let rig = Rig::send();
        let hca = Some(RailHca { device: "mlx5_0".to_owned(), port: 2, link_layer: None });
        let task = CellTask { hca, ..rig.task(rdma_case(TestKind::WriteBw), End::Source) };
        let Err(failure) = rig.prepare(&task) else { panic!("opens a port that is not there") };
        told(&failure, &["port 2 of mlx5_0", "EINVAL", "ibv_devinfo"]);
    };

    partitions_without_a_common_one_are_named, changed(INFINIBAND, "pkey 0 0xffff\ngid 0 fe80::e42:a103:6c:1a2f",
        "pkey 0 0x8005\ngid 0 fe80::e42:a103:6c:1a2f"), || {
        let failure = refused(&Rig::send(), RdmaOptions::default());
        told(&failure, &["no partition", "0xffff at the source", "0x8005 at the destination", "partitions.conf"]);
    };

    a_partition_is_found_by_its_value_at_another_index, changed(INFINIBAND,
        "pkey 0 0xffff\ngid 0 fe80::e42:a103:6c:1a2f", "pkey 0 0x8005\npkey 1 0xffff\ngid 0 fe80::e42:a103:6c:1a2f"), || {
        let rig = Rig::send();
        let results = rig.measure(rdma_case(TestKind::WriteBw));
        assert!(results.source.is_ok() && results.destination.is_ok(), "{results:?}");
    };

    a_port_without_a_lid_is_named, changed(INFINIBAND, "lid=12", "lid=0"), || {
        told(&refused(&Rig::send(), RdmaOptions::default()), &["mlx5_0", "has no LID (0)", "subnet manager"]);
    };

    a_port_without_a_subnet_manager_is_named, changed(INFINIBAND, "lid=12 sm_lid=1", "lid=12 sm_lid=0"), || {
        told(&refused(&Rig::send(), RdmaOptions::default()), &["mlx5_0", "SM LID 0", "sminfo"]);
    };

    a_port_that_is_down_is_named_with_its_physical_state, changed(ROCE, "port 1 link=ethernet mtu=4096",
        "port 1 link=ethernet mtu=4096 state=down phys=disabled"), || {
        told(&refused(&Rig::send(), RdmaOptions::default()), &["mlx5_1 is down (physical state: disabled)", "ip link set"]);
    };

    an_mtu_above_a_ports_is_named_with_the_port, ROCE, || {
        let options = RdmaOptions { mtu: Some(PathMtu::B4096), ..RdmaOptions::default() };
        told(&refused(&Rig::send(), options), &["4096", "mlx5_0 has an active MTU of 1024", "-m"]);
    };

    memory_that_cannot_be_locked_is_told_with_the_limit, format!("{ROCE}\ninject verb reg_mr errno=ENOMEM\n"), || {
        told(&refused(&Rig::send(), RdmaOptions::default()), &["ibv_reg_mr", "ENOMEM 12", "memlock", "LimitMEMLOCK"]);
    };

    a_completion_queue_that_cannot_be_had_is_told_with_the_limit, format!("{ROCE}\ninject verb create_cq errno=ENOMEM\n"),
        || told(&refused(&Rig::send(), RdmaOptions::default()), &["ibv_create_cq", "ENOMEM 12", "memlock"]);

    a_peer_that_does_not_answer_for_its_address_is_a_timeout,
        format!("{ROCE}\ninject verb modify_qp errno=ETIMEDOUT call=2\n"), || {
        let failure = refused(&Rig::send(), RdmaOptions::default());
        assert_eq!((failure.kind, failure.phase), (FailureKind::Timeout, Phase::Connect));
        told(&failure, &["INIT to RTR", "path MTU 1024", "GID", "ETIMEDOUT 110", "ip neigh"]);
    };

    a_network_that_is_not_reached_is_named, format!("{ROCE}\ninject verb modify_qp errno=ENETUNREACH call=2\n"),
        || told(&refused(&Rig::send(), RdmaOptions::default()), &["INIT to RTR", "ENETUNREACH 101", "ip route get"]);

    more_inline_data_than_the_device_has_is_refused_only_where_it_was_asked_for,
        changed(ROCE, "device mlx5_0", "device mlx5_0 max_inline=60"), || {
        let rig = Rig::send();
        let asked = RdmaOptions { inline_bytes: Some(512), ..RdmaOptions::default() };
        told(&refused(&rig, asked), &["ibv_create_qp", "512 inline bytes", "-I"]);
        let results = rig.measure(rdma_case(TestKind::WriteLat));
        assert!(results.source.is_ok() && results.destination.is_ok(), "{results:?}");
    };
}
