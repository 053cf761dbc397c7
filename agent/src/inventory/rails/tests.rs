//! Which rails a node takes, in which order.

use std::fs;

use bench_core::topology::LinkLayer;

use super::*;
use crate::inventory::testing::{Machine, healthy};

fn interfaces(list: &[(&str, &str)]) -> Vec<Interface> {
    list.iter()
        .map(|(device, addr)| Interface {
            device: (*device).to_owned(),
            addr: addr.parse().expect("an address"),
            prefix_bits: 24,
        })
        .collect()
}

fn tree(devices: &[&str], default_route: Option<&str>) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for device in devices {
        let dir = root.path().join("sys/class/net").join(device);
        fs::create_dir_all(dir.join("device")).expect("made");
        fs::write(dir.join("operstate"), "up\n").expect("written");
        fs::write(dir.join("speed"), "400000\n").expect("written");
        fs::write(dir.join("device/numa_node"), "1\n").expect("written");
    }
    fs::create_dir_all(root.path().join("proc/net")).expect("made");
    let route = default_route.map_or(String::new(), |device| {
        format!(
            "Iface Destination Gateway Flags RefCnt Use Metric Mask\n{device} 00000000 0 0 0 0 0 00000000\n"
        )
    });
    fs::write(root.path().join("proc/net/route"), route).expect("written");
    root
}

/// A node without GPUs and RDMA devices.
fn site(list: &[(&str, &str)], root: &Path) -> Site {
    Site { interfaces: interfaces(list), topology: Inventory::default(), root: root.to_owned() }
}

/// `r0 device address` of every rail.
fn picked(rails: &[RailEndpoint]) -> Vec<String> {
    rails.iter().map(|rail| format!("{} {}", rail.rail, rail.place())).collect()
}

/// Two GPUs, each below a switch with its HCA; the names of the HCAs suggest the opposite order.
fn gpu_node(list: &[(&str, &str)], machine: &Machine) -> Site {
    Site { interfaces: interfaces(list), topology: machine.read().0, root: machine.root().to_owned() }
}

fn named(names: &[&str]) -> RailChoice {
    RailChoice::Named(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn the_front_end_is_left_out_where_others_remain() {
    let root = tree(&["eth0", "rail0", "rail1"], Some("eth0"));
    let all = [
        ("lo", "127.0.0.1"),
        ("eth0", "10.0.0.1"),
        ("rail0", "10.1.0.1"),
        ("rail1", "fd00::1"),
        ("rail1", "10.2.0.1"),
    ];
    let rails = site(&all, root.path()).choose(&RailChoice::Automatic).expect("two rails");
    assert_eq!(picked(&rails), ["r0 rail0 10.1.0.1", "r1 rail1 10.2.0.1"]);
    assert_eq!((rails[0].numa, rails[0].line_rate_bps), (Some(1), Some(400_000_000_000)));
}

#[test]
fn interfaces_are_numbered_by_network_whatever_they_are_called() {
    let root = tree(&["zeta", "alpha"], None);
    let rails = site(&[("zeta", "10.1.0.7"), ("alpha", "10.2.0.7")], root.path());
    let rails = rails.choose(&RailChoice::Automatic).expect("two rails");
    assert_eq!(picked(&rails), ["r0 zeta 10.1.0.7", "r1 alpha 10.2.0.7"]);
    assert!(rails[0].reason.ends_with("numbered by network"), "{}", rails[0].reason);
    assert_eq!(rails[0].network.map(|network| network.to_string()).as_deref(), Some("10.1.0.0/24"));
}

#[test]
fn interfaces_of_one_network_are_numbered_by_name_and_the_reason_says_that_this_is_assumed() {
    let root = tree(&["zeta", "alpha"], None);
    let rails = site(&[("zeta", "10.1.0.7"), ("alpha", "10.1.0.8")], root.path());
    let rails = rails.choose(&RailChoice::Automatic).expect("two rails");
    assert_eq!(picked(&rails), ["r0 alpha 10.1.0.8", "r1 zeta 10.1.0.7"]);
    assert!(rails[0].reason.contains("numbered by name, which is assumed"), "{}", rails[0].reason);
}

#[test]
fn a_pod_with_one_interface_measures_on_it() {
    let root = tree(&["eth0"], Some("eth0"));
    let rails = site(&[("eth0", "10.0.0.1")], root.path()).choose(&RailChoice::Automatic);
    assert_eq!(rails.map(|r| r.len()), Ok(1));
}

#[test]
fn rails_are_the_compute_ports_in_the_order_of_their_gpus() {
    let machine = healthy();
    let all = [("ibx3", "10.0.1.1"), ("ibx8", "10.0.2.1"), ("eth0", "10.9.0.1")];
    let rails = gpu_node(&all, &machine).choose(&RailChoice::Automatic).expect("two rails");
    assert_eq!(picked(&rails), ["r0 mlx5_8 (ibx8) 10.0.2.1", "r1 mlx5_3 (ibx3) 10.0.1.1"]);
    let gpus: Vec<_> = rails.iter().filter_map(|rail| rail.gpu.as_ref()).collect();
    assert_eq!(gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(gpus[1].bus.as_deref(), Some("0000:9a:00.0"));
    assert_eq!((rails[0].numa, rails[0].line_rate_bps), (Some(0), Some(400_000_000_000)));
    assert!(rails[0].reason.starts_with("serves GPU0: PIX"), "{}", rails[0].reason);
    assert_eq!(rails[0].hca.as_ref().and_then(|hca| hca.link_layer), Some(LinkLayer::InfiniBand));
}

#[test]
fn a_rail_without_an_address_is_a_rail_for_rdma() {
    let rails = gpu_node(&[("eth0", "10.9.0.1")], &healthy()).choose(&RailChoice::Automatic);
    let rails = rails.expect("two rails");
    assert_eq!(picked(&rails), ["r0 mlx5_8 (ibx8)", "r1 mlx5_3 (ibx3)"]);
    assert_eq!((rails[0].addr, rails[0].network), (None, None));
}

#[test]
fn a_rail_whose_port_is_down_keeps_its_number() {
    let machine = healthy();
    let ports = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0/infiniband/mlx5_8/ports/1";
    machine.file(&format!("{ports}/state"), "1: DOWN");
    machine.file(&format!("{ports}/phys_state"), "3: Disabled");
    let rails = gpu_node(&[], &machine).choose(&RailChoice::Automatic).expect("two rails");
    assert_eq!(picked(&rails), ["r0 mlx5_8 (ibx8)", "r1 mlx5_3 (ibx3)"]);
}

#[test]
fn rails_are_named_by_rdma_device_network_device_or_address() {
    let machine = healthy();
    let node = gpu_node(&[("ibx3", "10.0.1.1"), ("ibx8", "10.0.2.1"), ("eth0", "10.9.0.1")], &machine);
    let rails = node.choose(&named(&["mlx5_3", "ibx8", "10.9.0.1"])).expect("three rails");
    assert_eq!(
        picked(&rails),
        ["r0 mlx5_3 (ibx3) 10.0.1.1", "r1 mlx5_8 (ibx8) 10.0.2.1", "r2 mlx5_0 (eth0) 10.9.0.1"]
    );
    assert_eq!(rails[1].gpu.as_ref().map(|gpu| gpu.index), Some(0));
    let twice = node.choose(&named(&["mlx5_3", "10.9.0.1", "ibx3"])).expect_err("one device twice");
    assert_eq!(twice.to_string(), "rails r0 and r2 are both ibx3: name each device once");
    let port = node.choose(&named(&["mlx5_3:2"])).expect_err("it has one port").to_string();
    assert!(port.contains("\"mlx5_3:2\"") && port.contains("mlx5_8"), "{port}");
}

#[test]
fn a_named_rail_that_is_not_here_is_named_with_what_is() {
    let node = site(&[("eth0", "10.0.0.1")], Path::new("/nonexistent"));
    let text = node.choose(&named(&["eth0", "10.9.9.9"])).expect_err("10.9.9.9 is not here").to_string();
    assert!(text.contains("r1") && text.contains("10.9.9.9") && text.contains("eth0 10.0.0.1"), "{text}");
}

#[test]
fn any_loopback_address_is_this_machines() {
    let node = site(&[("lo", "127.0.0.1")], Path::new("/nonexistent"));
    let rails = node.choose(&named(&["127.77.3.11"]));
    assert_eq!(rails.expect("a rail")[0].device, "lo");
}

#[test]
fn a_node_with_nothing_says_what_to_name() {
    let text = site(&[("lo", "127.0.0.1")], Path::new("/nonexistent"));
    let text = text.choose(&RailChoice::Automatic).expect_err("nothing").to_string();
    assert!(text.contains("--rails"), "{text}");
}
