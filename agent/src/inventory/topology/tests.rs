//! Captured trees, made here: small machines whose topology is known.

use std::path::Path;

use bench_core::topology::{Confidence, Role, Severity, nccl_xml};

use super::read_topology;
use crate::inventory::testing::{Machine, healthy, rail};

#[test]
fn a_healthy_machine_is_read_with_its_rails_and_nothing_is_wrong_with_it() {
    let (inventory, assessment) = healthy().read();
    let pairs: Vec<_> = assessment
        .pairs
        .iter()
        .map(|pair| {
            let hca = pair.hca.map(|id| inventory.hca(id).title());
            (hca, pair.rail, pair.distance.map(|distance| distance.name()), pair.confidence)
        })
        .collect();
    let expected = [("mlx5_8", 0), ("mlx5_3", 1)]
        .map(|(name, rail)| (Some(name), Some(rail), Some("PIX"), Confidence::Proven));
    assert_eq!(pairs, expected);
    assert!(
        assessment.findings.iter().all(|finding| finding.severity == Severity::Info),
        "{:?}",
        assessment.findings
    );
    let front = inventory.hcas.iter().position(|hca| hca.name.as_deref() == Some("mlx5_0")).unwrap();
    let role = assessment.ports.iter().find(|port| port.hca.0 == front).unwrap();
    assert_eq!(
        (role.role, role.confidence),
        (Role::FrontEnd, Confidence::Proven),
        "the default route leaves by it"
    );
    assert_eq!(inventory.gpus[0].name.as_deref(), Some("NVIDIA X100"));
    assert_eq!(inventory.gpus[1].cpus.as_ref().map(|cpus| cpus.as_str()), Some("8-15"));
}

#[test]
fn the_facts_of_a_port_are_those_of_its_files() {
    let (inventory, _) = healthy().read();
    let hca = inventory.hcas.iter().find(|hca| hca.name.as_deref() == Some("mlx5_8")).unwrap();
    assert_eq!(hca.bus.map(|bus| bus.to_string()).as_deref(), Some("0000:19:00.0"));
    assert_eq!((hca.numa, hca.driver.as_deref()), (Some(0), Some("mlx5_core")));
    let port = &hca.ports[0];
    assert_eq!((port.lid, port.sm_lid, port.is_up()), (Some(31), Some(1), Some(true)));
    assert_eq!((port.rate.map(|rate| rate.gbps()), port.lanes.as_deref()), (Some(400.0), Some("4X NDR")));
    assert_eq!(port.netdev.as_deref(), Some("ibx8"));
    assert_eq!(port.gids.iter().map(|gid| gid.index).collect::<Vec<_>>(), [0, 3], "an empty GID is none");
    assert_eq!(port.gids[1].ipv4.as_deref(), Some("10.0.0.1"));
    assert_eq!(port.counters.get("link_downed"), Some(&3));
}

#[test]
fn a_rail_without_a_subnet_manager_is_the_only_fault_that_is_found() {
    let machine = healthy();
    let ports = "sys/devices/pci0000:97/0000:97:01.0/0000:98:00.0/0000:99:01.0/0000:9b:00.0/infiniband/mlx5_3/ports/1";
    machine.file(&format!("{ports}/state"), "2: INIT");
    machine.file(&format!("{ports}/sm_lid"), "0x0");
    let (_, assessment) = machine.read();
    let faults: Vec<_> =
        assessment.findings.iter().filter(|finding| finding.severity != Severity::Info).collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!((faults[0].kind, faults[0].place.as_str()), ("no_subnet_manager", "mlx5_3"));
}

#[test]
fn the_topology_file_of_a_machine_puts_each_gpu_beside_its_hca() {
    let (inventory, assessment) = healthy().read();
    let xml = nccl_xml::write(&inventory, &assessment).unwrap();
    let first = xml.find("0000:18:00.0").unwrap();
    let beside = xml[first..].find("</pci>").unwrap();
    assert!(xml[first..first + beside].contains("0000:19:00.0"), "{xml}");
}

#[test]
fn a_virtual_machine_hides_its_tree_and_says_so() {
    let machine = Machine::new();
    machine.file("proc/cpuinfo", "model name\t: Some CPU\nflags\t\t: fpu hypervisor sse");
    machine.file("sys/class/dmi/id/sys_vendor", "QEMU");
    for (at, bus) in ["05", "06"].iter().enumerate() {
        machine.gpu(&format!("pci0000:00/0000:00:0{at}.0/0000:{bus}:00.0"), -1);
    }
    machine.hca("mlx5_0", "pci0000:00/0000:00:08.0/0000:08:00.0", -1, &rail("ib0"));
    machine.hca("mlx5_1", "pci0000:00/0000:00:09.0/0000:09:00.0", -1, &rail("ib1"));
    let (inventory, assessment) = machine.read();
    assert_eq!(inventory.platform.hypervisor.as_deref(), Some("QEMU"));
    assert!(assessment.findings.iter().any(|finding| finding.kind == "tree_hidden"));
    assert!(assessment.pairs.iter().all(|pair| pair.hca.is_none()), "order is no pairing");
}

#[test]
fn a_machine_with_nothing_says_what_is_absent() {
    let machine = Machine::new();
    let (_, assessment) = machine.read();
    assert!(assessment.missing.iter().any(|gap| gap.what.contains("no PCI device is visible")));
    machine.pci("pci0000:00/0000:00:02.0", "0x8086", "0x020000", 0);
    machine.pci("pci0000:00/0000:00:03.0", "0x15b3", "0x020000", 0);
    let (inventory, assessment) = machine.read();
    let missing: Vec<&str> = assessment.missing.iter().map(|gap| gap.what.as_str()).collect();
    assert!(missing.contains(&"no PCI device is an NVIDIA GPU"), "{missing:?}");
    assert!(missing.iter().any(|what| what.contains("a Mellanox NIC is there (1 PCI")), "{missing:?}");
    assert!(inventory.gpus.is_empty() && inventory.hcas.is_empty());
    assert!(assessment.findings.iter().any(|finding| finding.kind == "nothing_here"));
}

#[test]
fn a_root_that_does_not_exist_is_an_empty_machine() {
    let inventory = read_topology(Path::new("/nonexistent/root"));
    assert!(inventory.gpus.is_empty() && inventory.hcas.is_empty());
}

#[test]
fn the_network_device_of_a_device_without_hardware_is_the_one_of_its_gids() {
    let machine = Machine::new();
    for (device, gids) in [("rxe0", Some("ens7")), ("rxe1", None)] {
        let folder = format!("sys/class/infiniband/{device}");
        machine.file(&format!("{folder}/ports/1/link_layer"), "Ethernet");
        machine.file(&format!("{folder}/ports/1/state"), "4: ACTIVE");
        machine.file(&format!("{folder}/parent"), "eth0");
        if let Some(name) = gids {
            machine.file(&format!("{folder}/ports/1/gid_attrs/ndevs/0"), name);
        }
    }
    let topology = read_topology(machine.root());
    let netdev = |device: &str| {
        let hca = topology.hcas.iter().find(|hca| hca.name.as_deref() == Some(device)).expect("the device");
        hca.ports[0].netdev.clone()
    };
    assert_eq!(netdev("rxe0").as_deref(), Some("ens7"), "renamed since it was made");
    assert_eq!(netdev("rxe1").as_deref(), Some("eth0"));
}
